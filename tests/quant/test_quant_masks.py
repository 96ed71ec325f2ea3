"""Attention that masks with infinity or the lowest number keeps its scores in int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quant_graphs import Net

import vitrify as vt
import vitrify.ops as ops
from vitrify.ir import DType, Model, Tensor
from vitrify.passes import to_integer_forms

TOKENS = 16
CAUSAL = np.tril(np.ones((TOKENS, TOKENS), bool))
LOWEST: dict[str, float] = {"infinity": -np.inf, "lowest number": float(np.finfo(np.float32).min), "ten thousand": -1e4}


def masked(form: str, low: float) -> Model:
    """softmax(4 x + mask), the mask causal or an input of 0 and 1."""
    net = Net(1, 2, TOKENS, TOKENS)
    scores = net.add(ops.Mul(), net.x, net.constant(np.float32(4.0)))
    if form == "add":
        sums = net.add(ops.Add(), scores, net.constant(np.where(CAUSAL, 0.0, low)[None, None]))
    elif form == "select":
        mask = Tensor("causal", DType.BOOL, (TOKENS, TOKENS), data=CAUSAL)
        sums = net.add(ops.SelectV2(), mask, scores, net.constant(np.array(low)))
    else:
        tokens = Tensor("tokens", DType.INT32, (1, 1, 1, TOKENS))
        net.graph.inputs.append(tokens)
        mask = net.add(ops.NotEqual(), tokens, net.constant(np.array(0)))
        sums = net.add(ops.Add(), scores, net.add(ops.SelectV2(), mask, net.constant(np.array([0.0])),
                                                  net.constant(np.array([low]))))
    return net.model(net.add(ops.Softmax(beta=1.0), sums))


def given(model: Model) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {t.name: random.uniform(-1, 1, t.shape).astype(np.float32) if t.dtype is DType.FLOAT32
            else (np.arange(TOKENS) < TOKENS - 5).astype(np.int32).reshape(t.shape) for t in model.main.inputs}


@pytest.mark.parametrize("low", LOWEST)
@pytest.mark.parametrize("form", ["add", "select", "run time"])
def test_masked_scores(form: str, low: str, tmp_path: Any) -> None:
    model = masked(form, LOWEST[low])
    sample = given(model)
    np.savez(tmp_path / "one.npz", **sample)
    (wanted,) = vt.run(model, sample).values()
    (found,) = vt.run(vt.quantize(model, data=tmp_path), sample).values()
    error = 10 * np.log10(np.square(wanted).sum() / np.square(found - wanted).sum())
    assert error > 26, f"{error:.1f} dB"
    assert found[wanted == 0].max() <= 1 / 256


@pytest.mark.parametrize("form", ["add", "select", "run time"])
def test_float_stays(form: str) -> None:
    model = masked(form, LOWEST["lowest number"])
    sample = given(model)
    (wanted,) = vt.run(model, sample).values()
    to_integer_forms(model)
    lows = [t.data.min() for node in model.main for t in node.inputs
            if t is not None and t.data is not None and t.dtype is DType.FLOAT32]
    assert min(lows) == -1024
    (found,) = vt.run(model, sample).values()
    np.testing.assert_array_equal(found, wanted)


def test_a_mask_with_other_readers_stays() -> None:
    net = Net(1, 4)
    sums = net.add(ops.Add(), net.x, net.constant(np.array([0, 0, 0, -1e9])))
    model = net.model(net.add(ops.Softmax(beta=1.0), sums), sums)
    to_integer_forms(model)
    mask = model.main.nodes[0].input(1).data
    assert mask is not None
    assert mask.min() == np.float32(-1e9)
