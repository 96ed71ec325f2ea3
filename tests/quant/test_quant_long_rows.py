"""Softmax over long rows: 16 bits where the rows are flat, 8 where each has a clear winner."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quant_graphs import Net, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import DType, Model
from vitrify.quant import Override, Recipe, quantize

Array = np.ndarray[Any, np.dtype[Any]]


def shares(length: int) -> Model:
    """Shares of a row, each multiplied with a number, so that the softmax is no output."""
    net = Net(1, 4, length)
    return net.model(net.add(ops.Mul(), net.add(ops.Softmax(beta=1.0), net.x, name="shares"),
                             net.constant(np.float32(3))))


def rows(length: int, winner: float, count: int = 4) -> list[dict[str, Array]]:
    """Scores of little difference, one of each row raised by ``winner``."""
    random = np.random.default_rng(2)
    samples = []
    for _ in range(count):
        values = random.uniform(-0.5, 0.5, (1, 4, length)).astype(np.float32)
        values[0, np.arange(4), random.integers(0, length, 4)] += winner
        samples.append({"x": values})
    return samples


@pytest.mark.parametrize(("length", "winner", "wide"), [
    (1000, 0, True), (6625, 0, True), (6625, 15, False), (1000, 12, False), (256, 0, False)], ids=str)
def test_the_width_fits_what_was_seen(length: int, winner: float, wide: bool, tmp_path: Path) -> None:
    model, arrays = shares(length), rows(length, winner)
    result = quantize(model, statistics_of(model, tmp_path, arrays=arrays), Recipe())
    (softmax,) = [n for n in result.model.main if n.op.kind == "SOFTMAX"]
    assert (softmax.input(0).dtype is DType.INT16) == wide
    assert not [f for f in result.findings if f.code == "ops.long_softmax"]
    (wanted,), (found,) = (run(m, arrays[0]).values() for m in (model, result.model))
    if winner:
        assert found.max() == pytest.approx(wanted.max(), abs=0.03)
    assert sqnr(wanted, found) > (25 if length > 256 else 0)


def test_flat_rows_forced_into_8_bits_are_told(tmp_path: Path) -> None:
    model, recipe = shares(1000), Recipe(overrides=(Override(operator="SOFTMAX", activations="int8"),))
    result = quantize(model, statistics_of(model, tmp_path, recipe, rows(1000, 0)), recipe)
    assert [f.code for f in result.findings] == ["ops.long_softmax"]
