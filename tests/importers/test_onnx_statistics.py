"""Normalizations, softmax and its relatives, losses and gates against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, imported, same_as_runtime

from vitrify.core.errors import ModelError

RNG = np.random.default_rng(5)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def classes(*shape: int, below: int) -> Feed:
    return Feed(RNG.integers(0, below, shape))


X = (2, 6, 5, 7)
LAYERS = {
    "last axis": Case("LayerNormalization", [X, f(7), f(7)]),
    "no bias": Case("LayerNormalization", [X, f(7)]),
    "three axes": Case("LayerNormalization", [X, f(6, 5, 7), f(6, 5, 7)], {"axis": 1, "epsilon": 1e-3}),
    "statistics": Case("LayerNormalization", [X, f(5, 7), f(5, 7)], {"axis": -2}, outputs=3),
    "parameters at run time": Case("LayerNormalization", [X, (7,), (7,)]),
    "far from 0": Case("LayerNormalization", [X, f(7), f(7)], low=100, high=101, tolerance=2e-4),
    "rms": Case("RMSNormalization", [X, f(7)], opset=23),
    "rms, two axes": Case("RMSNormalization", [X, f(5, 7)], {"axis": 2, "epsilon": 1e-2}, opset=23),
    "mean and variance": Case("MeanVarianceNormalization", [X], opset=13, tolerance=5e-6),
    "mean and variance, axes": Case("MeanVarianceNormalization", [X], {"axes": [1, 3]}, opset=13, tolerance=5e-6),
}
CHANNELS = {
    "instance": Case("InstanceNormalization", [X, f(6), f(6)]),
    "instance, 1-D": Case("InstanceNormalization", [(2, 6, 30), f(6), f(6)]),
    "instance, parameters at run time": Case("InstanceNormalization", [X, (6,), (6,)]),
    "group": Case("GroupNormalization", [X, f(6), f(6)], {"num_groups": 3}, opset=21),
    "group, one": Case("GroupNormalization", [X, f(6), f(6)], {"num_groups": 1}, opset=21),
    "group, each channel": Case("GroupNormalization", [X, f(6), f(6)], {"num_groups": 6}, opset=21),
    "group, scales per group": Case("GroupNormalization", [X, f(3), f(3)], {"num_groups": 3}, opset=18),
    "group, scales per group at run time": Case("GroupNormalization", [X, (3,), (3,)], {"num_groups": 3}, opset=18),
    "group, 1-D": Case("GroupNormalization", [(2, 6, 30), f(6), f(6)], {"num_groups": 2}, opset=21),
}
SOFTMAXES = {
    f"{kind.lower()} along {axis} of {len(shape)} in {opset}": Case(kind, [shape], {"axis": axis}, opset=opset)
    for kind in ("Softmax", "LogSoftmax", "Hardmax")
    for opset in (11, 13)
    for shape, axis in ((X, 1), (X, 2), (X, -1), ((3, 9), 0), ((2, 3, 4, 2, 3), 2), ((1, 8, 1, 1), 1))
}
LOSSES = {
    f"{kind}, {reduction}{', weights' * weighted}, ignoring {ignored}": Case(
        kind,
        [(2, 5, 3, 4), classes(2, 3, 4, below=5), *([np.abs(f(5)) + 0.1] if weighted else [])],
        {"reduction": reduction, **({"ignore_index": ignored} if ignored is not None else {})},
        opset=13,
        tolerance=5e-6,
    )
    for kind in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
    for reduction, weighted, ignored in (
        ("none", False, None),
        ("mean", False, None),
        ("sum", True, None),
        ("mean", True, 2),
        ("mean", False, 3),
    )
}
GATES = {"mish": Case("Mish", [(3, 40)], low=-30, high=30, opset=18)}
CASES = {**LAYERS, **CHANNELS, **SOFTMAXES, **LOSSES, **GATES}


@pytest.mark.parametrize("name", CASES)
def test_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


def test_mish_is_precise_far_below_0(tmp_path: Path) -> None:
    """Relative to each value: what is left of x is tiny there."""
    from onnx_makers import by_litert

    case = Case("Mish", [Feed(np.linspace(-60, -5, 40, dtype=np.float32))], opset=18)
    got = by_litert(imported(case.proto(), tmp_path), case.feeds())["y0"]
    x = case.feeds()["x0"].astype(np.float64)
    np.testing.assert_allclose(got, x * np.tanh(np.log1p(np.exp(x))), rtol=5e-6)


FORMS = {
    "layer": (LAYERS["last axis"], ["MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD"]),
    "rms": (LAYERS["rms"], ["MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL"]),
    "mish": (GATES["mish"], ["LOGISTIC", "SUB", "MUL", "SUB", "RSQRT", "MUL", "MUL", "MUL"]),
    "hardmax": (Case("Hardmax", [(3, 9)], opset=13), ["ARG_MAX", "ONE_HOT"]),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, tmp_path: Path) -> None:
    case, kinds = FORMS[name]
    assert [n.op.kind for n in same_as_runtime(case, tmp_path).main] == kinds


REFUSED = {
    "groups": (Case("GroupNormalization", [X, f(6), f(6)], {"num_groups": 4}, opset=21), "4 groups for 6 channels"),
    "parameters": (Case("InstanceNormalization", [X, f(5), f(6)]), "5 scales and 6 biases for 6 channels"),
    "no places": (Case("InstanceNormalization", [(2, 6), f(6), f(6)]), "needs spatial dimensions"),
    "axis": (Case("Softmax", [X], {"axis": 4}), "axis 4 is outside"),
    "classes": (Case("NegativeLogLikelihoodLoss", [(2, 5), classes(3, below=5)]), "do not fit the scores"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    case, text = REFUSED[name]
    with pytest.raises(ModelError, match=text):
        imported(case.proto(), tmp_path)
