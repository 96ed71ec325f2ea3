"""Real models after all passes: no TRANSPOSE where none is needed, and the answers of the source model.

ONNX models are compared with ONNX Runtime on the source file, TFLite models with LiteRT on the source file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify import ops
from vitrify.importers import load
from vitrify.ir import Interface, Model
from vitrify.ir.graph import Array
from vitrify.ir.validation import validate
from vitrify.passes import optimize
from vitrify.tflite import write

pytestmark = pytest.mark.models
ModelFile = Callable[[str], Path]

# file: (shapes, nodes at most, TRANSPOSEs left)
ONNX = {
    "ppocr_v4/ch_PP-OCRv4_det_infer.onnx": ({"x": (1, 3, 320, 320)}, 157, 0),
    "ppocr_v4/ch_ppocr_mobile_v2.0_cls_infer.onnx": ({"x": (1, 3, 48, 192)}, 114, 0),
    "ppocr_v4/ch_PP-OCRv4_rec_infer.onnx": ({"x": (1, 3, 48, 320)}, 243, 0),
    "nudenet_yolov8n/320n.onnx": ({"images": (1, 3, 320, 320)}, 239, 0),
    "efficientnet_lite0/efficientnet_lite0.onnx": ({}, 61, 0),
    "digits_cnn/digits_cnn.onnx": ({}, 9, 0),
    "basic_pitch/nmp.onnx": ({"serving_default_input_2:0": (1, 43844, 1)}, 115, 0),
}
TFLITE = {
    "basic_pitch/nmp.tflite": 161,
    "mediapipe_face/face_detection_short_range.tflite": 73,
    "mediapipe_face/face_detection_full_range_sparse.tflite": 500,
    "mediapipe_face/iris_landmark.tflite": 175,
    "mltk_int8/keyword_spotting_mobilenetv2/keyword_spotting_mobilenetv2.tflite": 67,
    "mltk_int8/anomaly_detection/anomaly_detection.tflite": 14,
    "micro_wakeword_int8/okay_nabu.tflite": 58,
}


def sqnr_db(wanted: Array, got: Array) -> float:
    noise = float(((wanted.astype(np.float64) - got) ** 2).sum())
    return 200.0 if noise == 0 else 10 * float(np.log10((wanted.astype(np.float64) ** 2).sum() / noise))


def typical_inputs(interface: Interface, picture: Path) -> dict[str, Array]:
    """A picture of a printed page for each input that takes pictures, noise for others."""
    from PIL import Image
    found = {}
    for binding in interface.inputs:
        if len(binding.shape) == 4 and binding.shape[1] in (1, 3):
            _, channels, height, width = binding.shape
            page = Image.open(picture).convert("L" if channels == 1 else "RGB").resize((width, height))
            values = np.asarray(page, np.float32).reshape(1, height, width, channels).transpose(0, 3, 1, 2) / 127.5 - 1
        else:
            values = np.random.default_rng(0).normal(size=binding.shape)
        found[binding.name] = np.ascontiguousarray(values, np.float32)
    return found


def run_litert(path: Path, given: dict[int, Array]) -> list[Array]:
    """Run a TFLite file on inputs by their position, in the reference order of operations."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(str(path), num_threads=1,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    for position, detail in enumerate(interpreter.get_input_details()):
        interpreter.set_tensor(detail["index"], np.ascontiguousarray(given[position]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def run_as_source(model: Model, path: Path, arrays: dict[str, Array]) -> dict[str, Array]:
    """Write and run a model; take and give what its source takes and gives."""
    write(model, path)
    interface = model.interface
    assert interface is not None
    given = {b.position: arrays[b.name].transpose(b.perm or range(len(b.shape))) for b in interface.inputs}
    results = run_litert(path, given)
    found: dict[str, Array] = {}
    for binding in interface.outputs:
        (part,) = binding.parts
        result = results[part.position]
        found[binding.name] = result.transpose(part.perm) if part.perm else result
    return found


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("name", ONNX)
def test_onnx(name: str, layout: Any, model_file: ModelFile, tmp_path: Path) -> None:
    import onnxruntime
    shapes, nodes, transposes = ONNX[name]
    path = model_file(name)
    model = load(path, shapes)
    optimize(model, input_layout=layout, output_layout=layout)
    validate(model)
    assert not [node.name for node in model.main if not node.origin.sources]
    assert not [tensor.name for tensor in model.main.tensors() if not tensor.origin.sources]
    boundary = len(model.main.inputs) + len(model.main.outputs) if layout == "nchw" else 0
    assert len(model.main.nodes_of(ops.Transpose)) <= transposes + boundary
    assert len(model.main) <= nodes + boundary
    assert model.interface is not None
    arrays = typical_inputs(model.interface, model_file("skimage_photos/page.png"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [binding.name for binding in model.interface.outputs]
    wanted = dict(zip(names, session.run(names, arrays), strict=True))
    got = run_as_source(model, tmp_path / "out.tflite", arrays)
    for output in names:
        assert got[output].shape == wanted[output].shape
        assert sqnr_db(wanted[output], got[output]) >= 90, output


@pytest.mark.parametrize("name", TFLITE)
def test_tflite(name: str, model_file: ModelFile, tmp_path: Path) -> None:
    path = model_file(name)
    model = load(path)
    inputs = [(t.shape, t.dtype) for t in model.main.inputs]
    random = np.random.default_rng(0)
    given = {i: (random.normal(size=shape) * (40 if "INT" in dtype.name else 1)).astype(dtype.numpy)
             for i, (shape, dtype) in enumerate(inputs)}
    wanted = run_litert(path, given)
    optimize(model)
    validate(model)
    assert [(t.shape, t.dtype) for t in model.main.inputs] == inputs
    assert len(model.main) <= TFLITE[name]
    write(model, tmp_path / "out.tflite")
    for a, b in zip(wanted, run_litert(tmp_path / "out.tflite", given), strict=True):
        if a.dtype.kind == "f":
            assert sqnr_db(a, b) >= 90
        else:
            np.testing.assert_array_equal(a, b)
