"""Models made by other converters: our types, versions and checks agree with what stands in their files."""

from collections import Counter

import numpy as np
import pytest
from ops_harness import run_bytes

from vitrify.core.errors import UnsupportedError
from vitrify.ops import Custom, Quantize, ReadVariable, Reshape
from vitrify.ops.checking import check_graph
from vitrify.tflite import read

pytestmark = pytest.mark.models

FILES = (
    "mltk_int8/keyword_spotting/keyword_spotting.tflite",
    "mltk_int8/keyword_spotting_mobilenetv2/keyword_spotting_mobilenetv2.tflite",
    "mltk_int8/image_classification/image_classification.tflite",
    "mltk_int8/anomaly_detection/anomaly_detection.tflite",
    "mltk_int8/visual_wake_words/visual_wake_words.tflite",
    "micro_wakeword_int8/okay_nabu.tflite",
    "mediapipe_face/face_detection_full_range.tflite",
    "mediapipe_face/iris_landmark.tflite",
    "mediapipe_selfie/selfie_segmentation.tflite",
    "basic_pitch/nmp.tflite",
)
# What converters wrote that the versioning rules have otherwise: half-precision constants, flags set by hand, and
# shape arithmetic whose version followed the model's int8.
OTHER_VERSIONS = {"DEQUANTIZE", "RESIZE_BILINEAR", "STRIDED_SLICE", "PACK", "TILE", "DEPTH_TO_SPACE"}


@pytest.mark.parametrize("name", FILES)
def test_types_versions_and_checks(name, model_file):
    model = read(model_file(name))
    unknown = Counter()      # a QUANTIZE's output type stands in its tensor alone
    for node in (node for graph in model.graphs for node in graph if not isinstance(node.op, Quantize)):
        try:
            assert node.op.infer(node.inputs) == [tensor.type for tensor in node.outputs], node
        except UnsupportedError:
            unknown[type(node.op)] += 1
        if node.op.kind not in OTHER_VERSIONS:
            assert node.op.version(node) == node.extras["version"], node
    assert set(unknown) <= {Reshape, Custom, ReadVariable}
    assert not [finding for graph in model.graphs for finding in check_graph(graph)]


WHOLE = (
    "mltk_int8/keyword_spotting_alexa/keyword_spotting_alexa.float32.tflite",
    "mediapipe_face/iris_landmark.tflite",
    "mediapipe_face/face_detection_full_range.tflite",
    "basic_pitch/nmp.tflite",
)


@pytest.mark.parametrize("name", WHOLE)
def test_the_reference_runs_whole_models(name, model_file):
    graph = read(model_file(name)).main
    inputs = [np.random.default_rng(0).uniform(-1, 1, t.shape).astype(np.float32) for t in graph.inputs]
    values = {id(tensor): array for tensor, array in zip(graph.inputs, inputs, strict=True)}
    for node in graph:
        outputs = node.op.evaluate([t and (t.data if t.is_constant else values[id(t)]) for t in node.inputs])
        values.update((id(tensor), array) for tensor, array in zip(node.outputs, outputs, strict=True))
    for tensor, answer in zip(graph.outputs, run_bytes(model_file(name).read_bytes(), inputs), strict=True):
        error = np.abs(values[id(tensor)] - answer).max()
        assert error <= 5e-6 * np.abs(answer).max()      # some hundred roundings, in another order
