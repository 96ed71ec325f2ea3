"""Vectors of length 1 within a network: the same values, in operators that an NPU has."""

from __future__ import annotations

import numpy as np
import pytest
from graph_maker import Maker, check_kept, kinds

import vitrify as vt
from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import to_integer_forms

WRITTEN = ["MUL", "FULLY_CONNECTED", "RSQRT", "MUL"]


def network(*shape: int, last: bool = False) -> Model:
    m = Maker()
    unit = m.op(ops.L2Normalization(), m.input(*shape))
    return m.model(unit if last else m.op(ops.Mul(), unit, m.weights(shape[-1])))


@pytest.mark.parametrize("shape", [(3, 16), (1, 5, 16), (1, 4, 5, 16)], ids=str)
def test_form(shape: tuple[int, ...]) -> None:
    model = network(*shape)
    check_kept(model, to_integer_forms)
    assert kinds(model) == [*WRITTEN, "MUL"]


def test_the_last_of_a_network_stays() -> None:
    model = network(1, 16, last=True)
    to_integer_forms(model)
    assert kinds(model) == ["L2_NORMALIZATION"]


def test_int8() -> None:
    model = network(1, 30, 24)
    int8 = vt.quantize(model, random_calibration=True)
    assert vt.check(int8, "imx93").coverage.nodes == 1.0
    x = np.random.default_rng(0).uniform(size=(1, 30, 24)).astype(np.float32)
    wanted, found = vt.run(model, {"x": x}), vt.run(int8, {"x": x})
    for name, value in wanted.items():
        error = float(np.square(found[name] - value).sum() / np.square(value).sum())
        assert error < 10 ** -3, f"{-10 * np.log10(error):.1f} dB"
