"""The user's names and the source model's interface come back from a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tflite_runs
import tflite_small as small
import tflite_trees as trees

from vitrify.ir import DType, InputBinding, Interface, Model, Origin, OutputBinding, Part, Source
from vitrify.ir.validation import validate
from vitrify.tflite import Kind, classify, read, read_bytes, to_bytes, write

INTERFACE = Interface(
    inputs=(InputBinding(name="images", shape=(1, 4, 8, 8), dtype="float32", position=0, perm=(0, 2, 3, 1)),),
    outputs=(OutputBinding(name="out", shape=(1, 8, 8, 8), dtype="float32",
                           parts=(Part(position=0, perm=(0, 3, 1, 2), scale=0.5),)),), source_format="onnx")


def named_model() -> Model:
    """A model whose names and origins differ from what a reader would make of the file alone."""
    model = small.float_ends(small.conv_model(DType.INT8))
    quantize, conv, dequantize = model.main.nodes
    conv.name, conv.origin = "/model.0/conv/Conv", Origin((Source("/model.0/conv/Conv", "Conv"),
                                                           Source("/model.0/act/Relu", "Relu")), ("fuse", "layout"))
    quantize.name, dequantize.origin = "entry", Origin((), ("quantize",))
    conv.output.origin = Origin.of("/model.0/act/Relu_output_0")
    model.interface = INTERFACE
    return model


def test_names_and_interface_come_back(tmp_path: Path) -> None:
    model = named_model()
    write(model, tmp_path / "model.tflite")
    again = read(tmp_path / "model.tflite")
    assert again.interface == INTERFACE
    assert [(n.name, n.origin) for n in again.main] == [(n.name, n.origin) for n in model.main]
    assert {t.name: t.origin for t in again.main.tensors()} == {t.name: t.origin for t in model.main.tensors()}
    assert again.metadata == {}
    tflite_runs.outputs(tmp_path / "model.tflite")


def test_names_come_back_after_another_program_dropped_nodes() -> None:
    tree = trees.unpack(to_bytes(named_model()))
    graph = tree.subgraphs[0]
    graph.operators = graph.operators[1:2]                   # only the convolution is left, between quantized tensors
    graph.inputs, graph.outputs = graph.operators[0].inputs[:1], graph.operators[0].outputs
    tree.signatureDefs, tree.metadata = [], [m for m in tree.metadata if m.name != b"vitrify.interface"]
    conv, = read_bytes(trees.pack(tree)).main
    assert conv.name == "/model.0/conv/Conv"
    assert conv.origin.passes == ("fuse", "layout")


def test_tensors_of_one_name_keep_their_own_origins() -> None:
    model = small.conv_model()
    tensors = model.main.tensors()
    for index, tensor in enumerate(tensors):
        tensor.name, tensor.origin = "same", Origin.of(f"origin {index}")
    again = read_bytes(to_bytes(model)).main.tensors()
    assert [str(t.origin) for t in again] == [f"origin {i}" for i in range(len(tensors))]


def test_a_name_alone_comes_back() -> None:
    model = read_bytes(trees.pack(trees.one_operator(0)))
    model.main.nodes[0].name = "sum"
    assert read_bytes(to_bytes(model)).main.nodes[0].name == "sum"


def test_a_plain_file_gets_no_entries_of_ours() -> None:
    model = read_bytes(trees.pack(trees.one_operator(0)))
    assert b"vitrify" not in to_bytes(model)


def compiled(path: Path) -> Path:
    """The file as Vela compiles it for an Ethos-U65."""
    output = path.parent / "compiled"
    subprocess.run([sys.executable, "-m", "ethosu.vela", str(path), "--accelerator-config", "ethos-u65-256",
                    "--output-dir", str(output)], check=True, capture_output=True)
    return output / f"{path.stem}_vela.tflite"


def test_names_and_interface_come_back_from_a_compiled_file(tmp_path: Path) -> None:
    write(named_model(), tmp_path / "model.tflite")
    model = read(compiled(tmp_path / "model.tflite"))
    validate(model)
    assert classify(model) is Kind.COMPILED
    assert model.interface == INTERFACE
    assert [(n.op.kind, n.name) for n in model.main] == [("QUANTIZE", "entry"), ("ethos-u", "y"),
                                                         ("DEQUANTIZE", "y_real")]


@pytest.mark.models
@pytest.mark.parametrize("name", ["micro_wakeword_int8/alexa.tflite",
                                  "mltk_int8/visual_wake_words/visual_wake_words.tflite"])
def test_rewritten_model_compiles_to_the_same(name: str, model_file: Callable[[str], Path], tmp_path: Path) -> None:
    """Vela sees no difference between a file and its rewritten form; a compiled file keeps its memory plan."""
    (tmp_path / "original.tflite").write_bytes(model_file(name).read_bytes())
    write(read(tmp_path / "original.tflite"), tmp_path / "again.tflite")
    original, again = (read(compiled(tmp_path / f"{n}.tflite")) for n in ("original", "again"))
    assert to_bytes(original) == to_bytes(again)
    assert read_bytes(to_bytes(original)).metadata["OfflineMemoryAllocation"]
