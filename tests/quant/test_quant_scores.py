"""What is given out as a score, and what has a scale of its own by its operator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quant_graphs import Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import Model
from vitrify.quant import quantize

Array = np.ndarray[Any, np.dtype[Any]]


def scores(low: float, high: float) -> Model:
    """The logistic of an input moved to a range."""
    net = Net(1, 8, 8, 2)
    scaled = net.add(ops.Mul(), net.x, net.constant(np.float32((high - low) / 2)))
    return net.model(net.add(ops.Logistic(), net.add(ops.Add(), scaled, net.constant(np.float32((high + low) / 2)))))


@pytest.mark.parametrize(("low", "high", "whole"), [(-0.2, 0.2, False), (-1, 1, False), (-6, -3, True),
                                                    (-4, 4, True)], ids=str)
def test_sparse_scores_get_the_whole_curve(low: float, high: float, whole: bool, tmp_path: Path) -> None:
    model = scores(low, high)
    made = quantize(model, statistics_of(model, tmp_path)).model
    (logistic,) = [n for n in made.main if n.op.kind == "LOGISTIC"]
    taken = logistic.input(0).quantization
    assert taken is not None
    levels = (high - low) / float(taken.scale[0])
    if whole:
        assert levels < 220
    else:
        assert 120 < levels <= 257
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, made))
    assert np.abs(wanted - found).max() < 0.012
    assert whole or sqnr(wanted, found) > 45


def test_a_join_of_operators_with_a_fixed_scale_is_left_whole(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 2)
    parts = [net.add(ops.Tanh(), net.conv(net.x, 3)) for _ in range(2)]
    model = net.model(net.add(ops.Concatenation(axis=3), *parts))
    result = quantize(model, statistics_of(model, tmp_path))
    assert len(result.model.main.outputs) == 1
    assert not result.findings
