"""Static shapes: what is assumed, what is asked, and what the caller may say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_makers import by_litert, by_runtime, model, saved, value

from vitrify import runtimes
from vitrify.core.errors import ModelError, UnsupportedError, UsageError, VitrifyError
from vitrify.core.findings import Severity
from vitrify.importers import load


def relu(*inputs: onnx.ValueInfoProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", [v.name], [f"y{i}"]) for i, v in enumerate(inputs)]
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(len(inputs))]
    return helper.make_model(
        helper.make_graph(nodes, "g", list(inputs), outputs), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )


def halved_and_added() -> onnx.ModelProto:
    """Halve, double, add: odd sizes do not come back."""
    ends = [value("x", ["N", 3, "h", "w"])]
    nodes = [
        helper.make_node("AveragePool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Concat", ["a", "a"], ["b"], axis=2),
        helper.make_node("Concat", ["b", "b"], ["c"], axis=3),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", ends, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


PICTURE = ["batch", 3, "height", "width"]
Shapes = Mapping[str, Sequence[int] | int]
GOOD: dict[str, tuple[onnx.ModelProto, Shapes, list[tuple[int, ...]], int]] = {
    "fixed": (relu(value("x", [1, 3, 8, 8])), {}, [(1, 3, 8, 8)], 0),
    "open batch": (relu(value("x", ["N", 3, 8, 8])), {}, [(1, 3, 8, 8)], 1),
    "batch without a name": (relu(value("x", [None, 3])), {}, [(1, 3)], 1),
    "batch of minus one": (relu(value("x", [-1, 3])), {}, [(1, 3)], 1),
    "batch of zero, given": (relu(value("x", [0, 3])), {"x": [1, 3]}, [(1, 3)], 0),
    "named": (relu(value("x", PICTURE)), {"x": [1, 3, 32, 64]}, [(1, 3, 32, 64)], 0),
    "the only input": (relu(value("x", PICTURE)), {"": [2, 3, 32, 64]}, [(2, 3, 32, 64)], 0),
    "symbol shared with another input": (
        relu(value("x", ["N", "T"]), value("y", [2, "N", "T"])),
        {"x": [1, 7]},
        [(1, 7), (2, 1, 7)],
        0,
    ),
    "batch shared with another input": (
        relu(value("x", ["N", 4]), value("y", [2, "N", 5])),
        {},
        [(1, 4), (2, 1, 5)],
        1,
    ),
    "the file's own": (relu(value("x", [1, 3, "h", 8])), {"x": [1, 3, 16, 8]}, [(1, 3, 16, 8)], 0),
    "scalar": (relu(value("x", [])), {}, [()], 0),
    "a named dimension": (relu(value("x", ["N", 3, "side", "side"])), {"side": 16}, [(1, 3, 16, 16)], 1),
    "a named dimension of two inputs": (
        relu(value("x", ["N", "T"]), value("y", [2, "N", "T"])),
        {"T": 5, "N": 3},
        [(3, 5), (2, 3, 5)],
        0,
    ),
    "a dimension and a shape that agree": (relu(value("x", ["N", 3])), {"x": [2, 3], "N": 2}, [(2, 3)], 0),
    "a dimension and a shape": (
        relu(value("x", ["N", "T"]), value("y", [2, "N", "L"])),
        {"x": [2, 7], "L": 4},
        [(2, 7), (2, 2, 4)],
        0,
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_shapes_are_fixed(name: str, tmp_path: Path) -> None:
    proto, shapes, wanted, notes = GOOD[name]
    imported = load(saved(proto, tmp_path), shapes)
    assert [t.shape for t in imported.main.inputs] == wanted
    findings = imported.extras["findings"]
    assert len(findings) == notes
    assert all(f.severity is Severity.INFO and f.code == "onnx.open-batch" for f in findings)


BAD: dict[str, tuple[onnx.ModelProto, Shapes, type[VitrifyError], str]] = {
    "open picture": (
        relu(value("x", PICTURE)),
        {},
        UnsupportedError,
        r"input 'x' leaves dimensions 2 \('height'\) and 3 \('width'\) open[\s\S]*--shape x=1,3,320,320",
    ),
    "open length": (
        relu(value("x", ["N", "T"])),
        {},
        UnsupportedError,
        r"dimension 1 \('T'\) open[\s\S]*--shape x=1,128",
    ),
    "open vector": (relu(value("x", ["T"])), {}, UnsupportedError, r"dimension 0 \('T'\) open"),
    "no name": (relu(value("x", [1, 3, None, 8])), {}, UnsupportedError, "dimension 2 open"),
    "two open inputs": (
        relu(value("x", PICTURE), value("z", ["N", "T"])),
        {},
        UnsupportedError,
        "input 'x' leaves[\\s\\S]*input 'z' leaves",
    ),
    "unknown input": (
        relu(value("x", PICTURE)),
        {"image": [1]},
        UsageError,
        "there is no input 'image'; the inputs are 'x'",
    ),
    "which of two": (
        relu(value("x", [1]), value("y", [1])),
        {"": [1]},
        UsageError,
        "--shape names no input, and there are 2",
    ),
    "rank": (
        relu(value("x", PICTURE)),
        {"x": [3, 32, 32]},
        UsageError,
        r"has 4 dimensions \[batch,3,height,width\], the shape given has 3",
    ),
    "batch of zero": (relu(value("x", [0, 3])), {}, UnsupportedError, r"0 \(0 in the file\) open[\s\S]*x=1,3"),
    "fixed by the file": (
        relu(value("x", [1, 3, 8, 8])),
        {"x": [1, 8, 8, 3]},
        UsageError,
        r"file fixes dimension 1 of 'x' at 3, the shape given has 8[\s\S]*leave --shape x out",
    ),
    "channels fixed by the file": (
        relu(value("x", PICTURE)),
        {"x": [1, 4, 32, 32]},
        UsageError,
        r"dimension 1 of 'x' at 3[\s\S]*--shape x=1,3,320,320",
    ),
    "unknown dimension": (
        relu(value("x", PICTURE)),
        {"depth": 3, "heigth": 8},
        UsageError,
        r"no dimension 'depth'; the named dimensions are 'batch', 'height', 'width'[\s\S]*no dimension 'heigth'",
    ),
    "a dimension against a shape": (
        relu(value("x", PICTURE)),
        {"x": [1, 3, 32, 48], "batch": 2, "width": 64},
        UsageError,
        r"--dim batch=2 and --shape x=1,3,32,48 contradict[\s\S]*say --shape x=2,3,32,48"
        r"[\s\S]*--dim width=64 and --shape x=1,3,32,48 contradict[\s\S]*dimension 3 of 'x' is 'width'",
    ),
    "a dimension against the only shape": (
        relu(value("x", ["N", 3])),
        {"": [1, 3], "N": 2},
        UsageError,
        r"--dim N=2 and --shape 1,3 contradict",
    ),
    "dimension of nothing": (relu(value("x", PICTURE)), {"batch": 0}, UsageError, r"dimension 'batch' cannot be 0"),
    "dimension beyond all bounds": (
        relu(value("x", PICTURE)),
        {"height": 10**23},
        UsageError,
        r"'height' cannot be 1000",
    ),
    "no names at all": (
        relu(value("x", [1, None])),
        {"n": 1},
        UsageError,
        r"no input has a named dimension[\s\S]*--shape",
    ),
    "answered by dimensions": (
        relu(value("x", PICTURE)),
        {},
        UnsupportedError,
        r"--shape x=1,3,320,320, or --dim height=320 --dim width=320",
    ),
    "absurd": (relu(value("x", PICTURE)), {"x": [1, 3, 99999, 99999]}, UsageError, "29,999,400,003 elements"),
    "a size that inner nodes do not take": (
        halved_and_added(),
        {"x": [1, 3, 33, 40]},
        ModelError,
        r"may be what does not fit: --shape x=1,3,33,40; [\s\S]*--shape x=1,3,64,64",
    ),
    "zero": (relu(value("x", PICTURE)), {"x": [1, 3, 0, 32]}, UsageError, "a dimension below 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_shape_is_asked_or_refused(name: str, tmp_path: Path) -> None:
    proto, shapes, error, message = BAD[name]
    with pytest.raises(error, match=message):
        load(saved(proto, tmp_path), shapes)


def branches(key: str = "sr") -> onnx.ModelProto:
    """y = relu(x) when the rate is 16000, else -x; the branches read x from outside."""

    def branch(kind: str, name: str) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(kind, ["x"], [name])], name, [], [helper.make_empty_tensor_value_info(name)]
        )

    nodes = [
        helper.make_node("Equal", [key, "rate"], ["is"]),
        helper.make_node("If", ["is"], ["y"], then_branch=branch("Relu", "t"), else_branch=branch("Neg", "e")),
    ]
    return model(
        nodes,
        {"x": np.ones((2, 3), np.float32), key: np.array(0, np.int64)},
        {"rate": np.array(16000, np.int64)},
        ["y"],
    )


@pytest.mark.parametrize(("rate", "kind"), [(16000, "RELU"), (8000, "NEG")], ids=["then", "else"])
def test_value_decides_the_branch(rate: int, kind: str, tmp_path: Path) -> None:
    imported = load(saved(branches(), tmp_path), values={"sr": rate})
    assert [n.op.kind for n in imported.main] == [kind]
    assert imported.interface is not None
    assert [i.name for i in imported.interface.inputs] == ["x"]
    assert imported.main.outputs[0].name == "y"


VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown input": ({"rate": 1}, "there is no input 'rate'"),
    "rank": ({"sr": [1, 2]}, "has 0 dimensions, the value given has 1"),
}


@pytest.mark.parametrize("name", VALUES)
def test_value_is_refused(name: str, tmp_path: Path) -> None:
    values, message = VALUES[name]
    with pytest.raises(UsageError, match=message):
        load(saved(branches(), tmp_path), values=values)


def test_interface_is_the_source_models(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Add", ["f", "x"], ["y"])]
    feeds = {"i": np.array([[1, 2]], np.int64), "x": np.array([[0.5, 0.5]], np.float64)}
    nodes.insert(1, helper.make_node("Cast", ["x"], ["g"], to=1))
    nodes[2].input[1] = "g"
    path = saved(model(nodes, feeds, {}, ["y"]), tmp_path)
    imported = load(path)
    assert imported.interface is not None
    assert [(i.name, i.dtype, i.shape, i.position) for i in imported.interface.inputs] == [
        ("i", "int64", (1, 2), 0),
        ("x", "float64", (1, 2), 1),
    ]
    assert [t.dtype.label for t in imported.main.inputs] == ["int32", "float32"]
    assert imported.signatures[0].key == "serving_default"
    assert imported.signatures[0].inputs == {"i": 0, "x": 1}
    assert imported.signatures[0].outputs == {"y": 0}
    assert imported.source == str(path)
    np.testing.assert_array_equal(by_litert(imported, feeds)["y"], by_runtime(path, feeds)["y"])


OUTPUTS = {
    "an input": [helper.make_node("Identity", ["x"], ["y"])],
    "a constant": [helper.make_node("Relu", ["c"], ["y"])],
    "the same tensor twice": [helper.make_node("Relu", ["x"], ["z"]), helper.make_node("Identity", ["z"], ["y"])],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_output_is_a_tensor_of_its_own(name: str, tmp_path: Path) -> None:
    nodes = OUTPUTS[name]
    outputs = ["z", "y"] if "twice" in name else ["y"]
    feeds = {"x": np.array([[-1, 2]], np.float32)}
    path = saved(model(nodes, feeds, {"c": np.array([-1, 3], np.float32)}, outputs), tmp_path)
    imported = load(path)
    assert [t.name for t in imported.main.outputs] == outputs
    wanted, got = by_runtime(path, feeds), by_litert(imported, feeds)
    for output in outputs:
        np.testing.assert_array_equal(got[output], wanted[output])


def test_declared_initializer_is_no_input(tmp_path: Path) -> None:
    proto = model(
        [helper.make_node("Add", ["x", "c"], ["y"])],
        {"x": np.ones((1, 2), np.float32)},
        {"c": np.ones(2, np.float32)},
        ["y"],
    )
    proto.graph.input.append(value("c", [2], TensorProto.FLOAT))
    assert [t.name for t in load(saved(proto, tmp_path)).main.inputs] == ["x"]


def test_half_floats_become_floats(tmp_path: Path) -> None:
    half = np.array([0.1, 0.2], np.float16)
    proto = model([helper.make_node("Add", ["x", "c"], ["y"])], {"x": np.ones((1, 2), np.float16)}, {"c": half}, ["y"])
    imported = load(saved(proto, tmp_path))
    assert [t.dtype.label for t in imported.main.tensors()] == ["float32"] * 3
    np.testing.assert_allclose(
        by_litert(imported, {"x": np.ones((1, 2), np.float16)})["y"], 1 + half.astype(np.float32)[None]
    )


SIZED = {"imgsz": "[64, 96]"}


@pytest.mark.parametrize(
    ("metadata", "sizes", "wanted"),
    [
        pytest.param(SIZED, {}, (1, 3, 64, 96), id="the file's metadata"),
        pytest.param({"imgsz": "64"}, {}, (1, 3, 64, 64), id="one number"),
        pytest.param(SIZED, {"x": (1, 3, 32, 32)}, (1, 3, 32, 32), id="the caller's shape"),
        pytest.param(SIZED, {"": (2, 3, 32, 32)}, (2, 3, 32, 32), id="the caller's shape of the only input"),
        pytest.param(SIZED, {"batch": 2}, (2, 3, 64, 96), id="the caller's batch"),
        pytest.param(SIZED, {"height": 32, "width": 32}, (1, 3, 32, 32), id="the caller's dimensions"),
    ],
)
def test_metadata_gives_the_default_size(
    metadata: dict[str, str], sizes: Shapes, wanted: tuple[int, ...], tmp_path: Path
) -> None:
    proto = relu(value("x", PICTURE))
    helper.set_model_props(proto, metadata)
    path = saved(proto, tmp_path)
    found = load(path, sizes)
    assert found.main.inputs[0].shape == wanted
    assumed = [f.headline for f in found.extras["findings"] if f.code == "onnx.default-size"]
    assert bool(assumed) == (wanted[2:] in ((64, 96), (64, 64)))
    with runtimes.open(path, shapes=sizes) as runtime:
        assert runtime.interface.inputs[0].shape == wanted


@pytest.mark.parametrize("text", ["", "[64]", "[64, 0]", "[64, 1e9]", "{}", "[", "[null, 4]", "99999999"])
def test_metadata_that_says_no_size_is_passed_over(text: str, tmp_path: Path) -> None:
    proto = relu(value("x", PICTURE))
    helper.set_model_props(proto, {"imgsz": text})
    with pytest.raises(UnsupportedError, match="open"):
        load(saved(proto, tmp_path))
