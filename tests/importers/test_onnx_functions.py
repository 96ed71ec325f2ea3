"""Functions: the model's own and the standard's, put in the place of their calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_makers import by_litert, by_runtime, model, saved

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers import load
from vitrify.importers.onnx.reading import functions

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def referring(node: onnx.NodeProto, **attributes: tuple[str, Any]) -> onnx.NodeProto:
    """``node`` with attributes that the call gives: name -> (the function's attribute, its type)."""
    for name, (outer, kind) in attributes.items():
        attribute = node.attribute.add()
        attribute.name, attribute.ref_attr_name, attribute.type = name, outer, kind
    return node


def leaky() -> onnx.FunctionProto:
    """LeakyRelu whose slope the call may give; 0.5 otherwise."""
    node = referring(helper.make_node("LeakyRelu", ["a"], ["b"], "leak"), alpha=("slope", onnx.AttributeProto.FLOAT))
    return helper.make_function(
        "own", "Leaky", ["a"], ["b"], [node], OPSETS, attribute_protos=[helper.make_attribute("slope", 0.5)]
    )


def scaled() -> onnx.FunctionProto:
    """(Leaky(a) * factor, Relu(a)): a constant that the call gives, a nested call, two outputs."""
    nodes = [
        referring(helper.make_node("Constant", [], ["f"]), value_float=("factor", onnx.AttributeProto.FLOAT)),
        referring(helper.make_node("Leaky", ["a"], ["l"], "inner", domain="own"),
                  slope=("slope", onnx.AttributeProto.FLOAT)),
        helper.make_node("Mul", ["l", "f"], ["b"], "scale"),
        helper.make_node("Relu", ["a"], ["c"], "relu"),
    ]
    return helper.make_function("own", "Scaled", ["a"], ["b", "c"], nodes, OPSETS, attributes=["factor", "slope"])


def chosen() -> onnx.FunctionProto:
    """-Relu(a), through a subgraph that reads a value of the body."""
    out = [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    then = helper.make_graph([helper.make_node("Neg", ["t"], ["r"])], "then", [], out)
    other = helper.make_graph([helper.make_node("Abs", ["t"], ["r"])], "other", [], out)
    nodes = [
        helper.make_node("Constant", [], ["yes"], value=helper.make_tensor("", TensorProto.BOOL, [], [True])),
        helper.make_node("Relu", ["a"], ["t"]),
        helper.make_node("If", ["yes"], ["b"], then_branch=then, else_branch=other),
    ]
    return helper.make_function("own", "Chosen", ["a"], ["b"], nodes, OPSETS)


def calling(*nodes: onnx.NodeProto, outputs: list[str]) -> onnx.ModelProto:
    """A model of calls."""
    graph = model(nodes, {"x": X}, {}, outputs).graph
    return helper.make_model(graph, opset_imports=OPSETS, functions=[leaky(), scaled(), chosen()], ir_version=9)


def call(kind: str, given: str, *outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A call of one of the functions."""
    return helper.make_node(kind, [given], outputs, f"/{outputs[0]}", domain="own", **attributes)


CASES = {
    "default": calling(call("Leaky", "x", "y"), outputs=["y"]),
    "given": calling(call("Leaky", "x", "y", slope=0.25), outputs=["y"]),
    "nested": calling(call("Scaled", "x", "y", "z", factor=3.0, slope=0.1), outputs=["y", "z"]),
    "twice": calling(
        call("Scaled", "x", "h", "g", factor=3.0, slope=0.1),
        call("Scaled", "h", "y", "z", factor=2.0, slope=0.3),
        outputs=["y", "g", "z"],
    ),
    "subgraph": calling(call("Chosen", "x", "y"), outputs=["y"]),
}


@pytest.mark.parametrize("case", CASES)
def test_own_functions(case: str, tmp_path: Path) -> None:
    path = saved(CASES[case], tmp_path)
    got, wanted = by_litert(load(path), {"x": X}), by_runtime(path, {"x": X})
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-6)


def test_nodes_are_named_after_the_call(tmp_path: Path) -> None:
    graph = load(saved(CASES["nested"], tmp_path)).main
    assert [str(n.origin) for n in graph] == ["/y/inner/leak", "/y/scale", "/y/relu"]


def test_an_input_given_through(tmp_path: Path) -> None:
    relu = helper.make_node("Relu", ["a"], ["b"])
    through = helper.make_function("own", "Through", ["a"], ["a", "b", "b"], [relu], OPSETS)
    graph = model([call("Through", "x", "y", "z", "w")], {"x": X}, {}, ["y", "z", "w"]).graph
    path = saved(helper.make_model(graph, opset_imports=OPSETS, functions=[through], ir_version=9), tmp_path)
    got = by_litert(load(path), {"x": X})
    for name, wanted in {"y": X, "z": np.maximum(X, 0), "w": np.maximum(X, 0)}.items():
        np.testing.assert_array_equal(got[name], wanted)


def test_too_many_nodes_are_refused(tmp_path: Path) -> None:
    doubling = [
        helper.make_function("own", f"F{i}", ["a"], ["b"], [
            helper.make_node(f"F{i + 1}" if i < 40 else "Relu", [a], [b], domain="own" if i < 40 else "")
            for a, b in (("a", "c"), ("c", "b"))
        ], OPSETS)
        for i in range(41)
    ]  # fmt: skip
    graph = model([call("F0", "x", "y")], {"x": X}, {}, ["y"]).graph
    path = saved(helper.make_model(graph, opset_imports=OPSETS, functions=doubling, ir_version=9), tmp_path)
    with pytest.raises(UnsupportedError, match=rf"makes 4,398,046,511,103 nodes, at most {functions.MOST_NODES:,}"):
        load(path)


def test_a_call_with_too_many_inputs_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Leaky", ["x", "x"], ["y"], "/y", domain="own")
    with pytest.raises(ModelError, match="Leaky '/y': it has 2 inputs and 1 outputs; the function takes 1"):
        load(saved(calling(node, outputs=["y"]), tmp_path))


STANDARD: dict[str, tuple[onnx.NodeProto, int]] = {
    "typed_body": (helper.make_node("Celu", ["x"], ["y"], "/act", alpha=0.7), 12),
    "default_attribute": (helper.make_node("Shrink", ["x"], ["y"], "/act"), 9),
    "fixed_body": (helper.make_node("MeanVarianceNormalization", ["x"], ["y"], "/act", axes=[0, 1]), 13),
}


@pytest.mark.parametrize("case", STANDARD)
def test_the_standards_functions(case: str, tmp_path: Path) -> None:
    node, opset = STANDARD[case]
    path = saved(model([node], {"x": X}, {}, ["y"], opset), tmp_path)
    imported = load(path)
    np.testing.assert_allclose(by_litert(imported, {"x": X})["y"], by_runtime(path, {"x": X})["y"], 1e-5, 1e-6)
    assert {(s.name, s.operator) for n in imported.main for s in n.origin.sources} == {("/act", node.op_type)}


def test_a_step_that_is_refused_names_the_node(tmp_path: Path) -> None:
    node = helper.make_node("Bernoulli", ["x"], ["y"], "/coin")
    with pytest.raises(UnsupportedError) as caught:
        load(saved(model([node], {"x": X}, {}, ["y"], 15), tmp_path))
    (found,) = caught.value.findings
    assert found.headline.startswith("RandomUniformLike is not supported: 1 node")
    assert found.where == "node '/coin'"
    assert found.why == "Bernoulli is made of it: Bernoulli '/coin', step RandomUniformLike"
