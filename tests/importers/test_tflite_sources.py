"""TFLite files of every kind as a source: what becomes of each, and that values stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import schema_models as made
from vitrify import tflite
from vitrify.importers import load
from vitrify.ir import DType, Tensor
from vitrify.passes.stored.densify import dense_values
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.steps import optimize_model
from vitrify.tflite.schema import Record

LEAST_DB = 100.0
REAL = {
    "basic_pitch/nmp.tflite": ("float32", "float32"),
    "mediapipe_face/face_detection_short_range.tflite": ("float16", "float32"),
    "mediapipe_face/face_detection_full_range_sparse.tflite": ("float16", "float32"),
    "mediapipe_face/face_landmark.tflite": ("float32", "float32"),
    "mltk_int8/rock_paper_scissors/rock_paper_scissors.float32.tflite": ("float32", "float32"),
    "mltk_int8/rock_paper_scissors/rock_paper_scissors.tflite": ("int8-float-io", "int8-float-io"),
    "mltk_int8/image_classification/image_classification.tflite": ("int8", "int8"),
    "mltk_int8/anomaly_detection/anomaly_detection.tflite": ("int8-float-io", "int8-float-io"),
    "micro_wakeword_int8/okay_nabu.tflite": ("int8", "int8"),
}


def run(content: bytes) -> list[Any]:
    """What LiteRT's reference kernels give for the same random inputs each time."""
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    generator = np.random.default_rng(0)
    for place in interpreter.get_input_details():
        kind, shape = place["dtype"], place["shape"]
        is_float = np.issubdtype(kind, np.floating)
        value = generator.standard_normal(shape) if is_float else generator.integers(0, 100, shape)
        interpreter.set_tensor(place["index"], value.astype(kind))
    interpreter.invoke()
    return [interpreter.get_tensor(place["index"]) for place in interpreter.get_output_details()]


def converted(path: Path) -> Any:
    model = load(path)
    optimize_model(model, ConvertOptions(input_layout="nchw", output_layout="nchw"))
    return model


@pytest.mark.models
@pytest.mark.parametrize("name", REAL)
def test_real_files_keep_their_values(name: str, model_file: Callable[[str], Path]) -> None:
    path = model_file(name)
    before, after = REAL[name]
    assert tflite.classify(tflite.read(path)).value == before
    model = converted(path)
    assert tflite.classify(model).value == after
    assert not {"DENSIFY", "SHAPE"} & {node.op.kind for graph in model.graphs for node in graph}
    for wanted, found in zip(run(path.read_bytes()), run(bytes(tflite.to_bytes(model))), strict=True):
        if before.startswith("int"):
            np.testing.assert_array_equal(found, wanted)
            continue
        noise = np.square(wanted.astype(np.float64) - found).sum()
        assert 10 * np.log10(np.square(wanted.astype(np.float64)).sum() / max(noise, 1e-30)) >= LEAST_DB


@pytest.mark.models
def test_a_known_custom_operator_becomes_a_builtin(model_file: Callable[[str], Path]) -> None:
    model = converted(model_file("mediapipe_selfie/selfie_segmentation.tflite"))
    kinds = {node.op.kind for node in model.main}
    assert "TRANSPOSE_CONV" in kinds
    assert "Convolution2DTransposeBias" not in kinds
    assert run(bytes(tflite.to_bytes(model)))[0].shape == (1, 256, 256, 1)


def dynamic_range(path: Path) -> Path:
    """A dense layer with int8 weights of a scale for each output, on float values."""
    file = made.Maker()
    weights = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    x, y = file.tensor("x", (1, 8), "float32"), file.tensor("y", (1, 2), "float32")
    w = file.tensor("w", weights.shape, "int8", 0.5, data=weights)
    file.node(made.BUILTIN.FULLY_CONNECTED, [x, w], [y], "FullyConnectedOptions", version=3)
    return file.write(path, [x], [y])


def test_int8_weights_of_float_operators_become_float(tmp_path: Path) -> None:
    model = converted(dynamic_range(tmp_path / "dynamic.tflite"))
    assert tflite.classify(model).value == "float32"
    assert [f.code for f in model.extras["findings"]] == ["tflite.dynamic-range"]
    x = np.random.default_rng(0).standard_normal((1, 8)).astype(np.float32)
    wanted = x @ (np.arange(-8, 8, dtype=np.float32).reshape(2, 8) * 0.5).T
    np.testing.assert_allclose(run(bytes(tflite.to_bytes(model)))[0], wanted, rtol=1e-6)


def numbers(values: list[int]) -> Record:
    return Record("Int32Vector", values=np.array(values, np.int32))


def sparse(shape: tuple[int, ...], data: list[float], order: list[int], levels: list[Any],
           blocks: list[int] | None = None) -> Tensor:
    """A sparse tensor; a level is a number of children, or segments and indices."""
    entries = [Record("DimensionMetadata", format=0, dense_size=level) if isinstance(level, int) else
               Record("DimensionMetadata", format=1, array_segments=numbers(level[0]), array_indices=numbers(level[1]))
               for level in levels]
    tensor = Tensor("w", DType.FLOAT32, shape, data=np.array(data, np.float32))
    tensor.extras["sparsity"] = Record("SparsityParameters", traversal_order=np.array(order, np.int32),
                                       dim_metadata=entries,
                                       block_map=None if blocks is None else np.array(blocks, np.int32))
    return tensor


ROWS = ([0, 1, 3], [2, 0, 1])
SPARSE = {
    "rows": (sparse((2, 3), [7, 8, 9], [0, 1], [2, ROWS]), [[0, 0, 7], [8, 9, 0]]),
    "columns": (sparse((3, 2), [7, 8, 9], [1, 0], [2, ROWS]), [[0, 8], [0, 9], [7, 0]]),
    "blocks": (sparse((2, 4), [1, 2, 3, 4], [0, 1, 2, 3], [1, ([0, 1], [1]), 2, 2], [0, 1]),
               [[0, 0, 1, 2], [0, 0, 3, 4]]),
    "none": (sparse((2, 3), [], [0, 1], [2, ([0, 0, 0], [])]), [[0, 0, 0], [0, 0, 0]]),
}
DAMAGED = {
    "outside": sparse((2, 3), [7, 8, 9], [0, 1], [2, ([0, 1, 3], [2, 0, 3])]),
    "negative": sparse((2, 3), [7, 8, 9], [0, 1], [2, ([0, 1, 3], [2, 0, -1])]),
    "segments": sparse((2, 3), [7, 8, 9], [0, 1], [2, ([0, 3], [2, 0, 1])]),
    "order": sparse((2, 3), [7, 8, 9], [0, 0], [2, ROWS]),
    "values": sparse((2, 3), [7, 8], [0, 1], [2, ROWS]),
    "endless": sparse((2, 3), [7, 8, 9], [0, 1], [1 << 30, ROWS]),
    "huge": sparse((1 << 20, 1 << 20), [7, 8, 9], [0, 1], [2, ROWS]),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_values(name: str) -> None:
    tensor, wanted = SPARSE[name]
    np.testing.assert_array_equal(dense_values(tensor), np.array(wanted, np.float32))


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_sparse_values_stay(name: str) -> None:
    assert dense_values(DAMAGED[name]) is None
