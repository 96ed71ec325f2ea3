"""Rules on weights, windows and products: convolutions, fully connected layers, matrix products, pools."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node, Tensor
from vitrify.ops import AveragePool2D, Conv2D, DepthwiseConv2D, MaxPool2D, Padding, TransposeConv
from vitrify.ops.window import Window
from vitrify.targets.neutron.operators import ET_OLD, held
from vitrify.targets.rules import Breach, Variant
from vitrify.targets.rules.roles import bias, feature, features, shown, weights

EXTENT, TAPS, TRANSPOSED_STRIDE, PADDED_POOL_STRIDE = 4096, 65535, 2, 32
_CONVOLUTIONS = ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"]
_WEIGHTED = [*_CONVOLUTIONS, "FULLY_CONNECTED"]
_POOLS = ["AVERAGE_POOL_2D", "MAX_POOL_2D"]


def padded(count: int, width: int) -> int:
    """Return the next multiple of the array's width."""
    return -(-count // width) * width


def _windows(node: Node) -> tuple[Window, Window] | None:
    op = node.op
    if isinstance(op, AveragePool2D | MaxPool2D):
        return op.windows
    weight = weights(node)
    if isinstance(op, Conv2D | DepthwiseConv2D) and weight is not None and len(weight.shape) == 4:
        return op.windows(weight.shape)
    return None


def _is_padded(node: Node, windows: tuple[Window, Window]) -> bool:
    x, op = feature(node), node.op
    assert isinstance(op, AveragePool2D | MaxPool2D | Conv2D | DepthwiseConv2D)
    return x is not None and any(sum(w.pads(size, op.padding)) for w, size in zip(windows, x.shape[1:3], strict=False))


@held("neutron.weights-type", operators=_WEIGHTED, says="weights are int8", old="documented",
      why="the array multiplies with 8-bit weights", help="quantize the float model again")
def weights_type(node: Node, variant: Variant) -> Iterator[Breach]:
    """Weights of another type; float ones of a float node are told of its values already."""
    weight, x = weights(node), feature(node)
    if weight is None or (x is not None and x.dtype.is_float):
        return
    if weight.dtype not in (DType.INT8, DType.UINT8):
        yield Breach(f"the weights '{weight.name}' are {weight.dtype.label}; the NPU takes int8",
                     {"tensor": weight.name, "type": weight.dtype.label}, "int8")


@held("neutron.weights-variable", operators=_WEIGHTED, says="weights and biases are constant", old="documented",
      why="they are packed when the model is converted")
def variable(node: Node, variant: Variant) -> Iterator[Breach]:
    """Weights or biases that are computed."""
    for tensor in (weights(node), bias(node)):
        if tensor is not None and tensor.data is None:
            yield Breach(f"'{tensor.name}' is computed at run time", {"tensor": tensor.name}, "a constant")


@held("neutron.bias-type", operators=_WEIGHTED, says="a bias is int32", old="documented",
      why="it is added to a 32-bit accumulator")
def bias_type(node: Node, variant: Variant) -> Iterator[Breach]:
    """Biases of another type."""
    found, x = bias(node), feature(node)
    if found is not None and found.dtype is not DType.INT32 and not (x is not None and x.dtype.is_float):
        yield Breach(f"the bias '{found.name}' is {found.dtype.label}; the NPU takes int32",
                     {"tensor": found.name, "type": found.dtype.label}, "int32")


def _extents(node: Node) -> dict[str, tuple[int, int]]:
    windows, weight = _windows(node), weights(node)
    if windows is not None:
        return {what: (getattr(windows[0], what), getattr(windows[1], what)) for what in ("taps", "stride", "dilation")}
    if isinstance(node.op, TransposeConv) and weight is not None and len(weight.shape) == 4:
        return {"taps": (weight.shape[1], weight.shape[2])}
    return {}


@held("neutron.kernel-size", operators=[*_CONVOLUTIONS, *_POOLS], old=None,
      says=f"kernel, stride and dilation are at most {EXTENT}", why="the registers hold no more")
def extents(node: Node, variant: Variant) -> Iterator[Breach]:
    """Kernels, strides and dilations beyond the registers."""
    for what, (high, wide) in _extents(node).items():
        if what == "stride" and node.op.kind == "MAX_POOL_2D":
            continue
        if max(high, wide) > EXTENT:
            name = "kernel" if what == "taps" else what
            yield Breach(f"its {name} {high}x{wide} is beyond {EXTENT}", {name: [high, wide], "limit": EXTENT},
                         f"{min(high, EXTENT)}x{min(wide, EXTENT)}")


@held("neutron.kernel-volume", operators=_CONVOLUTIONS, old=None,
      says=f"height x width x input channels of a kernel, those rounded up to the array's width, are at most {TAPS}",
      why="a dot product is counted in 16 bits")
def volume(node: Node, variant: Variant) -> Iterator[Breach]:
    """Kernels of too many products."""
    weight = weights(node)
    if weight is None or len(weight.shape) != 4:
        return
    _, high, wide, channels = weight.shape
    depth = 1 if node.op.kind == "DEPTHWISE_CONV_2D" else channels
    found = high * wide * padded(depth, variant.limits["num_macs"])
    if found > TAPS:
        yield Breach(f"its kernel has {high}x{wide}x{padded(depth, variant.limits['num_macs'])} = {found} products, "
                     f"the limit is {TAPS}", {"products": found, "limit": TAPS}, "fewer input channels at a time")


@held("neutron.grouped-convolution", operators=["CONV_2D"], old="documented",
      says="a convolution reads all channels, or is depthwise", why="the array sums over all channels of a pixel",
      fix="separate-groups")
def groups(node: Node, variant: Variant) -> Iterator[Breach]:
    """Grouped convolutions."""
    x, weight = feature(node), weights(node)
    if x is not None and weight is not None and len(x.shape) == len(weight.shape) == 4 and weight.shape[3] and \
            x.shape[3] != weight.shape[3]:
        count = x.shape[3] // weight.shape[3]
        yield Breach(f"it has {count} groups, the limit is 1", {"groups": count, "limit": 1}, "1")


@held("neutron.transpose-conv-stride", operators=["TRANSPOSE_CONV"], old=None,
      says=f"a stride is at most {TRANSPOSED_STRIDE} and not beyond the kernel", why="the array doubles its input once")
def transposed(node: Node, variant: Variant) -> Iterator[Breach]:
    """Strides of transposed convolutions."""
    op, weight = node.op, weights(node)
    assert isinstance(op, TransposeConv)
    if weight is None or len(weight.shape) != 4:
        return
    for step, taps, axis in zip((op.stride_h, op.stride_w), weight.shape[1:3], ("height", "width"), strict=True):
        limit = min(TRANSPOSED_STRIDE, taps)
        if step > limit:
            yield Breach(f"its stride of {step} over the {axis} is beyond {limit}", {"stride": step, "limit": limit},
                         f"{limit}")


@held("neutron.transpose-conv-form", operators=["TRANSPOSE_CONV"], c=None, old="documented", s=None, source=ET_OLD,
      says="it works along the width: kernel and stride 1 high, an even stride, the kernel once or twice that; "
      "channels are multiples of the array's width", why="that converter makes it of plain convolutions of a row")
def transposed_row(node: Node, variant: Variant) -> Iterator[Breach]:
    """Anything but doubled rows in the flow before SDK 3.2."""
    op, weight = node.op, weights(node)
    assert isinstance(op, TransposeConv)
    if weight is None or len(weight.shape) != 4:
        return
    outputs, high, wide, inputs = weight.shape
    width = variant.limits["num_macs"]
    row = high == op.stride_h == 1 and op.stride_w % 2 == 0 and (
        wide == op.stride_w or (wide == 2 * op.stride_w and node.output.shape[1] == 1))
    if not row:
        yield Breach(f"its kernel is {high}x{wide} with stride {op.stride_h}x{op.stride_w}",
                     {"kernel": [high, wide], "stride": [op.stride_h, op.stride_w]}, "1x4 with stride 1x2")
    for count, what in ((inputs, "input"), (outputs, "output")):
        if count % width:
            yield Breach(f"it has {count} {what} channels, no multiple of {width}", {"channels": count, "limit": width},
                         f"{padded(count, width)}")


@held("neutron.pool-stride", operators=["MAX_POOL_2D"],
      says=f"a stride is at most {EXTENT}, with padding {PADDED_POOL_STRIDE}", old=None,
      why="the registers hold no more")
def pool_stride(node: Node, variant: Variant) -> Iterator[Breach]:
    """Long strides of a maximum."""
    windows = _windows(node)
    if windows is None:
        return
    limit = PADDED_POOL_STRIDE if _is_padded(node, windows) else EXTENT
    found = max(w.stride for w in windows)
    if found > limit:
        yield Breach(f"its stride {found} is beyond {limit}", {"stride": found, "limit": limit}, f"{limit}")


@held("neutron.pool-stride", operators=["MAX_POOL_2D"], c=None, old="documented", s=None, source=ET_OLD,
      says="a stride over the height is 1 or 2", why="that converter knows no other form")
def old_pool_stride(node: Node, variant: Variant) -> Iterator[Breach]:
    """Strides in the flow before SDK 3.2."""
    windows = _windows(node)
    if windows is not None and windows[0].stride > 2:
        yield Breach(f"its stride over the height is {windows[0].stride}, the limit is 2",
                     {"stride": windows[0].stride, "limit": 2}, "2")


@held("neutron.pool-padding", operators=["AVERAGE_POOL_2D"], says="an average is not padded", old="inferred",
      why="the NPU divides by the whole window, TFLite by what of it is inside", fix="large-pools")
def average(node: Node, variant: Variant) -> Iterator[Breach]:
    """Padded averages."""
    windows = _windows(node)
    if windows is not None and isinstance(node.op, AveragePool2D) and node.op.padding is Padding.SAME \
            and _is_padded(node, windows):
        yield Breach(f"its window {windows[0].taps}x{windows[1].taps} reaches beyond the image", {},
                     "a window that stays inside")


@held("neutron.matmul-zero-point", operators=["BATCH_MATMUL"], says="both inputs have zero point 0", old=None,
      why="the array multiplies values as they are stored; a constant's sums can be computed before, a value's cannot",
      fix="symmetric-matmuls")
def zero_point(node: Node, variant: Variant) -> Iterator[Breach]:
    """Zero points of products of two values."""
    for tensor in features(node):
        zero = _zero(tensor)
        if zero:
            yield Breach(f"'{tensor.name}' has zero point {zero}, the limit is 0",
                         {"tensor": tensor.name, "zero_point": zero, "limit": 0}, "0")


def _zero(tensor: Tensor) -> int:
    found = tensor.quantization
    return 0 if found is None or not found.zero_point.size else int(found.zero_point.reshape(-1)[0])


@held("neutron.matmul-rank", operators=["BATCH_MATMUL"], c="inferred", old="documented", says="inputs have three axes",
      why="ExecuTorch's way to the converter knows products of three axes only; others are not described")
def matmul_rank(node: Node, variant: Variant) -> Iterator[Breach]:
    """Products of more or fewer axes."""
    for tensor in features(node):
        if len(tensor.shape) != 3 and not (len(tensor.shape) > 3 and all(n == 1 for n in tensor.shape[:-3])):
            yield Breach(f"'{tensor.name}' is {shown(tensor.shape)}, of {len(tensor.shape)} axes",
                         {"rank": len(tensor.shape), "limit": 3}, "3 axes")
            return
