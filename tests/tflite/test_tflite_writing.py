"""What the writer puts into a file, seen by the schema's own reader and by LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite_runs
import tflite_small as small
import tflite_trees as trees
from ai_edge_litert import schema_py_generated as tfl

from vitrify import ops
from vitrify.core.errors import ModelError, UsageError
from vitrify.ir import (
    DType,
    Graph,
    Tensor,
)
from vitrify.tflite import read, read_bytes, to_bytes, write, writing

# every field of the format


def everything() -> tfl.ModelT:
    """A model with every field of every table below Model set, as far as they can stand together."""
    bytes_of = {1: np.arange(16, dtype=np.float32).tobytes(), 2: b"\x05\0\0\0\0\0\0\0", 3: b"metadata", 4: b"",
                5: np.ones(4, np.float32).tobytes(), 6: bytes(range(8)), 7: b"\x01\0\0\0\x08\0\0\0\x0b\0\0\0abc"}
    buffers = [tfl.BufferT(), *(tfl.BufferT(data=list(b)) for b in bytes_of.values())]
    sparsity = tfl.SparsityParametersT(traversalOrder=[0, 1], blockMap=[1], dimMetadata=[
        tfl.DimensionMetadataT(format=0, denseSize=4),
        tfl.DimensionMetadataT(format=1, arraySegmentsType=2, arraySegments=tfl.Uint16VectorT(values=[0, 2]),
                               arrayIndicesType=3, arrayIndices=tfl.Uint8VectorT(values=[1, 3]))])
    blockwise = tfl.QuantizationParametersT(detailsType=2, details=tfl.BlockwiseQuantizationT(
        scales=4, zeroPoints=1, blockSize=2, blockShape=[1, 2]))
    per_axis = tfl.QuantizationParametersT(scale=[0.5, 0.25], zeroPoint=[0, 3], min=[-1, -2], max=[1, 2],
                                           quantizedDimension=1)
    custom = tfl.QuantizationParametersT(scale=[1.0], zeroPoint=[0], detailsType=1,
                                         details=tfl.CustomQuantizationT(custom=[1, 2, 3]))
    tensors = [
        tfl.TensorT(name="x", type=0, shape=[1, 4], shapeSignature=[-1, 4], hasRank=True),
        tfl.TensorT(name="w", type=0, shape=[4, 4], buffer=1),
        tfl.TensorT(name="sparse", type=0, shape=[4, 4], buffer=5, sparsity=sparsity),
        tfl.TensorT(name="axis", type=9, shape=[1, 2], quantization=per_axis),
        tfl.TensorT(name="scales", type=0, shape=[2], buffer=2),
        tfl.TensorT(name="int4", type=17, shape=[4, 4], buffer=6, quantization=blockwise),
        tfl.TensorT(name="text", type=5, shape=[1], buffer=7),
        tfl.TensorT(name="state", type=0, shape=[1, 4], isVariable=True),
        tfl.TensorT(name="variant", type=14, shape=[], variantTensors=[tfl.VariantSubTypeT(shape=[2], type=2,
                                                                                           hasRank=True)]),
        tfl.TensorT(name="outside", type=0, shape=[4], externalBuffer=1),
        tfl.TensorT(name="nobody reads me", type=2, shape=[3]),
        tfl.TensorT(name="shares", type=0, shape=[16], buffer=1),
        tfl.TensorT(name="y", type=0, shape=[1, 4], quantization=custom),
        tfl.TensorT(name="zero elements", type=2, shape=[0], buffer=4),
        tfl.TensorT(name="zero elements, no data", type=2, shape=[0])]
    operators = [
        tfl.OperatorT(opcodeIndex=0, inputs=[0, 1, 2, 4, 5, 6, 8, 9, 11, 13, 14, -1, 7], outputs=[3], intermediates=[3],
                      mutatingVariableInputs=[False] * 12 + [True], customOptions=[1, 2, 3], debugMetadataIndex=4),
        tfl.OperatorT(opcodeIndex=1, inputs=[3], outputs=[12], builtinOptions2Type=18,
                      builtinOptions2=tfl.DilateOptionsT())]
    graph = tfl.SubGraphT(name="main", tensors=tensors, inputs=[0], outputs=[12], operators=operators,
                          debugMetadataIndex=2)
    second = tfl.SubGraphT(name="second", tensors=[tfl.TensorT(name="z", type=2, shape=[1])], inputs=[0], outputs=[0])
    return tfl.ModelT(
        version=3, description="everything", buffers=buffers, subgraphs=[graph, second],
        operatorCodes=[tfl.OperatorCodeT(deprecatedBuiltinCode=32, builtinCode=32, customCode="Mine", version=2),
                       tfl.OperatorCodeT(deprecatedBuiltinCode=127, builtinCode=203, version=1)],
        metadata=[tfl.MetadataT(name="note", buffer=3)], metadataBuffer=[3],
        signatureDefs=[tfl.SignatureDefT(signatureKey="serve", subgraphIndex=0,
                                         inputs=[tfl.TensorMapT(name="image", tensorIndex=0)],
                                         outputs=[tfl.TensorMapT(name="label", tensorIndex=12)]),
                       tfl.SignatureDefT(signatureKey="other", subgraphIndex=1,
                                         inputs=[tfl.TensorMapT(name="z", tensorIndex=0)],
                                         outputs=[tfl.TensorMapT(name="z", tensorIndex=0)])],
        externalBufferGroups=[tfl.ExternalBufferGroupT(name="weights.bin")],
        externalBuffers=[tfl.ExternalBufferT(id=1, group=0, offset=64, length=16, packing="raw")])


def resolved(model: tfl.ModelT) -> Any:
    """The tree with contents in the place of buffer numbers; an empty buffer is told from an absent one."""
    contents = [None if b.data is None else list(b.data) for b in model.buffers]
    plain = trees.tree(model)
    for tree, graph in zip(plain["subgraphs"], model.subgraphs, strict=True):
        for entry, tensor in zip(tree["tensors"], graph.tensors, strict=True):
            entry["buffer"] = ("data", contents[tensor.buffer]) if tensor.buffer else None
    for entry in plain["metadata"] or ():
        entry["buffer"] = contents[entry["buffer"]]
    plain["metadataBuffer"] = [contents[i] for i in plain["metadataBuffer"] or ()]
    del plain["buffers"]
    return plain


def test_every_field_is_kept() -> None:
    content = trees.pack(everything())
    written = to_bytes(read_bytes(content))
    assert resolved(trees.unpack(written)) == resolved(trees.unpack(content))
    assert to_bytes(read_bytes(written)) == written


def test_unused_tensors_leave_once_the_graph_changed() -> None:
    model = read_bytes(trees.pack(everything()))
    model.metadata["OfflineMemoryAllocation"] = b"numbers of tensors"
    assert b"nobody reads me" in to_bytes(model)
    assert b"OfflineMemoryAllocation" in to_bytes(model)
    graph = model.main
    graph.set_outputs([graph.add(ops.Relu(), [graph.outputs[0]], [Tensor("new", DType.FLOAT32, (1, 4))]).output])
    assert b"nobody reads me" not in to_bytes(model)
    assert b"OfflineMemoryAllocation" not in to_bytes(model)


# types, versions, names


@pytest.mark.parametrize(("signature", "written"), [((), None), ((1, 8, 8, 4), None), ((-1, 8, 8, 4), [-1, 8, 8, 4])],
                         ids=["none", "static", "free_batch"])
def test_shape_signature_only_where_something_is_free(signature: tuple[int, ...], written: list[int] | None) -> None:
    model = small.conv_model()
    model.main.inputs[0].shape_signature = signature
    tensor = trees.tree(trees.unpack(to_bytes(model)).subgraphs[0].tensors[0])
    assert tensor["shapeSignature"] == written
    assert tensor["shape"] == [1, 8, 8, 4]


def test_version_of_the_file_goes_before_the_operators_own() -> None:
    model = small.conv_model(DType.INT8)
    node = model.main.nodes[0]
    versions = [trees.unpack(to_bytes(model)).operatorCodes[0].version]
    node.extras["version"] = 17
    versions.append(trees.unpack(to_bytes(model)).operatorCodes[0].version)
    assert versions == [node.op.version(node), 17]


def test_same_operator_in_two_versions_has_two_codes() -> None:
    model = small.conv_model()
    graph = model.main
    for version in (1, 2, 2):
        node = graph.add(ops.Relu(), [graph.outputs[0]])
        node.extras["version"] = version
        graph.set_outputs([node.output])
    tree = trees.unpack(to_bytes(model))
    assert [(c.builtinCode, c.version) for c in tree.operatorCodes[1:]] == [(19, 1), (19, 2)]
    assert [o.opcodeIndex for o in tree.subgraphs[0].operators] == [0, 1, 2, 2]


def test_metadata_is_kept_and_nothing_is_invented() -> None:
    model = read_bytes(trees.pack(trees.one_operator(0)))
    assert trees.unpack(to_bytes(model)).metadata is None
    model.metadata["min_runtime_version"] = b"1.5.0\0"
    assert read_bytes(to_bytes(model)).metadata == {"min_runtime_version": b"1.5.0\0"}


# files


def test_same_model_gives_same_bytes() -> None:
    make = [small.float16_weights(small.conv_model()) for _ in range(2)]
    assert to_bytes(make[0]) == to_bytes(make[1])


def test_a_model_may_be_written_over_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    write(small.conv_model(), path)
    model = read(path)
    weights = model.main.nodes[0].input(1).data.copy()
    model.description = "changed"
    write(model, path)
    assert np.array_equal(model.main.nodes[0].input(1).data, weights)      # the old file stays mapped
    assert read(path).description == "changed"


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write(small.conv_model(), tmp_path)


def test_contents_behind_the_flatbuffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form for models over 2 GB, tried on a small one: LiteRT runs it to the same bits, and we read it again."""
    model = small.float_ends(small.conv_model(DType.INT8))
    model.metadata["note"] = b"12345"
    write(model, tmp_path / "inside.tflite")
    monkeypatch.setattr(writing, "FLATBUFFER_LIMIT", (tmp_path / "inside.tflite").stat().st_size - 1)
    write(model, tmp_path / "behind.tflite")
    tree = trees.unpack((tmp_path / "behind.tflite").read_bytes())
    assert [b.data for b in tree.buffers] == [None] * len(tree.buffers)
    assert {b.offset % writing.BUFFER_ALIGNMENT for b in tree.buffers} == {0}
    assert tflite_runs.outputs(tmp_path / "behind.tflite") == tflite_runs.outputs(tmp_path / "inside.tflite")
    monkeypatch.undo()
    again = read(tmp_path / "behind.tflite")
    assert again.metadata == {"note": b"12345"}
    assert to_bytes(again) == (tmp_path / "inside.tflite").read_bytes()


def test_a_graph_too_large_for_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FLATBUFFER_LIMIT", 100)
    with pytest.raises(ModelError, match=r"the graph without its weights has .* bytes, a TFLite file takes 100"):
        to_bytes(small.conv_model())


CONTROL: dict[str, tuple[Callable[[], ops.Operator], int]] = {
    "if": (lambda: ops.If(then_subgraph_index=1, else_subgraph_index=2), 118),
    "while": (lambda: ops.While(cond_subgraph_index=2, body_subgraph_index=1), 119),
    "call_once": (lambda: ops.CallOnce(init_subgraph_index=2), 129),
}


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_keeps_its_graphs(name: str) -> None:
    make, code = CONTROL[name]
    model = small.reading(small.constant("c", np.ones(1, np.float32)))
    model.main.add(make(), [model.main.inputs[0]], [Tensor("r", DType.FLOAT32, (1,))])
    for label in ("first", "second"):
        graph = Graph(label)
        graph.inputs = [Tensor(f"{label}_in", DType.FLOAT32, (1,))]
        graph.set_outputs([graph.add(ops.Relu(), graph.inputs).output])
        model.graphs.append(graph)
    content = to_bytes(model)
    assert trees.unpack(content).operatorCodes[1].builtinCode == code
    again = read_bytes(content)
    assert again.main.nodes[1].op == make()
    assert [g.name for g in again.graphs] == ["main", "first", "second"]
    assert to_bytes(again) == content


def test_options_of_a_replaced_operator_are_its_own() -> None:
    """What a file said of the operator that was read does not stick to the one put in its place."""
    model = read_bytes(trees.pack(trees.one_operator(0)))
    node = model.main.nodes[0]
    replaced = model.main.replace_node(node, ops.Add(fused_activation_function=ops.Activation.RELU), node.inputs)
    replaced.extras = dict(node.extras)
    options = trees.unpack(to_bytes(model)).subgraphs[0].operators[0].builtinOptions
    assert options.fusedActivationFunction == ops.Activation.RELU
