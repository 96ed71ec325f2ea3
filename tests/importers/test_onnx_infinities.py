"""Masks of -inf: what the graph gives out, and what asks for infinity, is what ONNX Runtime says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_makers import by_litert, by_runtime, model, saved

from vitrify.importers import load
from vitrify.passes import optimize

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
HIDDEN = np.where(np.tri(3, 4, dtype=bool), 0, -np.inf).astype(np.float32)
CONSTANTS = {
    "mask": HIDDEN,
    "row": np.array([0, -np.inf, 1, -np.inf], np.float32),
    "low": np.array(-np.inf, np.float32),
    "high": np.array(np.inf, np.float32),
    "zero": np.array(0, np.float32),
}
GRAPHS = {
    "a sum given out": ["y Add x mask"],
    "a sum of sums": ["s Add mask x", "y Add s row"],
    "a choice in the sum": ["c Greater x zero", "w Where c zero low", "y Add x w"],
    "a choice and a constant": ["c Greater x zero", "w Where c zero low", "s Add w mask", "y Add s x"],
    "given out and read": ["y Add x mask", "z Softmax y"],
    "which sums are lowest": ["s Add x mask", "y Equal s low"],
    "which are lowest, turned": ["s Add x mask", "y Equal low s"],
    "which are highest": ["s Sub x mask", "y Equal s high"],
    "no infinity": ["s Add x zero", "y Equal s zero"],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    nodes = [helper.make_node(kind, inputs, [out]) for out, kind, *inputs in map(str.split, GRAPHS[name])]
    outputs = [n.output[0] for n in nodes if n.output[0] in "yz"]
    path = saved(model(nodes, {"x": X}, CONSTANTS, outputs), tmp_path)
    built = load(path)
    optimize(built)
    got = by_litert(built, {"x": X})
    for key, wanted in by_runtime(path, {"x": X}).items():
        np.testing.assert_allclose(got[key].astype(np.float32), wanted.astype(np.float32), rtol=1e-6)


GUARDED = {
    "a guard behind a mask": (["s Add x mask", "p Softmax s", "n IsNaN p", "y Where n zero p"], 0),
    "a guard behind a product": (["s Mul x row", "p Softmax s", "n IsNaN p", "y Where n zero p"], 0),
    "a guard of what may be NaN": (["s Where cond x low", "p Softmax s", "n IsNaN p", "y Where n zero p"], 1),
    "another number than the softmax": (["s Add x mask", "p Softmax s", "n IsNaN s", "y Where n zero p"], 1),
}


@pytest.mark.parametrize("name", GUARDED)
def test_guard_against_nan(name: str, tmp_path: Path) -> None:
    steps, left = GUARDED[name]
    nodes = [helper.make_node(kind, inputs, [out]) for out, kind, *inputs in map(str.split, steps)]
    constants = {**CONSTANTS, "cond": HIDDEN == 0, "row": np.arange(4, dtype=np.float32)}
    path = saved(model(nodes, {"x": X}, constants, ["y"]), tmp_path)
    built = load(path)
    optimize(built)
    assert sum(node.op.kind == "NOT_EQUAL" for node in built.main) == left
    np.testing.assert_allclose(by_litert(built, {"x": X})["y"], by_runtime(path, {"x": X})["y"], rtol=1e-5)
