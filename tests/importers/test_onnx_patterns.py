"""Groups of nodes that are recognized as one operator, and those that only look like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_makers import by_litert, by_runtime, model, saved

from vitrify.importers import load

FEEDS = {"x": np.linspace(-5, 5, 24, dtype=np.float32).reshape(2, 12)}
CONSTANTS = {
    "root": np.array(np.sqrt(2), np.float32),
    "inverse": np.array([1 / np.sqrt(2)], np.float32),
    "one": np.array(1, np.float32),
    "half": np.array(0.5, np.float32),
    "two": np.array(2, np.float32),
}
Nodes = list[onnx.NodeProto]


def chain(*steps: tuple[str, str, str]) -> Nodes:
    """Nodes from "out = a kind b" triples."""
    nodes = []
    for output, kind, inputs in steps:
        nodes.append(helper.make_node(kind, inputs.split(), [output], f"node {output}"))
    return nodes


def around(*tail: tuple[str, str, str], scale: tuple[str, str, str] = ("s", "Div", "x root")) -> Nodes:
    return chain(scale, ("e", "Erf", "s"), ("p", "Add", "e one"), *tail)


GELUS: dict[str, Nodes] = {
    "x first": around(("m", "Mul", "x p"), ("y", "Mul", "m half")),
    "half first": around(("m", "Mul", "p half"), ("y", "Mul", "x m")),
    "half of x": around(("h", "Mul", "half x"), ("y", "Mul", "h p")),
    "a product inside": around(("m", "Mul", "x p"), ("y", "Mul", "half m"), scale=("s", "Mul", "x inverse")),
    "a product inside, turned": around(("m", "Mul", "x p"), ("y", "Mul", "half m"), scale=("s", "Mul", "inverse x")),
}


@pytest.mark.parametrize("name", GELUS)
def test_gelu_is_recognized(name: str, tmp_path: Path) -> None:
    path = saved(model(GELUS[name], FEEDS, CONSTANTS, ["y"]), tmp_path)
    imported = load(path)
    assert [n.op.kind for n in imported.main] == ["GELU"]
    assert {s.operator for s in imported.main.nodes[0].origin.sources} >= {"Erf", "Add", "Mul"}
    np.testing.assert_allclose(by_litert(imported, FEEDS)["y"], by_runtime(path, FEEDS)["y"], atol=2e-6)


OTHERS: dict[str, tuple[Callable[[], Nodes], list[str]]] = {
    "erf alone": (lambda: chain(("y", "Erf", "x")), ["y"]),
    "another scale": (lambda: around(("m", "Mul", "x p"), ("y", "Mul", "m half"), scale=("s", "Div", "x two")), ["y"]),
    "another factor": (lambda: around(("m", "Mul", "x p"), ("y", "Mul", "m two")), ["y"]),
    "another x": (lambda: around(("a", "Abs", "x"), ("m", "Mul", "a p"), ("y", "Mul", "m half")), ["y"]),
    "the middle is an output": (lambda: around(("m", "Mul", "x p"), ("y", "Mul", "m half")), ["y", "p"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_gelu_is_none(name: str, tmp_path: Path) -> None:
    make, outputs = OTHERS[name]
    path = saved(model(make(), FEEDS, CONSTANTS, outputs), tmp_path)
    imported = load(path)
    assert "GELU" not in [n.op.kind for n in imported.main]
    for key, wanted in by_runtime(path, FEEDS).items():
        np.testing.assert_allclose(by_litert(imported, FEEDS)[key], wanted, atol=5e-6)
