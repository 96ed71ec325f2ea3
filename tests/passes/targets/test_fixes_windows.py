"""Fixes of convolutions and pools: exact, and wholly on the NPU afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from quantized_maker import Maker, check_fix

from vitrify import ops
from vitrify.ir import DType, Model

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID


def conv(shape: tuple[int, ...], kernel: tuple[int, int], stride: tuple[int, int], *, padding: ops.Padding = VALID,
         outputs: int = 8, dilation: int = 1, dtype: DType = DType.INT8, bias: bool = True,
         activation: ops.Activation = ops.Activation.NONE) -> Model:
    m = Maker(dtype)
    x = m.input(*shape)
    op = ops.Conv2D(padding=padding, stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation,
                    dilation_w_factor=dilation, fused_activation_function=activation)
    return m.model(m.op(op, x, *m.weights(outputs, *kernel, shape[3], x=x, bias=bias), scale=0.04))


def depthwise(shape: tuple[int, ...], kernel: int, stride: int, padding: ops.Padding, multiplier: int = 1) -> Model:
    m = Maker()
    x = m.input(*shape)
    op = ops.DepthwiseConv2D(padding=padding, stride_h=stride, stride_w=stride, depth_multiplier=multiplier)
    return m.model(m.op(op, x, *m.weights(1, kernel, kernel, shape[3] * multiplier, axis=3, x=x), scale=0.04))


def pool(kind: type[ops.MaxPool2D | ops.AveragePool2D], shape: tuple[int, ...], window: tuple[int, int],
         stride: tuple[int, int], padding: ops.Padding, dtype: DType = DType.INT8) -> Model:
    m = Maker(dtype)
    return m.model(m.op(kind(padding=padding, stride_h=stride[0], stride_w=stride[1], filter_height=window[0],
                             filter_width=window[1]), m.input(*shape)))


def transposed(shape: tuple[int, ...], kernel: tuple[int, int], stride: tuple[int, int], out: tuple[int, int],
               padding: ops.Padding, *, outputs: int = 5, dtype: DType = DType.INT8) -> Model:
    m = Maker(dtype)
    x = m.input(*shape)
    weights, *bias = m.weights(outputs, *kernel, shape[3], x=x)
    op = ops.TransposeConv(padding=padding, stride_h=stride[0], stride_w=stride[1])
    return m.model(m.op(op, m.ints(shape[0], *out, outputs), weights, x, *bias, scale=0.04))


CASES: dict[str, tuple[str, Callable[[], Model]]] = {
    "patches_16": ("long-strides", lambda: conv((1, 32, 48, 3), (16, 16), (16, 16))),
    "patches_4_relu": ("long-strides", lambda: conv((1, 16, 16, 3), (4, 4), (4, 4), activation=ops.Activation.RELU)),
    "patches_2": ("long-strides", lambda: conv((1, 8, 8, 6), (2, 2), (2, 2))),
    "patches_int16": ("long-strides", lambda: conv((1, 16, 16, 3), (8, 8), (8, 8), dtype=DType.INT16)),
    "patches_left_over": ("long-strides", lambda: conv((1, 18, 19, 3), (4, 4), (4, 4))),
    "kernel_7_stride_4": ("long-strides", lambda: conv((1, 21, 32, 3), (7, 7), (4, 4), padding=SAME)),
    "kernel_11_stride_4": ("long-strides", lambda: conv((1, 43, 43, 3), (11, 11), (4, 4))),
    "kernel_3_stride_5": ("long-strides", lambda: conv((1, 22, 24, 4), (3, 3), (5, 5), padding=SAME)),
    "stride_4_by_1": ("long-strides", lambda: conv((1, 16, 9, 4), (4, 3), (4, 1), padding=SAME)),
    "dilated_stride_4": ("long-strides", lambda: conv((1, 20, 20, 4), (3, 3), (4, 4), padding=SAME, dilation=2)),
    "batch_of_two": ("long-strides", lambda: conv((2, 8, 8, 3), (4, 4), (4, 4))),
    "depthwise_stride_4": ("long-strides", lambda: depthwise((1, 17, 20, 6), 5, 4, SAME)),
    "depthwise_stride_5": ("long-strides", lambda: depthwise((1, 22, 22, 4), 3, 5, VALID)),
    "depthwise_stride_6": ("long-strides", lambda: depthwise((1, 24, 24, 1), 3, 6, SAME, 4)),
    "max_stride_4": ("long-strides", lambda: pool(ops.MaxPool2D, (1, 18, 18, 5), (5, 5), (4, 4), SAME)),
    "average_stride_4": ("long-strides", lambda: pool(ops.AveragePool2D, (1, 17, 17, 5), (5, 5), (4, 4), SAME)),
    "average_9": ("large-pools", lambda: pool(ops.AveragePool2D, (1, 24, 26, 5), (9, 9), (2, 3), SAME)),
    "average_whole": ("large-pools", lambda: pool(ops.AveragePool2D, (1, 10, 10, 5), (30, 9), (1, 1), SAME)),
    "max_rows": ("large-pools", lambda: pool(ops.MaxPool2D, (1, 700, 4, 5), (700, 4), (1, 1), VALID)),
    "max_area": ("large-pools", lambda: pool(ops.MaxPool2D, (1, 256, 300, 2), (256, 300), (1, 1), VALID)),
    "transposed_4": ("transposed-strides", lambda: transposed((1, 5, 6, 7), (4, 4), (4, 4), (20, 24), VALID)),
    "transposed_3_of_5": ("transposed-strides", lambda: transposed((1, 4, 5, 3), (5, 5), (3, 3), (12, 15), SAME)),
    "transposed_1_by_4": ("transposed-strides", lambda: transposed((1, 1, 6, 4), (1, 7), (1, 4), (1, 24), SAME)),
    "transposed_shape": ("transposed-shape", lambda: transposed((1, 4, 4, 3), (3, 3), (2, 2), (10, 9), VALID)),
    "transposed_same_odd": ("transposed-shape", lambda: transposed((1, 4, 4, 3), (3, 3), (2, 2), (7, 7), SAME)),
    "transposed_kernel_2": ("transposed-strides", lambda: transposed((1, 4, 4, 3), (2, 2), (3, 3), (11, 11), VALID)),
}


@pytest.mark.parametrize("name", CASES)
def test_windows_keep_every_value(name: str, tmp_path: Path) -> None:
    fix, build = CASES[name]
    check_fix(build, fix, tmp_path)
