"""SiLU as GELU: the factor goes through what keeps it, and ends in the weights on both sides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quantized_maker import Maker, check_fix, given, run

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes.targets import find
from vitrify.passes.targets.silu_as_gelu import FACTOR
from vitrify.pipeline.checking.fixes.applying import apply_fixes
from vitrify.targets import base as targets


def conv(m: Maker, x: Tensor, channels: int, **steps: float) -> Tensor:
    inputs = m.weights(channels, 1, 1, x.shape[-1], x=x)
    return m.op(ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID), x, *inputs, **steps)


def silu(m: Maker, x: Tensor, zero: int = -116) -> Tensor:
    gate = m.op(ops.Logistic(), x, scale=1 / 256, zero=-128)
    return m.op(ops.Mul(), x, gate, scale=0.025, zero=zero)


def between_convolutions() -> Model:
    m = Maker()
    return m.model(conv(m, silu(m, conv(m, m.input(1, 6, 5, 16), 24)), 16))


def joined() -> Model:
    """A block with a split, a shortcut, a pool and a concatenation, as detectors have them."""
    m = Maker()
    steps = {"scale": 0.025, "zero": -116}
    first, second = m.outs(ops.Split(num_splits=2), m.ints(3), silu(m, conv(m, m.input(1, 8, 8, 16), 32)), **steps)
    added = m.op(ops.Add(), second, silu(m, conv(m, second, 16)), **steps)
    pooled = m.op(ops.MaxPool2D(filter_height=3, filter_width=3, stride_h=1, stride_w=1, padding=ops.Padding.SAME),
                  added, **steps)
    return m.model(conv(m, m.op(ops.Concatenation(axis=3), first, added, pooled, **steps), 8))


def gated() -> Model:
    """Squeeze and excite: the gate keeps its scale."""
    m = Maker()
    x = silu(m, conv(m, m.input(1, 6, 6, 16), 16))
    mean = m.op(ops.Mean(keep_dims=True), x, m.ints(1, 2), scale=0.01)
    gate = m.op(ops.Logistic(), conv(m, silu(m, conv(m, mean, 8)), 16), scale=1 / 256, zero=-128)
    return m.model(conv(m, m.op(ops.Mul(), x, gate, scale=0.02), 8))


CASES: dict[str, tuple[int, int, Callable[[], Model]]] = {
    "between_convolutions": (3, 1, between_convolutions), "joined": (5, 2, joined), "gated": (3, 2, gated)}


@pytest.mark.parametrize("name", CASES)
def test_silu_becomes_gelu(name: str, tmp_path: Path) -> None:
    most, count, build = CASES[name]
    model, _ = check_fix(build, "silu-as-gelu", tmp_path, most=most)
    assert model.main.count(ops.Gelu) == count
    assert model.main.count(ops.Logistic) == (name == "gated")


def test_the_factor_is_in_the_scales_of_both_convolutions() -> None:
    before, after = between_convolutions(), between_convolutions()
    apply_fixes(after, targets.load("imx93"), find(["silu-as-gelu"]))
    old, new = (model.main.nodes_of(ops.Conv2D) for model in (before, after))
    for one, other, factor, bias in zip(old, new, (1 / FACTOR, FACTOR), (1 / FACTOR, 1), strict=True):
        for index, wanted in ((1, factor), (2, bias)):
            first, second = one.input(index), other.input(index)
            assert first.quantization is not None
            assert second.quantization is not None
            np.testing.assert_array_equal(first.data, second.data)
            np.testing.assert_allclose(second.quantization.scale, first.quantization.scale * wanted, rtol=1e-6)


def unscaled_output() -> Model:
    m = Maker()
    return m.model(silu(m, conv(m, m.input(1, 4, 4, 8), 8)))


def of_the_input() -> Model:
    m = Maker()
    return m.model(conv(m, silu(m, m.input(1, 4, 4, 8)), 8))


def before_a_softmax() -> Model:
    m = Maker()
    y = silu(m, conv(m, m.input(1, 4, 4, 8), 8))
    return m.model(m.op(ops.Softmax(beta=1.0), y, scale=1 / 256, zero=-128))


@pytest.mark.parametrize("build", [unscaled_output, of_the_input, before_a_softmax])
def test_a_factor_that_nothing_takes_is_not_given(build: Callable[[], Model], tmp_path: Path) -> None:
    model = build()
    batches = given(model)
    before = run(model, tmp_path / "before.tflite", batches)
    assert not apply_fixes(model, targets.load("imx93"), find(["silu-as-gelu"]))
    for one, other in zip(before, run(model, tmp_path / "after.tflite", batches), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
