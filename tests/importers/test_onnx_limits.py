"""What an import may compute and what a tensor may hold: small files that ask for much get a limit and a way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_makers import model, saved, value

from vitrify import ops
from vitrify.core.errors import ModelError, UnsupportedError, VitrifyError
from vitrify.importers import load
from vitrify.importers.onnx import budget
from vitrify.importers.onnx.budget import Budget
from vitrify.importers.onnx.driver import NEWEST_OPSET
from vitrify.importers.onnx.folds.cost import by_evaluator
from vitrify.importers.onnx.source import SourceNode
from vitrify.passes import optimize

X = np.ones((2,), np.float32)


def filled(name: str, shape: Sequence[int], number: float = 1.0, kind: int = TensorProto.FLOAT) -> list[onnx.NodeProto]:
    """A constant of many elements in few bytes."""
    extents = numpy_helper.from_array(np.array(shape, np.int64))
    return [helper.make_node("Constant", [], [f"{name}/shape"], value=extents),
            helper.make_node("ConstantOfShape", [f"{name}/shape"], [name], value=helper.make_tensor("v", kind, [1],
                                                                                                      [number]))]


def listed(name: str, *values: int) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(values, np.int64)))


def of_constants(nodes: Sequence[onnx.NodeProto], kind: str, inputs: Sequence[str],
                 **attributes: Any) -> onnx.ModelProto:
    """A node of constants, whose largest element is added to the input."""
    made = [*nodes, helper.make_node(kind, inputs, ["z"], "the node", **attributes),
            helper.make_node("Cast", ["z"], ["f"], to=1), helper.make_node("ReduceMax", ["f"], ["m"], keepdims=0),
            helper.make_node("Add", ["x", "m"], ["y"])]
    return model(made, {"x": X}, {}, ["y"])


def integers(size: int, number: int) -> onnx.ModelProto:
    return of_constants(filled("a", [size, size], number, TensorProto.INT64), "MatMul", ["a", "a"])


# Each asks for many times the limit that the test sets, and takes moments to refuse or to leave to run time.
LEFT: dict[str, tuple[Callable[[], onnx.ModelProto], type[Any]]] = {
    "a product of floats": (lambda: of_constants(filled("a", [512, 512]), "MatMul", ["a", "a"]), ops.BatchMatMul),
    "an order": (lambda: of_constants([*filled("a", [2**20]), listed("k", 3)], "TopK", ["a", "k"]), ops.TopKV2),
    "totals": (lambda: of_constants([*filled("a", [2**20]), listed("k", 0)], "CumSum", ["a", "k"]), ops.Cumsum),
    "an equation": (lambda: of_constants(filled("a", [512, 512]), "Einsum", ["a", "a"], equation="ij,jk->ik"),
                    ops.FullyConnected),
    "a convolution": (lambda: of_constants([*filled("a", [1, 8, 64, 64]), *filled("w", [8, 8, 7, 7])], "Conv",
                                           ["a", "w"]), ops.Conv2D),
    "windows": (lambda: of_constants(filled("a", [1, 1, 256, 256]), "MaxPool", ["a"], kernel_shape=[31, 31]),
                ops.MaxPool2D),
}


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_OPERATIONS", 1_000_000)
    monkeypatch.setattr("vitrify.passes.cleanup.folding.MOST_OPERATIONS", 1_000_000)


@pytest.mark.parametrize("name", LEFT)
def test_what_takes_long_is_left_to_run_time(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    made, kind = LEFT[name]
    found = load(saved(made(), tmp_path))
    optimize(found)
    assert found.main.count(kind) == 1


COSTLY: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "integers": (lambda: integers(4096, 2**30), r"MatMul 'the node': .* 137,\d+,\d+,\d+ operations; at most 2,5"),
    "determinant": (lambda: of_constants(filled("a", [3000, 3000]), "Det", ["a"]),
                    r"Det 'the node': .* 27,\d+,\d+,\d+"),
    "different values": (lambda: of_constants(filled("a", [2**26]), "Unique", ["a"]),
                         r"Unique 'the node': .*operations"),
}


@pytest.mark.parametrize("name", COSTLY)
def test_what_takes_long_and_has_no_operator_is_refused(name: str, tmp_path: Path) -> None:
    made, wanted = COSTLY[name]
    with pytest.raises(UnsupportedError, match=wanted) as caught:
        load(saved(made(), tmp_path))
    assert [f.code for f in caught.value.findings] == ["onnx.constant-cost"]
    assert "onnxsim" in caught.value.findings[0].help


def test_integers_that_floats_hold_are_multiplied_fast(tmp_path: Path) -> None:
    found = load(saved(integers(1024, 3), tmp_path))
    optimize(found)
    constants = [t.data for node in found.main for t in node.inputs if t is not None and t.data is not None]
    assert [float(c.max()) for c in constants if c.size == 1] == [9.0 * 1024]


def test_all_together_are_bounded() -> None:
    spent = Budget()
    allowed = [spent.takes(budget.MOST_OPERATIONS) for _ in range(6)]
    assert allowed == [True] * 4 + [False] * 2
    assert not Budget().takes(budget.MOST_OPERATIONS + 1)


ESTIMATES: dict[str, tuple[str, dict[str, Any], list[tuple[int, ...]], int]] = {
    "equation": ("Einsum", {"equation": "abc,def,gh->"}, [(64, 64, 64), (64, 64, 64), (64, 64)], 64**8),
    "equation with dots": ("Einsum", {"equation": "...i,...i->..."}, [(7, 100), (7, 100)], 700),
    "boxes": ("NonMaxSuppression", {}, [(1, 10**4, 4), (1, 80, 10**4)], 80 * 10**8),
    "layer": ("LSTM", {}, [(100, 1, 8), (1, 4096, 8), (1, 4096, 1024)], 100 * 4096 * 1024),
    "convolution": ("ConvInteger", {}, [(1, 64, 64, 64), (64, 64, 7, 7)], 64 * 64 * 64 * 7 * 7),
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_the_evaluators_way_is_not_underestimated(name: str) -> None:
    kind, attributes, shapes, least = ESTIMATES[name]
    node = SourceNode(kind, "n", [f"x{i}" for i in range(len(shapes))], ["y"], attributes)
    assert by_evaluator(node, [np.broadcast_to(np.float32(1), s) for s in shapes], 1) >= least


def relu(*shape: Any) -> onnx.ModelProto:
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", shape)], [value("y", shape)])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def one(kind: str, shape: Sequence[int], constants: dict[str, np.ndarray[Any, Any]], opset: int = 17,
        **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(kind, ["x", *constants], ["y"], "the node", **attributes)
    graph = helper.make_graph([node], "g", [value("x", shape)], [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def i64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


LARGE: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "an input": (lambda: relu(10**6, 10**6, 3), r"input 'x' has 3,000,000,000,000 elements, a tensor holds at most"),
    "an input and an open one": (lambda: relu(10**9, "n", 3), r"leaves dimension 1 \('n'\) open"),
    "an equation": (lambda: model(
        [helper.make_node("Einsum", ["a", "b"], ["y"], "the node", equation="abcd,efgh->abcdefgh")],
        {"a": np.ones((64,) * 4, np.float32), "b": np.ones((64,) * 4, np.float32)}, {}, ["y"]),
        r"Einsum 'the node' makes 281,474,976,710,656 elements at run time"),
    "Tile": (lambda: one("Tile", [1, 64], {"r": i64(2**20, 2**20)}), r"Tile 'the node' makes .* elements at run time"),
    "Expand": (lambda: one("Expand", [1, 64], {"r": i64(2**30, 64)}), r"Expand 'the node' makes .* at run time"),
    "Pad": (lambda: one("Pad", [1, 64], {"p": i64(0, 0, 2**30, 2**30)}), r"Pad 'the node' makes .* at run time"),
    "Conv": (lambda: one("Conv", [1, 1, 8, 8], {"w": np.ones((1, 1, 3, 3), np.float32)}, pads=[2**20] * 4),
             r"Conv 'the node' makes .* at run time"),
    "MaxPool": (lambda: one("MaxPool", [1, 1, 8, 8], {}, kernel_shape=[2**21] * 2, pads=[2**20] * 4),
                r"MaxPool 'the node' makes .* at run time"),
    "Add": (lambda: model([helper.make_node("Add", ["a", "b"], ["y"], "the node")],
                          {"a": np.ones((2**16, 1), np.float32), "b": np.ones((1, 2**16), np.float32)}, {}, ["y"]),
            r"Add 'the node' makes 4,294,967,296 elements at run time, \[65536, 65536\]"),
}


@pytest.mark.parametrize("name", LARGE)
def test_tensors_beyond_all_bounds_are_named(name: str, tmp_path: Path) -> None:
    made, wanted = LARGE[name]
    with pytest.raises(UnsupportedError, match=wanted) as caught:
        load(saved(made(), tmp_path))
    found = caught.value.findings[0]
    assert found.help
    assert "constant" not in found.headline
    assert found.code in ("shape.size", "onnx.open-shape")


def dynamic() -> onnx.ModelProto:
    """Open sizes, and operators whose results have sizes of their own."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], "where it is not zero"),
        helper.make_node("Reshape", ["x", "flat"], ["row"], "flatten"),
        helper.make_node("Unique", ["row"], ["kinds"], "different ones"),
        helper.make_node("Compress", ["row", "keep"], ["kept"], "the kept"),
        helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["chosen"], "the suppression"),
        helper.make_node("Loop", ["count", "", "x"], ["looped"], "the loop", body=helper.make_graph(
            [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Relu", ["s"], ["t"])], "body",
            [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("s", None)],
            [value("d", [], TensorProto.BOOL), value("t", None)])),
    ]
    inputs = [value("x", ["N", 3, "h", "w"]), value("boxes", [1, "n", 4]), value("scores", [1, 2, "n"]),
              value("keep", [5], TensorProto.BOOL), value("count", [], TensorProto.INT64)]
    outputs = [helper.make_empty_tensor_value_info(n) for n in ("places", "kinds", "kept", "chosen", "looped")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(i64(-1), "flat")])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_open_sizes_and_refused_operators_come_in_one_run(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        load(saved(dynamic(), tmp_path))
    told = "\n".join(f.headline for f in caught.value.findings)
    wanted = ["input 'x' leaves", "input 'boxes' leaves", "input 'scores' leaves", "NonZero 'where it is not zero'",
              "Unique 'different ones'", "Compress 'the kept'", "NonMaxSuppression 'the suppression'",
              "Loop 'the loop'"]
    assert [text for text in wanted if text not in told] == []


def test_newer_operator_sets_are_told(tmp_path: Path) -> None:
    assert onnx.defs.onnx_opset_version() == NEWEST_OPSET
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, {}, ["y"])
    proto.opset_import[0].version = 999
    found = [f for f in load(saved(proto, tmp_path)).extras["findings"] if f.code == "onnx.opset"]
    assert [f.severity.name for f in found] == ["WARNING"]
    assert f"999; the newest known is {NEWEST_OPSET}" in found[0].headline


def layer(kind: str, gates: int, **attributes: Any) -> onnx.ModelProto:
    rows = gates * 3
    weights = {"w": np.ones((1, rows, 4), np.float32), "r": np.ones((1, rows, 3), np.float32)}
    return one(kind, [5, 1, 4], weights, **attributes)


AGAINST_SHAPES: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    **{kind: (lambda kind=kind, gates=gates: layer(kind, gates, hidden_size=7), r"hidden_size is 7")  # type: ignore[misc]
       for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))},
    "Conv": (lambda: one("Conv", [1, 1, 8, 8], {"w": np.ones((1, 1, 3, 3), np.float32)}, kernel_shape=[5, 5]),
             r"kernel_shape \[5, 5\] differs"),
    "ConvTranspose": (lambda: one("ConvTranspose", [1, 1, 8, 8], {"w": np.ones((1, 1, 3, 3), np.float32)},
                                  kernel_shape=[5, 5]), r"kernel_shape \[5, 5\] differs"),
    "Split": (lambda: one("Split", [6], {}, opset=18, num_outputs=3), r"num_outputs is 3, and it has 1 outputs"),
}


@pytest.mark.parametrize("name", AGAINST_SHAPES)
def test_attributes_are_held_against_shapes(name: str, tmp_path: Path) -> None:
    made, wanted = AGAINST_SHAPES[name]
    with pytest.raises(ModelError, match=wanted):
        load(saved(made(), tmp_path))


@pytest.mark.parametrize("kind", ["Tile", "ConstantOfShape"])
def test_constants_beyond_all_bounds_say_what_helps(kind: str, tmp_path: Path) -> None:
    inputs = ["a", "r"] if kind == "Tile" else ["r"]
    made = of_constants([listed("r", 2**20, 2**20), *filled("a", [1, 4])], kind, inputs)
    with pytest.raises(VitrifyError, match=r"makes a constant of [\d,]+ elements") as caught:
        load(saved(made, tmp_path))
    assert "make it an input" in caught.value.findings[0].help
