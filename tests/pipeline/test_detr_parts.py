"""The parts of a DETR that other converters stop at, in one small graph: from ONNX to int8 on the NPU.

A positional index computed from the shape, a LayerNorm written out with Pow and Div, attention of four heads, the best
rows by TopK, and sampling at computed places.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import vitrify as vt
from vitrify.ir import DType, Node

ROWS, WIDTH, HEADS, BEST = 48, 64, 4, 10
Floats = NDArray[np.float32]


def weights() -> dict[str, NDArray[np.generic]]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Floats:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    ints = {"one": [1], "shape": [1, ROWS, HEADS, WIDTH // HEADS], "flat": [1, ROWS, WIDTH], "grid": [1, 6, 8, 2],
            "k": [BEST], "thirds": [WIDTH] * 3}
    scalars = {"start": np.array(0, np.int64), "step": np.array(1, np.int64), "axis_1": np.array(1, np.int64)}
    floats = {"two": np.float32(2), "epsilon": np.float32(1e-5), "root": np.float32(4)}
    return {"positions": drawn(WIDTH, WIDTH), "gain": drawn(WIDTH) + 1, "shift": drawn(WIDTH),
            "qkv": drawn(WIDTH, 3 * WIDTH), "out": drawn(WIDTH, WIDTH), "score": drawn(WIDTH, 1),
            "offset": drawn(WIDTH, 2), **{name: np.array(value) for name, value in floats.items()},
            **{name: np.array(value, np.int64) for name, value in ints.items()}, **scalars}


def detr_parts(path: Path) -> Path:
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["x_shape"], "x_shape"),
        node("Gather", ["x_shape", "axis_1"], ["length"], "length"),
        node("Range", ["start", "length", "step"], ["index"], "index"),
        node("Add", ["index", "start"], ["place"], "place"),
        node("Gather", ["positions", "place"], ["position"], "position"),
        node("Add", ["x", "position"], ["placed"], "placed"),
        node("ReduceMean", ["placed"], ["mean"], "mean", axes=[-1]),
        node("Sub", ["placed", "mean"], ["centred"], "centred"),
        node("Pow", ["centred", "two"], ["squared"], "squared"),
        node("ReduceMean", ["squared"], ["variance"], "variance", axes=[-1]),
        node("Add", ["variance", "epsilon"], ["moved"], "moved"),
        node("Sqrt", ["moved"], ["deviation"], "deviation"),
        node("Div", ["centred", "deviation"], ["normal"], "normal"),
        node("Mul", ["normal", "gain"], ["scaled"], "scaled"),
        node("Add", ["scaled", "shift"], ["normed"], "normed"),
        node("MatMul", ["normed", "qkv"], ["all"], "qkv"),
        node("Split", ["all", "thirds"], ["q", "k_", "v"], "split", axis=2),
        *(node("Reshape", [name, "shape"], [f"{name}_heads"], f"{name}_heads") for name in ("q", "k_", "v")),
        node("Transpose", ["q_heads"], ["q_turned"], "q_turned", perm=[0, 2, 1, 3]),
        node("Transpose", ["k__heads"], ["k_turned"], "k_turned", perm=[0, 2, 3, 1]),
        node("Transpose", ["v_heads"], ["v_turned"], "v_turned", perm=[0, 2, 1, 3]),
        node("MatMul", ["q_turned", "k_turned"], ["alike"], "alike"),
        node("Div", ["alike", "root"], ["logits"], "logits"),
        node("Softmax", ["logits"], ["attention"], "attention", axis=-1),
        node("MatMul", ["attention", "v_turned"], ["mixed"], "mixed"),
        node("Transpose", ["mixed"], ["mixed_turned"], "mixed_turned", perm=[0, 2, 1, 3]),
        node("Reshape", ["mixed_turned", "flat"], ["joined"], "joined"),
        node("MatMul", ["joined", "out"], ["projected"], "projected"),
        node("Add", ["placed", "projected"], ["tokens"], "tokens"),
        node("MatMul", ["tokens", "score"], ["scores"], "scores"),
        node("TopK", ["scores", "k"], ["top", "top_index"], "best", axis=1),
        node("MatMul", ["tokens", "offset"], ["offsets"], "offsets"),
        node("Tanh", ["offsets"], ["bounded"], "bounded"),
        node("Reshape", ["bounded", "grid"], ["places"], "places"),
        node("GridSample", ["image", "places"], ["sampled"], "sampled", align_corners=0),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "detr_parts",
        [info("x", TensorProto.FLOAT, [1, ROWS, WIDTH]), info("image", TensorProto.FLOAT, [1, 8, 16, 16])],
        [info("sampled", TensorProto.FLOAT, [1, 8, 6, 8]), info("top", TensorProto.FLOAT, [1, BEST, 1])],
        [numpy_helper.from_array(value, name) for name, value in weights().items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return detr_parts(tmp_path_factory.mktemp("detr") / "detr_parts.onnx")


@pytest.fixture(scope="module")
def data(source: Path) -> Path:
    """Tokens, and features as smooth as a backbone's: what sampling gives hangs on where by their slope."""
    folder = source.parent / "data"
    folder.mkdir()
    rng = np.random.default_rng(1)
    waves = np.sin(np.linspace(0, 3, 16))
    for i in range(8):
        image = rng.normal(size=(1, 8, 1, 1)) * waves[:, None] + rng.normal(size=(1, 8, 1, 1)) * waves
        np.savez(folder / f"{i}.npz", x=rng.normal(size=(1, ROWS, WIDTH)).astype(np.float32),
                 image=image.astype(np.float32))
    return folder


def sources_of(node: Node) -> set[str]:
    return {source.name for source in node.origin.sources}


def test_float_equals_onnx_runtime(source: Path, data: Path) -> None:
    given = dict(np.load(data / "0.npz"))
    wanted = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).run(None, given)
    got = vt.run(vt.load(source), given)
    for name, want in zip(("sampled", "top"), wanted, strict=True):
        assert float(np.abs(got[name] - want).max()) < 1e-4


def test_no_arithmetic_on_shapes_is_left(source: Path) -> None:
    """What is left in int32 are the places that are sampled, which the values decide."""
    nodes = vt.load(source).main.nodes
    integer = [node for node in nodes if node.outputs[0].dtype in (DType.INT32, DType.INT64)]
    assert set().union(*(sources_of(node) for node in integer)) <= {"sampled", "best", "places"}
    assert not [node for node in nodes if sources_of(node) & {"x_shape", "length", "index", "place", "position"}]


def test_only_the_best_and_the_sampling_stay_on_the_cpu(source: Path, data: Path) -> None:
    found = vt.check(vt.quantize(source, data=data), "imx93")
    left = {name for row in found.verdicts if row.placement == "cpu" for name in row.origin}
    assert "best" in left
    assert "sampled" in left
    assert left <= {"best", "sampled", "places", "scores"}
    assert all(row.rules for row in found.verdicts if row.placement == "cpu")
    assert found.coverage.macs is not None
    assert found.coverage.macs > 0.97
