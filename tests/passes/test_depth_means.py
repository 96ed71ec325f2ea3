"""Means over channels become products: the same values in float, and nothing on the CPU in int8."""

from __future__ import annotations

import numpy as np
import pytest
from graph_maker import Maker, check_kept, kinds

import vitrify as vt
from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import INTEGER_FORMS, Runner, to_integer_forms

# shape, axes, axes kept, what comes out
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], bool, list[str]]] = {
    "map": ((1, 6, 5, 24), (3,), True, ["CONV_2D"]),
    "rows": ((1, 7, 24), (2,), True, ["FULLY_CONNECTED"]),
    "batch of maps": ((2, 3, 5, 24), (-1,), True, ["FULLY_CONNECTED"]),
    "five axes": ((1, 2, 3, 4, 8), (4,), True, ["FULLY_CONNECTED"]),
    "axes dropped": ((1, 6, 5, 24), (3,), False, ["CONV_2D", "RESHAPE"]),
    "rows dropped": ((4, 24), (1,), False, ["FULLY_CONNECTED", "RESHAPE"]),
    "places": ((1, 6, 5, 24), (1, 2), True, ["MEAN"]),
    "places and channels": ((1, 6, 5, 24), (1, 2, 3), True, ["MEAN", "CONV_2D"]),
    "rows and channels": ((1, 6, 24), (2, 1), False, ["MEAN", "FULLY_CONNECTED", "RESHAPE"]),
    "real and imaginary part": ((1, 6, 5, 2), (3,), True, ["MEAN"]),
    "everything": ((24,), (0,), True, ["MEAN"]),
}


@pytest.mark.parametrize("case", CASES)
def test_form(case: str) -> None:
    shape, axes, keep, wanted = CASES[case]
    m = Maker()
    model = m.model(m.op(ops.Mean(keep_dims=keep), m.input(*shape), m.ints(*axes)))
    check_kept(model, lambda model: Runner(model).run(INTEGER_FORMS))
    assert kinds(model) == wanted


def normalized(*shape: int) -> Model:
    m = Maker()
    x = m.input(*shape)
    last = m.ints(len(shape) - 1)
    centred = m.op(ops.Sub(), x, m.op(ops.Mean(keep_dims=True), x, last))
    variance = m.op(ops.Mean(keep_dims=True), m.op(ops.Mul(), centred, centred), last)
    inverse = m.op(ops.Rsqrt(), m.op(ops.Add(), variance, m.const(1e-3)))
    return m.model(m.op(ops.Mul(), centred, inverse))


def test_what_is_added_to_a_variance_is_its_bias() -> None:
    model = normalized(1, 6, 5, 24)
    check_kept(model, to_integer_forms)
    assert kinds(model) == ["CONV_2D", "SUB", "MUL", "CONV_2D", "RSQRT", "MUL"]


@pytest.mark.parametrize("shape", [(1, 6, 5, 24), (1, 30, 24)], ids=["map", "rows"])
def test_int8(shape: tuple[int, ...]) -> None:
    model = normalized(*shape)
    int8 = vt.quantize(model, random_calibration=True)
    assert vt.check(int8, "imx93").coverage.nodes == 1.0
    x = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    wanted, found = vt.run(model, {"x": x}), vt.run(int8, {"x": x})
    for name, value in wanted.items():
        error = float(np.square(found[name] - value).sum() / np.square(value).sum())
        assert error < 10 ** -2.8, f"{-10 * np.log10(error):.1f} dB"
