"""Bad files are refused with what was found and where; nothing else ever comes out of the reader."""

from __future__ import annotations

import os
import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tflite_small as small
import tflite_trees as trees
from ai_edge_litert import schema_py_generated as tfl
from hypothesis import given, settings
from hypothesis import strategies as st

from scale import examples
from vitrify.core.errors import ModelError, UnsupportedError, UsageError, VitrifyError
from vitrify.ir import Interface
from vitrify.tflite import contents, read, read_bytes, to_bytes


def good() -> bytes:
    return to_bytes(small.conv_model())


def changed(change: Callable[[tfl.ModelT], None]) -> bytes:
    """A model of one convolution, with ``change`` done to its object tree."""
    tree = trees.unpack(good())
    change(tree)
    return trees.pack(tree)


def _set(path: str, value: object) -> bytes:
    """The model with one field of its object tree set; ``path`` reads like ``subgraphs.0.tensors.1.buffer``."""
    def change(tree: tfl.ModelT) -> None:
        *parents, last = path.split(".")
        node = tree
        for step in parents:
            node = node[int(step)] if step.isdigit() else getattr(node, step)
        setattr(node, last, value)
    return changed(change)


def _quantized(**fields: object) -> bytes:
    return _set("subgraphs.0.tensors.0.quantization", tfl.QuantizationParametersT(**fields))


def _twice(tree: tfl.ModelT) -> None:
    tree.subgraphs[0].operators *= 2


def _reads_itself(tree: tfl.ModelT) -> None:
    tree.subgraphs[0].operators[0].inputs = [3, 1, 2]


def _signature_of_inner_tensor(tree: tfl.ModelT) -> None:
    tree.signatureDefs[0].inputs[0].tensorIndex = 1


def _many(tree: tfl.ModelT) -> None:
    tree.subgraphs[0].inputs = list(range(100, 200))


def _far_buffer() -> bytes:
    def change(tree: tfl.ModelT) -> None:
        tree.buffers[1].data, tree.buffers[1].offset, tree.buffers[1].size = None, 10**12, 64
    return changed(change)


def _our_entry(name: str) -> bytes:
    """A model whose entry ``name`` is no JSON."""
    model = small.conv_model()
    model.interface = Interface(inputs=(), outputs=())
    content = to_bytes(model)
    place = content.index({"vitrify.interface": b'{"inputs":', "vitrify.origins": b'{"version":1'}[name])
    return content[:place] + b"?" + content[place + 1:]


BAD: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "empty": (lambda: b"", "tflite.empty", "the file is empty"),
    "one_byte": (lambda: b"\x1c", "tflite.identifier", "not a TFLite model"),
    "text": (lambda: b"hello, I am no model at all", "tflite.identifier", r"bytes 4 to 7 are b'o, I', not b'TFL3'"),
    "random": (lambda: random.Random(1).randbytes(4096), "tflite.identifier", "not a TFLite model"),
    "random_behind_identifier": (lambda: b"\x08\0\0\0TFL3" + random.Random(1).randbytes(4096), "tflite.corrupt",
                                 "the file is damaged"),
    "identifier_only": (lambda: b"\x08\0\0\0TFL3", "tflite.corrupt", "leads to byte 8"),
    "zeros_behind": (lambda: b"\x08\0\0\0TFL3" + bytes(64), "tflite.corrupt", "field list at byte 8 has 0 bytes"),
    "offset_beyond": (lambda: b"\xff\xff\xff\xffTFL3" + bytes(64), "tflite.corrupt", "leads to byte 4294967295"),
    "cut_in_half": (lambda: good()[:len(good()) // 2], "tflite.corrupt", "the file is damaged"),
    "cut_by_a_byte": (lambda: good()[:-1], "tflite.corrupt", "ends at byte"),
    "version": (lambda: _set("version", 2), "tflite.version", "schema version 2, only 3 exists"),
    "no_graph": (lambda: _set("subgraphs", []), "tflite.graphs", "the model has no graph"),
    "element_type": (lambda: _set("subgraphs.0.tensors.0.type", 99), "tflite.type", "element type 99"),
    "negative_shape": (lambda: _set("subgraphs.0.tensors.0.shape", [-1, 8, 8, 4]), "tflite.shape",
                       r"shape \[-1, 8, 8, 4\] has a negative dimension"),
    "data_does_not_fit": (lambda: _set("subgraphs.0.tensors.1.shape", [8, 3, 3, 5]), "tflite.data",
                          r"the buffer holds 1152 bytes, float32\[8,3,3,5\] needs 1440"),
    "absurd_shape": (lambda: _set("subgraphs.0.tensors.1.shape", [2**31 - 1] * 8), "tflite.data", "needs"),
    "buffer_index": (lambda: _set("subgraphs.0.tensors.1.buffer", 77), "tflite.index", "buffer 77 of 4"),
    "buffer_behind_the_end": (_far_buffer, "tflite.truncated",
                              "buffer 1 ends at byte 1000000000064, the file at"),
    "operator_code": (lambda: _set("subgraphs.0.operators.0.opcodeIndex", 5), "tflite.index", "operator code 5 of 1"),
    "operator_input": (lambda: _set("subgraphs.0.operators.0.inputs", [0, 99, 2]), "tflite.index", "tensor 99 of 4"),
    "negative_input": (lambda: _set("subgraphs.0.operators.0.inputs", [-2, 1, 2]), "tflite.index", "tensor -2 of 4"),
    "omitted_output": (lambda: _set("subgraphs.0.operators.0.outputs", [-1]), "tflite.index", "tensor -1 of 4"),
    "graph_input": (lambda: changed(_many), "tflite.index", "tensor 119 of 4.*\\n.*\\n.*\\n.*81 more problems"),
    "made_twice": (lambda: changed(_twice), "tflite.order", "tensor 3 is made by operators 0 and 1"),
    "reads_itself": (lambda: changed(_reads_itself), "tflite.order", "tensor 3 is read before operator 0 makes it"),
    "signature_tensor": (lambda: changed(_signature_of_inner_tensor), "tflite.signature", "'image' is tensor 1"),
    "signature_graph": (lambda: _set("signatureDefs.0.subgraphIndex", 3), "tflite.index", "graph 3 of 1"),
    "metadata_buffer": (lambda: _set("metadata", [tfl.MetadataT(name="m", buffer=9)]), "tflite.index", "buffer 9 of 4"),
    "padding": (lambda: _set("subgraphs.0.operators.0.builtinOptions.padding", 9), "tflite.option",
                "CONV_2D has padding 9, the schema knows 0 to 1"),
    "no_zero_point": (lambda: _quantized(scale=[0.1]), "tflite.quantization", "1 scales come with 0 zero points"),
    "scales_without_axis": (lambda: _quantized(scale=[0.1] * 4, zeroPoint=[0] * 4, quantizedDimension=4),
                            "tflite.quantization", "4 scales lie along dimension 4 of a tensor of rank 4"),
    "scales_of_other_count": (lambda: _quantized(scale=[0.1] * 3, zeroPoint=[0] * 3, quantizedDimension=3),
                              "tflite.quantization", "3 scales lie along dimension 3, which has 4 elements"),
    "our_interface": (lambda: _our_entry("vitrify.interface"), "tflite.metadata", "vitrify.interface"),
    "our_origins": (lambda: _our_entry("vitrify.origins"), "tflite.metadata", "vitrify.origins"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_file(name: str, tmp_path: Path) -> None:
    make, code, text = BAD[name]
    path = tmp_path / "bad.tflite"
    path.write_bytes(make())
    with pytest.raises(ModelError, match=text) as caught:
        read(path)
    finding = caught.value.findings[0]
    assert finding.code == code
    assert finding.where


def test_all_problems_are_listed_at_once() -> None:
    def change(tree: tfl.ModelT) -> None:
        tree.subgraphs[0].tensors[0].type = 99
        tree.subgraphs[0].tensors[1].shape = [7]
        tree.metadata = [tfl.MetadataT(name="m", buffer=9)]
    with pytest.raises(ModelError) as caught:
        read_bytes(changed(change))
    assert {f.code for f in caught.value.findings} >= {"tflite.type", "tflite.data", "tflite.index"}


def test_a_flood_of_problems_is_cut() -> None:
    def change(tree: tfl.ModelT) -> None:
        tree.subgraphs[0].inputs = list(range(100, 1100))
    with pytest.raises(ModelError, match=f"{1001 - 20} more problems") as caught:
        read_bytes(changed(change))
    assert len(caught.value.findings) == 21


def test_options_of_a_newer_schema() -> None:
    content = bytearray(trees.pack(trees.one_operator(0, options=tfl.AddOptionsT(fusedActivationFunction=1),
                                                      options_type=11)))
    places = [i for i, byte in enumerate(content) if byte == 11]
    refused = 0
    for place in places:
        content[place] = 250
        try:
            read_bytes(content)
        except UnsupportedError as error:
            refused += "'builtin_options' has type 250" in str(error)
        except ModelError:
            pass
        content[place] = 11
    assert refused == 1


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(("make", "text"), [
    (lambda p: p / "nothing.tflite", "No such file"),
    (lambda p: p, "Is a directory"),
    (lambda p: pipe(p / "pipe"), "it is a pipe or a device, not a file"),
    (lambda p: "nul\0byte", "null byte"),
], ids=["missing", "folder", "pipe", "no_path"])
def test_unreadable_path(make: Callable[[Path], Path], text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=text):
        read(make(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.tflite"
    path.write_bytes(good())
    path.chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        read(path)


def overlapping(count: int) -> bytes:
    """A file whose table of graphs lists one place ``count`` times, where a table lists the same again."""
    # model table: field list at 8 (slots 0 to 2), table at 20, its vector of graphs behind
    vtable = struct.pack("<5H", 10, 12, 8, 0, 4)
    head = struct.pack("<I4s", 20, b"TFL3") + vtable + bytes(2)
    graphs = 32
    model = struct.pack("<iII", 12, graphs - 24, 3)
    vector = struct.pack("<I", count)
    graph_vtable = graphs + 4 + 4 * count
    graph = graph_vtable + 8
    offsets = b"".join(struct.pack("<I", graph - (graphs + 4 + 4 * i)) for i in range(count))
    tensors = graph + 8
    tail = struct.pack("<3H", 6, 8, 4) + bytes(2) + struct.pack("<iI", 8, tensors - (graph + 4))
    empty = tensors + 4 + 4 * count
    tail += struct.pack("<I", count) + b"".join(struct.pack("<I", empty - (tensors + 4 + 4 * i)) for i in range(count))
    return head + model + vector + offsets + tail + struct.pack("<i", 4) + struct.pack("<2H", 4, 4)


def test_shared_tables_cannot_blow_up_time_or_memory() -> None:
    content = overlapping(20_000)       # 160 kB that stand for 400 million tables
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(ModelError):
        read_bytes(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - start < 20
    assert peak < 256 << 20


def test_shared_contents_cannot_blow_up_memory() -> None:
    def change(tree: tfl.ModelT) -> None:
        tree.buffers[1].data = [0] * 1152 + list(bytes(100_000))
        tree.subgraphs[0].tensors[1].buffer = 0
        tree.metadata = [tfl.MetadataT(name=f"entry {i}", buffer=1) for i in range(1000)]
    with pytest.raises(ModelError, match="overlap so often that they add up to more than 16 times the file"):
        read_bytes(changed(change))


FUZZED = {"float": small.conv_model(), "int8": small.float_ends(small.conv_model(small.DType.INT8)),
          "custom": small.compiled()}


@pytest.mark.parametrize("name", FUZZED)
@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_flipped_bytes_give_a_model_or_an_error(name: str, data: st.DataObject) -> None:
    content = bytearray(to_bytes(FUZZED[name]))
    flip = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    flips = data.draw(st.lists(flip, min_size=1, max_size=8))
    for place, value in flips:
        content[place] = value
    _reads_or_refuses(bytes(content))


@pytest.mark.models
@pytest.mark.parametrize("name", ["micro_wakeword_int8/alexa.tflite",
                                  "mltk_int8/tflite_micro_magic_wand/tflite_micro_magic_wand.tflite"])
def test_flipped_bytes_of_a_real_file(name: str, model_file: Callable[[str], Path]) -> None:
    content = model_file(name).read_bytes()
    rng = random.Random(7)
    outcomes = {"model": 0, "refused": 0}
    tables = [i for i in range(len(content)) if i < 4096 or i > len(content) - 12_000]
    for _ in range(400):
        broken = bytearray(content)
        for place in rng.sample(tables, rng.randint(1, 6)):
            broken[place] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        outcomes["model" if _reads_or_refuses(bytes(broken)) else "refused"] += 1
    assert min(outcomes.values()) > 20, f"one-sided: {outcomes}"


@pytest.mark.models
def test_every_truncation_is_refused(model_file: Callable[[str], Path]) -> None:
    content = model_file("mltk_int8/tflite_micro_magic_wand/tflite_micro_magic_wand.tflite").read_bytes()
    for size in np.unique(np.linspace(0, len(content) - 1, 300).astype(int)):
        with pytest.raises(ModelError):
            read_bytes(content[:size])


def _reads_or_refuses(content: bytes) -> bool:
    """True when the bytes give a model; such a model can also be looked at and written, or is refused then."""
    try:
        model = read_bytes(content)
        str(contents(model))
        to_bytes(model)
    except VitrifyError:
        return False
    return True
