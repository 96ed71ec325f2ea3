"""A TFLite file of channel-first origin is cleaned; what stays says why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from graph_maker import Maker
from test_passes_models import run_litert

from vitrify import ops
from vitrify.importers import load
from vitrify.ir import Model
from vitrify.passes import optimize
from vitrify.passes.layout.left import left_transposes
from vitrify.tflite import write


def channel_first(m: Maker) -> Model:
    """Two convolutions between TRANSPOSEs and a bias of shape [1,C,1,1], as a converter from PyTorch writes them."""
    x = m.transpose(m.nchw_conv(m.input(1, 3, 8, 8), 5), 0, 1, 2, 3)
    biased = m.op(ops.Add(), x, m.weights(1, 5, 1, 1))
    return m.model(m.conv(m.transpose(biased, 0, 2, 3, 1), 4))


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_transposes_of_a_tflite_file(tmp_path: Path, layout: str) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    write(channel_first(Maker()), before)
    model = load(before)
    optimize(model, input_layout=layout, output_layout=layout)
    assert len(model.main.nodes_of(ops.Transpose)) <= 1
    write(model, after)
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)
    given = x if model.main.inputs[0].shape == x.shape else x.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(run_litert(after, {0: given})[0], run_litert(before, {0: x})[0], rtol=1e-5, atol=1e-5)


def test_reasons() -> None:
    m = Maker()
    x = m.input(1, 3, 8, 8)
    model = m.model(m.nchw_conv(x, 5), m.op(ops.Neg(), m.reshape(m.transpose(m.reshape(
        m.op(ops.Exp(), m.input(4, 6, name="rows")), 12, 2), 1, 0), 4, 6)))
    optimize(model, input_layout="nchw", output_layout="nchw")
    reasons = [one.reason for one in left_transposes(model)]
    assert len(reasons) == 3
    assert any("the model takes 'x' in this order" in reason for reason in reasons)
    assert any("in this order" in reason and "the model gives" in reason for reason in reasons)
    assert any("a reshape of [4, 6] to [12, 2]" in reason for reason in reasons)
