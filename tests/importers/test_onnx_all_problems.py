"""An import that cannot succeed says in one run all that stands in its way, by the user's own names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_makers import model, saved, value

from vitrify.core.errors import UnsupportedError
from vitrify.importers import load

X = np.ones((1, 3, 8, 8), np.float32)


def strangers() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Fancy", ["x"], ["a"], "first fancy", domain="com.example"),
        helper.make_node("Fancy", ["a"], ["b"], "second fancy", domain="com.example"),
        helper.make_node("RandomNormalLike", ["b"], ["c"], "noise"),
        helper.make_node("Mystery", ["c"], ["y"], "the mystery", domain="org.other"),
    ]


def with_opsets(proto: onnx.ModelProto) -> onnx.ModelProto:
    for domain in ("com.example", "org.other"):
        proto.opset_import.append(helper.make_opsetid(domain, 1))
    return proto


def open_size_and_strangers() -> onnx.ModelProto:
    graph = helper.make_graph(strangers(), "g", [value("x", ["N", 3, "h", "w"])],
                              [helper.make_empty_tensor_value_info("y")])
    return with_opsets(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


def text_and_strangers() -> onnx.ModelProto:
    nodes = [*strangers(), helper.make_node("Identity", ["t"], ["z"], "echo"), helper.make_node("Fancy", ["u"], ["v"],
             "third fancy", domain="com.example")]
    inputs = [value("x", [1, 3, 8, 8]), value("t", [1], TensorProto.STRING), value("u", [2])]
    outputs = [helper.make_empty_tensor_value_info(o) for o in "yzv"]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return with_opsets(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


def broken_forms() -> onnx.ModelProto:
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"], "where it is not zero"),
        helper.make_node("Fancy", ["x"], ["b"], "fancy", domain="com.example"),
        helper.make_node("Resize", ["x", "", "s"], ["c"], "run-time scales"),
    ]
    feeds = {"x": X, "s": np.ones(4, np.float32)}
    return with_opsets(model(nodes, feeds, {}, ["a", "b", "c"]))


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], list[str]]] = {
    "an open size and unknown operators": (open_size_and_strangers, [
        "leaves dimensions 2 ('h') and 3 ('w') open", "com.example::Fancy is not supported: 2 nodes",
        "'first fancy', 'second fancy'", "org.other::Mystery is not supported: 1 node"]),
    "text and unknown operators": (text_and_strangers, [
        "input 't' has the element type string", "com.example::Fancy is not supported: 3 nodes", "'third fancy'"]),
    "forms and unknown operators": (broken_forms, [
        "com.example::Fancy is not supported: 1 node", "where it is not zero", "run-time scales"]),
}


@pytest.mark.parametrize("name", CASES)
def test_everything_is_listed_at_once(name: str, tmp_path: Path) -> None:
    proto, wanted = CASES[name]
    with pytest.raises(UnsupportedError) as caught:
        load(saved(proto(), tmp_path))
    told = "\n".join(f"{f.headline} {f.where}" for f in caught.value.findings)
    assert [text for text in wanted if text not in told] == []
