"""Fixes that only make a model cheaper: exact, and less work by the compiler's estimate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from quantized_maker import Maker, check_fix

from vitrify import ops, tflite
from vitrify.backends.vela import check_model
from vitrify.ir import DType, Model
from vitrify.passes.targets import find
from vitrify.pipeline.checking.fixes.applying import apply_fixes
from vitrify.targets import base as targets


def product(x: tuple[int, ...], y: tuple[int, ...], *, adj_y: bool = False) -> Model:
    """Two computed factors, as attention has them."""
    m = Maker()
    left = m.op(ops.Add(), m.input(*x), m.input(*x))
    right = m.op(ops.Add(), m.input(*y), m.input(*y), zero=9)
    return m.model(m.op(ops.BatchMatMul(adj_y=adj_y), left, right, scale=0.9))


def stem(size: tuple[int, int], kernel: tuple[int, int], border: tuple[int, int, int, int] | None) -> Model:
    """The first layer of a classifier; ``border`` is a PAD before it, None a border of its own."""
    m = Maker()
    x = m.input(1, *size, 3)
    inputs = m.weights(64, *kernel, 3, x=x)
    if border is not None:
        top, bottom, left, right = border
        x = m.op(ops.Pad(), x, m.const([[0, 0], [top, bottom], [left, right], [0, 0]]))
    op = ops.Conv2D(stride_h=2, stride_w=2, padding=ops.Padding.SAME if border is None else ops.Padding.VALID,
                    fused_activation_function=ops.Activation.RELU)
    return m.model(m.op(op, x, *inputs, scale=0.04))


def tokens(count: int, channels: int, wide: DType) -> Model:
    """A value of another width between two layers, as a sum in 16 bits has it."""
    m = Maker()
    x = m.input(1, count, channels)
    dense = ops.FullyConnected(keep_num_dims=True)
    y = m.op(ops.Quantize(), m.op(dense, x, *m.weights(channels, channels, x=x)), dtype=wide, scale=0.06, zero=0)
    return m.model(m.op(ops.Add(), y, y, dtype=wide, scale=0.1, zero=0))


def first_token() -> Model:
    m = Maker()
    x = m.input(1, 64, 96)
    dense = ops.FullyConnected(keep_num_dims=True)
    y = m.op(ops.Gelu(), m.op(dense, x, *m.weights(192, 96, x=x)))
    z = m.op(dense, y, *m.weights(96, 192, x=y))
    return m.model(m.op(ops.Slice(), z, m.ints(0, 0, 0), m.ints(1, 1, 96)))


CASES: dict[str, tuple[str, float, Callable[[], Model]]] = {
    "scores": ("split-matmuls", 0.75, lambda: product((1, 64, 32), (1, 64, 32), adj_y=True)),
    "scores_uneven": ("split-matmuls", 0.8, lambda: product((1, 50, 40), (1, 51, 40), adj_y=True)),
    "values": ("split-matmuls", 0.9, lambda: product((1, 198, 198), (1, 198, 64))),
    "values_uneven": ("split-matmuls", 0.95, lambda: product((100, 64), (64, 62))),
    "rows_apart": ("split-matmuls", 0.9, lambda: product((1, 1000, 500), (1, 500, 30))),
    "many_heads_apart": ("split-matmuls", 0.9, lambda: product((1, 6, 400, 400), (1, 6, 400, 32))),
    "stem": ("folded-stems", 0.7, lambda: stem((64, 64), (7, 7), (3, 3, 3, 3))),
    "stem_same": ("folded-stems", 0.7, lambda: stem((64, 62), (7, 7), None)),
    "stem_uneven": ("folded-stems", 0.7, lambda: stem((45, 64), (3, 9), (0, 1, 4, 5))),
    "stem_without_border": ("folded-stems", 0.7, lambda: stem((64, 64), (7, 8), (0, 0, 0, 0))),
    "tokens": ("paired-rows", 0.95, lambda: tokens(197, 96, DType.INT8)),
    "tokens_int16": ("paired-rows", 0.95, lambda: tokens(131, 192, DType.INT16)),
    "first_token": ("needed-rows", 0.5, first_token),
    "class_token": ("deep-matmuls", 0.9, lambda: product((1, 197, 197), (1, 197, 64))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_cheaper_form_is_exact(name: str, tmp_path: Path) -> None:
    fix, _, build = CASES[name]
    check_fix(build, fix, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_cheaper_form_is_cheaper(name: str, tmp_path: Path) -> None:
    fix, most, build = CASES[name]
    target = targets.load("imx93")

    def cycles(model: Model) -> int:
        tflite.write(model, tmp_path / "m.tflite")
        compiled = check_model(tmp_path / "m.tflite", target)
        assert compiled.placement.count("cpu") == 0
        return compiled.estimate.npu_cycles

    before, fixed = cycles(build()), build()
    assert apply_fixes(fixed, target, find([fix]))
    assert cycles(fixed) < most * before


@pytest.mark.parametrize("build", [lambda: product((1, 8, 64, 32), (1, 8, 64, 32), adj_y=True),
                                   lambda: product((1, 8, 8), (1, 8, 8)),
                                   lambda: product((1, 64, 64), (1, 64, 32))], ids=["many_heads", "small", "copies"])
def test_products_that_keep_all_units_busy_stay(build: Callable[[], Model]) -> None:
    assert not apply_fixes(build(), targets.load("imx93"), find(["split-matmuls"]))


def test_a_core_with_a_unit_for_products_is_left_alone() -> None:
    assert not apply_fixes(CASES["scores"][2](), targets.load("ethos-u85-256"), find(["split-matmuls", "deep-matmuls"]))
