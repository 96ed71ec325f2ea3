"""Random cases of convolutions, matrix products, pools and resizing."""

from __future__ import annotations

import numpy as np
from integer_cases_pointwise import BOTH, FUSED
from integer_draw import Draw, drawn

import vitrify.ops as ops
from vitrify.ir import DType, Quantization, Tensor
from vitrify.ops import Padding


def _weights(draw: Draw, shape: tuple[int, ...], axis: int | None) -> Tensor:
    """Symmetric int8 weights, of one scale or one for each index of an axis."""
    steps = draw.steps(shape, np.dtype(np.int8), low=-127)
    if axis is None or draw.chance(0.25):
        return draw.constant(steps, Quantization.per_tensor(draw.scale(1e-3, 0.1)))
    scales = np.exp(draw.rng.uniform(np.log(1e-3), np.log(0.1), shape[axis])).astype(np.float32)
    return draw.constant(steps, Quantization.per_axis(scales, axis))


def _packed(draw: Draw, w: Tensor) -> Tensor:
    """The same weights in 4 bits, two in a byte."""
    steps = np.clip(w.data // 16, -7, 7).astype(np.int8).reshape(-1)
    pairs = np.append(steps, np.zeros(steps.size % 2, np.int8)).reshape(-1, 2)
    data = ((pairs[:, 0] & 15) | (pairs[:, 1] << 4)).astype(np.uint8)
    return Tensor("packed", DType.INT4, w.shape, data=data, quantization=w.quantization)


def _bias(draw: Draw, x: Quantization, w: Quantization, size: int, needed: bool = False) -> Tensor | None:
    if not needed and draw.chance(0.25):
        return None
    scale = x.scale[0] * w.scale
    q = Quantization.per_axis(scale, 0) if len(scale) > 1 else Quantization.per_tensor(float(scale[0]))
    most = 1 << draw.size(20, 4)
    values = draw.rng.integers(-most, most, size)
    return draw.constant(values.astype(np.int64 if draw.is_wide else np.int32), q)


def _output(draw: Draw, x: Quantization, w: Quantization, count: int) -> Quantization:
    """A scale with which sums of this many products use the range, or saturate some."""
    factor = float(x.scale[0]) * float(np.median(w.scale)) * 80 * np.sqrt(count)
    return draw.affine(factor * draw.scale(0.2, 3))


def _window(draw: Draw) -> dict[str, int]:
    dilated = draw.chance(0.25)
    return {"stride_h": 1 if dilated else draw.size(3), "stride_w": 1 if dilated else draw.size(3),
            "dilation_h_factor": draw.size(2) if dilated else 1, "dilation_w_factor": draw.size(2) if dilated else 1,
            "padding": draw.among(list(Padding)), "fused_activation_function": draw.among(FUSED)}


def _image(draw: Draw, channels: int, least: int) -> tuple[int, ...]:
    return draw.size(2), draw.size(10, least), draw.size(10, least), channels


@drawn("CONV_2D", *BOTH)
def _conv(draw: Draw, packed: bool = False) -> None:
    taken, groups = draw.size(5), 1 if draw.chance(0.8) else 2
    kernel = (groups * draw.size(4), draw.size(3), draw.size(3), taken)
    q = draw.affine()
    x = draw.x(_image(draw, taken * groups, 6), q)
    w = _weights(draw, kernel, 0)
    w = _packed(draw, w) if packed else w
    inputs = [x, w, _bias(draw, q, w.quantization, kernel[0], needed=True)]
    draw.node(ops.Conv2D(**_window(draw)), inputs, _output(draw, q, w.quantization, w.size // kernel[0]))


@drawn("DEPTHWISE_CONV_2D", *BOTH)
def _depthwise(draw: Draw, packed: bool = False) -> None:
    channels, multiplier = draw.size(5), draw.size(3)
    kernel = (1, draw.size(3), draw.size(3), channels * multiplier)
    q = draw.affine()
    x = draw.x(_image(draw, channels, 6), q)
    w = _weights(draw, kernel, 3)
    w = _packed(draw, w) if packed else w
    window = _window(draw)
    window["stride_w"] = window["stride_h"]
    op = ops.DepthwiseConv2D(depth_multiplier=multiplier, **window)
    draw.node(op, [x, w, _bias(draw, q, w.quantization, kernel[3], needed=packed)],
              _output(draw, q, w.quantization, kernel[1] * kernel[2]))


@drawn("TRANSPOSE_CONV", *BOTH)
def _transpose_conv(draw: Draw) -> None:
    kernel = (draw.size(4), draw.size(3), draw.size(3), draw.size(4))
    strides, padding = (draw.size(3), draw.size(3)), draw.among(list(Padding))
    q = draw.affine()
    x = draw.x(_image(draw, kernel[3], 2), q)
    sizes = [n * s if padding == Padding.SAME else (n - 1) * s + max(k, s)
             for n, s, k in zip(x.shape[1:3], strides, kernel[1:3], strict=True)]
    if padding == Padding.VALID:
        sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[1:3], strides, kernel[1:3], strict=True)]
    w = _weights(draw, kernel, 0)
    op = ops.TransposeConv(padding=padding, stride_h=strides[0], stride_w=strides[1],
                           fused_activation_function=draw.among(FUSED))
    inputs = [draw.ints(x.shape[0], *sizes, kernel[0]), w, x, _bias(draw, q, w.quantization, kernel[0])]
    draw.node(op, inputs, _output(draw, q, w.quantization, w.size // kernel[0]))


@drawn("FULLY_CONNECTED", *BOTH)
def _fully_connected(draw: Draw, packed: bool = False) -> None:
    rows, depth, width = draw.size(5), draw.size(40), draw.size(9)
    q = draw.affine()
    x = draw.x((rows, depth), q)
    w = _weights(draw, (width, depth), 0)
    w = _packed(draw, w) if packed else w
    op = ops.FullyConnected(fused_activation_function=draw.among(FUSED))
    draw.node(op, [x, w, _bias(draw, q, w.quantization, width)], _output(draw, q, w.quantization, depth))


@drawn("BATCH_MATMUL", *BOTH)
def _batch_matmul(draw: Draw) -> None:
    rows, depth, columns = draw.size(5), draw.size(20), draw.size(5)
    lead = draw.shape((0, 1, 2), 3)
    other = lead if draw.chance(0.6) else tuple(1 if draw.chance(0.5) else n for n in lead)
    adj_x, adj_y = draw.chance(0.3), draw.chance(0.5)
    q, r = draw.affine(), draw.affine()
    x = draw.x((*lead, *((depth, rows) if adj_x else (rows, depth))), q)
    y = draw.x((*other, *((columns, depth) if adj_y else (depth, columns))), r)
    wide = 256 if draw.is_wide else 1
    scale = float(q.scale[0] * r.scale[0]) * 80 * wide * np.sqrt(depth) * draw.scale(0.2, 3)
    draw.node(ops.BatchMatMul(adj_x=adj_x, adj_y=adj_y), [x, y], draw.affine(scale))


def _pool(draw: Draw, kind: type[ops.AveragePool2D | ops.MaxPool2D]) -> None:
    q = draw.affine(draw.scale(0.002, 0.2))
    op = kind(filter_height=draw.size(4), filter_width=draw.size(4), stride_h=draw.size(3), stride_w=draw.size(3),
              padding=draw.among(list(Padding)), fused_activation_function=draw.among(FUSED))
    draw.node(op, [draw.x(_image(draw, draw.size(4), 4), q)], q)


@drawn("AVERAGE_POOL_2D", "int8", "int16", "uint8")
def _average(draw: Draw) -> None:
    _pool(draw, ops.AveragePool2D)


@drawn("MAX_POOL_2D", "int8", "int16", "uint8")
def _maximum(draw: Draw) -> None:
    _pool(draw, ops.MaxPool2D)


def _resize(draw: Draw, kind: type[ops.ResizeBilinear | ops.ResizeNearestNeighbor]) -> None:
    q = draw.affine()
    align, half = draw.among([(False, False), (True, False), (False, True)])
    x = draw.x(_image(draw, draw.size(3), 1), q)
    draw.node(kind(align_corners=align, half_pixel_centers=half), [x, draw.ints(draw.size(17), draw.size(17))], q)


@drawn("RESIZE_BILINEAR", *BOTH)
def _bilinear(draw: Draw) -> None:
    _resize(draw, ops.ResizeBilinear)


@drawn("RESIZE_NEAREST_NEIGHBOR", *BOTH)
def _nearest(draw: Draw) -> None:
    _resize(draw, ops.ResizeNearestNeighbor)


@drawn("CONV_2D (4-bit weights)", "int8")
def _conv_packed(draw: Draw) -> None:
    _conv(draw, packed=True)


@drawn("DEPTHWISE_CONV_2D (4-bit weights)", "int8")
def _depthwise_packed(draw: Draw) -> None:
    _depthwise(draw, packed=True)


@drawn("FULLY_CONNECTED (4-bit weights)", "int8")
def _fully_connected_packed(draw: Draw) -> None:
    _fully_connected(draw, packed=True)
