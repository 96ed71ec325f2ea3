"""Real models: read, written and read again they are the same graph and run to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tflite_trees as trees

from vitrify.core.isolation import Worker
from vitrify.ir import Model, Tensor
from vitrify.ir.validation import validate
from vitrify.tflite import read, to_bytes, write

pytestmark = pytest.mark.models
MLTK = ["anomaly_detection", "fingerprint_signature_generator", "image_classification", "keyword_spotting",
        "keyword_spotting_alexa", "keyword_spotting_mobilenetv2", "keyword_spotting_on_off_v3",
        "keyword_spotting_pacman_v3", "rock_paper_scissors", "tflite_micro_magic_wand", "tflite_micro_speech",
        "visual_wake_words"]
FACE = ["face_detection_back", "face_detection_front", "face_detection_full_range", "face_detection_full_range_sparse",
        "face_detection_short_range", "face_landmark", "iris_landmark"]
MODELS = ([f"mltk_int8/{n}/{n}.tflite" for n in MLTK] + [f"mediapipe_face/{n}.tflite" for n in FACE]
          + [f"mediapipe_selfie/selfie_segmentation{n}.tflite" for n in ("", "_landscape")]
          + [f"micro_wakeword_int8/{n}.tflite" for n in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")]
          + ["basic_pitch/nmp.tflite"])
XNNPACK_ONLY = "mediapipe_selfie"        # its custom operator has no reference kernel
Find = Callable[[str], Path]


@pytest.fixture(scope="module")
def litert() -> Iterator[Worker]:
    with Worker("LiteRT") as worker:
        yield worker


def semantic(content: bytes) -> dict:
    """The object tree with every number of a buffer replaced by its content, and defaults left out."""
    model = trees.unpack(content)
    contents = [None if b.data is None else bytes(b.data) for b in model.buffers]
    codes = [trees.tree(c) for c in model.operatorCodes]
    for code in codes:
        code["builtinCode"] = max(code["builtinCode"], code.pop("deprecatedBuiltinCode"))
    graphs = trees.tree(model.subgraphs)
    for graph in graphs:
        for tensor in graph["tensors"]:
            tensor["buffer"] = contents[tensor["buffer"]] or None
            tensor["quantization"] = {k: v for k, v in (tensor["quantization"] or {}).items() if v}
            if not any(d < 0 for d in tensor["shapeSignature"] or ()):
                tensor["shapeSignature"] = None
        for operator in graph["operators"]:
            operator["opcodeIndex"] = {k: v for k, v in codes[operator["opcodeIndex"]].items() if v}
            operator["mutatingVariableInputs"] = [v for v in operator["mutatingVariableInputs"] or () if v]
        graph["name"] = graph["name"] or "main"
    metadata = {m.name: contents[m.buffer] for m in model.metadata or ()}
    return {"graphs": graphs, "metadata": metadata, "signatures": trees.tree(model.signatureDefs),
            "description": trees.tree(model.description) or None}


@pytest.mark.parametrize("name", MODELS)
def test_rewritten_model_says_the_same(name: str, model_file: Find) -> None:
    path = model_file(name)
    before = path.read_bytes()
    model = read(path)
    validate(model)
    written = to_bytes(model)
    assert semantic(written) == semantic(before)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", MODELS)
def test_rewritten_model_reads_the_same(name: str, model_file: Find, tmp_path: Path) -> None:
    model = read(model_file(name))
    write(model, tmp_path / "again.tflite")
    again = read(tmp_path / "again.tflite")
    assert_equal(model, again)
    assert to_bytes(again) == to_bytes(model)


@pytest.mark.parametrize("reference", [True, False], ids=["reference", "default"])
@pytest.mark.parametrize("name", MODELS)
def test_rewritten_model_runs_to_the_same_bits(name: str, reference: bool, model_file: Find, tmp_path: Path,
                                               litert: Worker) -> None:
    if reference and name.startswith(XNNPACK_ONLY):
        pytest.skip("LiteRT has no reference kernel for Convolution2DTransposeBias")
    path = model_file(name)
    write(read(path), tmp_path / "again.tflite")
    expected = litert.call("tflite_runs:outputs", str(path), reference, seconds=60)
    assert litert.call("tflite_runs:outputs", str(tmp_path / "again.tflite"), reference, seconds=60) == expected
    assert not reference or len({*expected}) > 1, "nothing depends on the inputs: nothing is tested"


def assert_equal(a: Model, b: Model) -> None:
    assert (a.metadata, a.signatures, a.description) == (b.metadata, b.signatures, b.description)
    assert len(a.graphs) == len(b.graphs)
    for left, right in zip(a.graphs, b.graphs, strict=True):
        assert [t.name for t in left.inputs] == [t.name for t in right.inputs]
        assert [t.name for t in left.outputs] == [t.name for t in right.outputs]
        for x, y in zip(left, right, strict=True):
            assert (x.op, x.name, x.origin) == (y.op, y.name, y.origin)
            assert [t and t.name for t in x.inputs] == [t and t.name for t in y.inputs]
        for t, u in zip(left.tensors(), right.tensors(), strict=True):
            assert_tensors_equal(t, u)


def assert_tensors_equal(a: Tensor, b: Tensor) -> None:
    assert (a.name, a.type, a.is_variable, a.shape_signature) == (b.name, b.type, b.is_variable, b.shape_signature)
    assert a.quantization == b.quantization
    assert a.extras == b.extras
    assert (a.data is None) == (b.data is None)
    if a.data is not None and b.data is not None:
        assert np.array_equal(a.data.view(np.uint8) if a.data.size and a.data.ndim else a.data,
                              b.data.view(np.uint8) if b.data.size and b.data.ndim else b.data)


def test_state_and_initialisation_are_kept(model_file: Find) -> None:
    model = read(model_file("micro_wakeword_int8/okay_nabu.tflite"))
    kinds = {node.op.kind for graph in model.graphs for node in graph}
    assert {"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"} <= kinds
    assert len(model.graphs) == 2
