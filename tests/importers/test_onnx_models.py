"""Real models: imported, run in LiteRT, and compared with ONNX Runtime on a real or random input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_makers import Array, by_litert, by_runtime, sqnr_db

from vitrify.importers import load
from vitrify.ir.validation import problems

pytestmark = pytest.mark.models
LEAST_SQNR_DB = 90.0


@dataclass
class Real:
    """A model file, the shapes it is fixed to, and what its input looks like."""

    file: str
    shapes: dict[str, Sequence[int]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    spread: float = 1.0


MODELS = {
    "text detector 320": Real("ppocr_v4/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}),
    "text detector 640": Real("ppocr_v4/ch_PP-OCRv4_det_infer.onnx", {"": (1, 3, 640, 640)}),
    "text direction": Real("ppocr_v4/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    "text reader": Real("ppocr_v4/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    "YOLOv8n 320": Real("nudenet_yolov8n/320n.onnx", {"images": (1, 3, 320, 320)}),
    "YOLOv8n 640": Real("nudenet_yolov8n/320n.onnx", {"images": (1, 3, 640, 640)}),
    "EfficientNet-Lite0": Real("efficientnet_lite0/efficientnet_lite0.onnx"),
    "digits": Real("digits_cnn/digits_cnn.onnx"),
    "Basic Pitch": Real("basic_pitch/nmp.onnx"),
    "speaker": Real("speaker_lstm/speaker_lstm.onnx"),
    "Silero, one If": Real("silero_vad/silero_vad_op18_ifless.onnx", {"input": (1, 576)}, {"sr": 16000}, 0.1),
    "Silero, LSTM": Real("silero_vad/silero_vad_openvino_16k.onnx", spread=0.1),
    "Silero, 12 If": Real("silero_vad/silero_vad_16k_op15.onnx", {"input": (1, 576)}, {"sr": 16000}, 0.1),
    "Silero, 25 If": Real("silero_vad/silero_vad.onnx", {"input": (1, 576), "state": (2, 1, 128)}, {"sr": 16000}, 0.1),
    "Silero, 8 kHz": Real("silero_vad/silero_vad.onnx", {"input": (1, 288), "state": (2, 1, 128)}, {"sr": 8000}, 0.1),
    "Silero, sequence": Real("silero_vad/silero_vad_16k_sequence.onnx", {"input": (4, 576)}, {}, 0.1),
}


def feeds_of(real: Real, interface: Any, model_file: Callable[[str], Path]) -> dict[str, Array]:
    if "_det_" in real.file:
        # On noise the detector's map is below 1e-5 everywhere, where ONNX Runtime's own sigmoid is not exact.
        return {"x": page(model_file("skimage_photos/page.png"), interface.inputs[0].shape)}
    rng = np.random.default_rng(1)
    return {i.name: (rng.standard_normal(i.shape) * real.spread).astype(i.dtype) for i in interface.inputs}


def page(path: Path, shape: Sequence[int]) -> Array:
    from PIL import Image

    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB").resize((shape[3], shape[2])), np.float32)
    return np.ascontiguousarray((pixels / 127.5 - 1).transpose(2, 0, 1)[None])


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_onnx_runtime(name: str, model_file: Callable[[str], Path]) -> None:
    real = MODELS[name]
    path = model_file(real.file)
    model = load(path, real.shapes, real.values)
    assert problems(model.main) == []
    feeds = feeds_of(real, model.interface, model_file)
    given = {k: np.array(v, np.int64) for k, v in real.values.items()}
    wanted = by_runtime(path, {**feeds, **given})
    got = by_litert(model, feeds)
    assert list(got) == list(wanted)
    for output, value in wanted.items():
        assert got[output].shape == value.shape
        assert sqnr_db(got[output], value) >= LEAST_SQNR_DB, output


def test_names_and_origins_are_the_users(model_file: Callable[[str], Path]) -> None:
    import onnx

    path = model_file("nudenet_yolov8n/320n.onnx")
    source = onnx.load(path)
    nodes = {n.name for n in source.graph.node}
    values = (
        {o for n in source.graph.node for o in n.output}
        | {i.name for i in source.graph.input}
        | {i.name for i in source.graph.initializer}
    )
    graph = load(path, {"images": (1, 3, 320, 320)}).main
    for node in graph:
        assert node.origin.sources
        assert {s.name for s in node.origin.sources} <= nodes
    convolutions = [n for n in graph if n.op.kind == "CONV_2D"]
    assert {n.name for n in convolutions} == {n.name for n in source.graph.node if n.op_type == "Conv"}
    assert {s.name for t in graph.tensors() if t.producer for s in t.origin.sources} <= values | nodes
    made = {o for n in source.graph.node if n.op_type == "Conv" for o in n.output}
    assert {n.output.name for n in convolutions} == made
    assert {n.output.origin.sources[0].name for n in convolutions} == made
    names = [t.name for t in graph.tensors()]
    assert len(names) == len(set(names))


def test_shape_arithmetic_is_gone(model_file: Callable[[str], Path]) -> None:
    graph = load(model_file("nudenet_yolov8n/320n.onnx"), {"images": (1, 3, 320, 320)}).main
    kinds = {n.op.kind for n in graph}
    assert not kinds & {"SHAPE", "GATHER", "RANGE", "FILL", "BROADCAST_TO", "CAST"}
    assert sum(n.op.kind == "CONV_2D" for n in graph) == 64


def test_layers_of_an_lstm_are_three_operators(model_file: Callable[[str], Path]) -> None:
    from vitrify.passes import optimize

    model = load(model_file("speaker_lstm/speaker_lstm.onnx"))
    optimize(model)
    assert [n.op.kind for n in model.main] == [
        *["UNIDIRECTIONAL_SEQUENCE_LSTM"] * 3, "SLICE", "RESHAPE", "FULLY_CONNECTED", "L2_NORMALIZATION"]
