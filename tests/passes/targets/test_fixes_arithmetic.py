"""Fixes of operators that compute: exact, or within what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quantized_maker import Maker, check_fix, largest_difference, run

from vitrify import ops
from vitrify.ir import DType, Model, Quantization
from vitrify.passes.targets import find
from vitrify.pipeline.checking.fixes.applying import apply_fixes
from vitrify.targets import base as targets


def mean(axes: tuple[int, ...], *shape: int, keep: bool = True, dtype: DType = DType.INT8,
         scale: float = 0.05) -> Model:
    m = Maker(dtype)
    return m.model(m.op(ops.Mean(keep_dims=keep), m.input(*shape), m.ints(*axes), scale=scale))


def arg_max(axis: int, *shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.ArgMax(output_type=2), m.input(*shape), m.ints(axis)))


def softmax(*shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.Softmax(beta=1.0), m.input(*shape), scale=1 / 256, zero=-128))


def matmul(x: tuple[int, ...], y: tuple[int, ...], adj_y: bool = False) -> Model:
    m = Maker()
    data = m.random.integers(-127, 128, y)
    return m.model(m.op(ops.BatchMatMul(adj_y=adj_y), m.input(*x),
                        m.const(data, np.int8, Quantization.per_tensor(0.01)), scale=0.2))


def wide_product(columns: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.BatchMatMul(), m.input(1, 2, 3), m.input(1, 3, columns), scale=0.3))


def int16_product() -> Model:
    m = Maker(DType.INT16)
    return m.model(m.op(ops.BatchMatMul(adj_x=True), m.input(1, 8, 3), m.input(1, 8, 5), scale=900.0))


def sum_up(axes: tuple[int, ...], *shape: int, keep: bool = True) -> Model:
    m = Maker()
    return m.model(m.op(ops.Sum(keep_dims=keep), m.input(*shape), m.ints(*axes), scale=0.6))


def quotient(value: int, scale: float, dtype: DType = DType.INT8, out: float = 0.05) -> Model:
    m = Maker(dtype)
    kind = dtype.numpy
    divisor = m.const(np.full((1, 1, 1, 1), value), kind, Quantization.per_tensor(scale))
    return m.model(m.op(ops.Div(), m.input(1, 5, 6, 7), divisor, scale=out))


def dense(*shape: int, outputs: int = 24, bias: bool = True) -> Model:
    m = Maker()
    x = m.input(*shape)
    inputs = m.weights(outputs, shape[-1], x=x, bias=bias)
    return m.model(m.op(ops.FullyConnected(keep_num_dims=True), x, *inputs, scale=0.04))


def square_root() -> Model:
    m = Maker()
    return m.model(m.op(ops.Sqrt(), m.input(1, 4, 4, 32, scale=0.01, zero=-128), scale=1.6 / 255, zero=-128))


def unit_length(*shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.L2Normalization(), m.input(*shape, zero=-20), scale=1 / 128, zero=0))


def log_softmax(scale: float, *shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.LogSoftmax(), m.input(*shape, scale=scale), scale=1 / 16, zero=127))


def bilinear(shape: tuple[int, ...], size: tuple[int, int], corners: bool = False, centres: bool = False) -> Model:
    m = Maker()
    op = ops.ResizeBilinear(align_corners=corners, half_pixel_centers=centres)
    return m.model(m.op(op, m.input(*shape), m.ints(*size)))


CASES: dict[str, tuple[str, int, Callable[[], Model]]] = {
    "mean_of_batch": ("batches", 0, lambda: mean((1, 2), 3, 5, 6, 8)),
    "mean_of_batch_dropped": ("batches", 0, lambda: mean((1, 2), 4, 7, 5, 3, keep=False)),
    "mean_of_batch_int16": ("batches", 0, lambda: mean((1, 2), 2, 5, 6, 8, dtype=DType.INT16)),
    "mean_over_batch": ("batches", 0, lambda: mean((0,), 6, 1, 1, 8)),
    "mean_of_depth": ("depth-means", 0, lambda: mean((3,), 1, 5, 6, 20)),
    "mean_of_rows_and_depth": ("depth-means", 0, lambda: mean((1, 3), 1, 5, 6, 20, scale=0.02)),
    "mean_of_all": ("depth-means", 0, lambda: mean((1, 2, 3), 1, 5, 6, 20)),
    "mean_long": ("large-means", 0, lambda: mean((1,), 1, 10000, 3)),
    "mean_long_depth": ("large-means", 0, lambda: mean((2,), 1, 3, 6000)),
    "arg_max_rows": ("arg-max", 0, lambda: arg_max(1, 1, 5, 6, 7)),
    "arg_max_first": ("arg-max", 0, lambda: arg_max(0, 9, 1)),
    "arg_max_128": ("arg-max-tiles", 0, lambda: arg_max(3, 1, 3, 5, 128)),
    "arg_max_classes": ("arg-max-tiles", 0, lambda: arg_max(-1, 1, 1000)),
    "arg_max_uneven": ("arg-max-tiles", 0, lambda: arg_max(1, 6, 1009)),
    "softmax_rows": ("softmax-tiles", 0, lambda: softmax(1, 300, 250, 3)),
    "constant_matmul": ("constant-matmuls", 0, lambda: matmul((1, 60, 64), (64, 50))),
    "constant_matmul_turned": ("constant-matmuls", 0, lambda: matmul((2, 3, 25, 40), (1, 1, 39, 40), adj_y=True)),
    "wide_product": ("matmuls", 0, lambda: wide_product(70000)),
    "int16_product": ("int8-matmuls", 600, int16_product),
    "sum_of_neighbours": ("one-axis-sums", 0, lambda: sum_up((1, 2), 1, 5, 6, 4)),
    "sum_apart": ("one-axis-sums", 0, lambda: sum_up((1, 3), 2, 5, 3, 4, keep=False)),
    "dense_on_image": ("dense-convolutions", 1, lambda: dense(1, 9, 7, 40)),
    "dense_without_bias": ("dense-convolutions", 1, lambda: dense(1, 2, 3, 16, bias=False)),
    "square_root": ("square-roots", 1, square_root),
    "unit_length": ("unit-lengths", 1, lambda: unit_length(1, 512)),
    "unit_length_short": ("unit-lengths", 1, lambda: unit_length(2, 3)),
    "unit_length_of_pixels": ("unit-lengths", 1, lambda: unit_length(1, 3, 5, 16)),
    "log_softmax": ("log-softmaxes", 1, lambda: log_softmax(0.05, 1, 150, 29)),
    "log_softmax_even": ("log-softmaxes", 1, lambda: log_softmax(0.0002, 4, 1000)),
    "log_softmax_sharp": ("log-softmaxes", 1, lambda: log_softmax(1.0, 1, 3, 4, 150)),
    "log_softmax_classes": ("log-softmaxes", 1, lambda: log_softmax(0.02, 1, 3, 4, 150)),
    "log_softmax_of_two": ("log-softmaxes", 1, lambda: log_softmax(0.2, 40, 2)),
    "quotient": ("constant-quotients", 1, lambda: quotient(100, 0.03)),
    "quotient_int16": ("constant-quotients", 1, lambda: quotient(-3000, 0.001, DType.INT16, 0.02)),
    "bilinear_corners": ("bilinear-products", 2, lambda: bilinear((1, 9, 9, 8), (18, 18), corners=True)),
    "bilinear_8": ("bilinear-products", 2, lambda: bilinear((1, 5, 7, 4), (40, 56), centres=True)),
    "bilinear_uneven": ("bilinear-products", 2, lambda: bilinear((1, 6, 5, 4), (11, 13))),
    "bilinear_smaller": ("bilinear-products", 2, lambda: bilinear((1, 12, 16, 4), (6, 5), centres=True)),
}


@pytest.mark.parametrize("name", CASES)
def test_arithmetic_is_within_its_class(name: str, tmp_path: Path) -> None:
    fix, most, build = CASES[name]
    check_fix(build, fix, tmp_path, most=most)


@pytest.mark.parametrize("high", [-128, -127, -126, -100, 127], ids=str)
def test_the_first_of_equal_values_is_chosen(high: int, tmp_path: Path) -> None:
    """Few different values, so that each row has its maximum many times; with the lowest value alone, everywhere."""
    model = arg_max(3, 1, 20, 5, 260)
    random = np.random.default_rng(3)
    batches = [[random.integers(-128, high, (1, 20, 5, 260), np.int8, endpoint=True)]]
    before = run(model, tmp_path / "before.tflite", batches)
    assert apply_fixes(model, targets.load("ethos-u55-128"), find(["arg-max-tiles"]))
    assert largest_difference(before, run(model, tmp_path / "after.tflite", batches)) == 0
