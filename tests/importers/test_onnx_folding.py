"""What is computed at import equals what ONNX Runtime computes, integers bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_makers import Array, by_runtime, model, saved

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers.onnx.budget import Budget
from vitrify.importers.onnx.folds import FOLDS, fold
from vitrify.importers.onnx.source import SourceNode

RNG = np.random.default_rng(5)
F = RNG.uniform(0.2, 3, (2, 3, 4)).astype(np.float32)
N = RNG.integers(-9, 9, (2, 3, 4))
BIG = np.array([2**40 + 3, -(2**33), 7], np.int64)
THREE = np.array([2, -3, 5], np.int64)
B = RNG.integers(0, 2, (2, 3, 4)).astype(bool)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


def scalar(value: int) -> Array:
    return np.array(value, np.int64)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


P = RNG.uniform(-1, 1, (1, 2, 6, 7)).astype(np.float32)
CASES: dict[str, tuple[str, list[Array | None], dict[str, Any], int]] = {
    "shape": ("Shape", [F], {}, 17),
    "shape part": ("Shape", [F], {"start": 1, "end": -1}, 17),
    "size": ("Size", [F], {}, 17),
    "constant of shape": ("ConstantOfShape", [i64(2, 3)], {"value": helper.make_tensor("v", 7, [1], [5])}, 17),
    "constant of shape default": ("ConstantOfShape", [i64(2, 3)], {}, 17),
    "range": ("Range", [scalar(3), scalar(20), scalar(4)], {}, 17),
    "range backwards": ("Range", [scalar(3), scalar(-9), scalar(-4)], {}, 17),
    "range float": (
        "Range",
        [np.float32([0.5])[0:1].reshape(()), np.array(3, np.float32), np.array(0.3, np.float32)],
        {},
        17,
    ),
    "reshape": ("Reshape", [N, i64(0, -1)], {}, 17),
    "flatten": ("Flatten", [N], {"axis": 2}, 17),
    "squeeze": ("Squeeze", [N[:, :1], i64(1)], {}, 17),
    "unsqueeze": ("Unsqueeze", [N, i64(0, -1)], {}, 17),
    "transpose": ("Transpose", [N], {"perm": [2, 0, 1]}, 17),
    "expand": ("Expand", [N[:, :1], i64(2, 5, 4)], {}, 17),
    "tile": ("Tile", [N, i64(1, 2, 3)], {}, 17),
    "concat": ("Concat", [N, N], {"axis": -1}, 17),
    "split": ("Split", [N, i64(1, 2)], {"axis": 1}, 17),
    "slice": ("Slice", [N, i64(-1), i64(-100), i64(2), i64(-2)], {}, 17),
    "pad": ("Pad", [N, i64(0, 1, -1, 0, 0, 2), scalar(7)], {}, 17),
    "pad edge": ("Pad", [F, i64(0, 1, 0, 0, 0, 2)], {"mode": "edge"}, 17),
    "gather": ("Gather", [N, np.array([[1, -1], [0, 2]])], {"axis": 1}, 17),
    "gather elements": ("GatherElements", [N, np.array([[[0, 2, 1, -1]], [[1, 1, 0, 2]]])], {"axis": 1}, 17),
    "gather nd": ("GatherND", [N, np.array([[0, 1], [1, 2]])], {}, 17),
    "scatter nd": ("ScatterND", [N, np.array([[0, 1], [1, 2]]), np.array([[1, 2, 3, 4], [5, 6, 7, 8]])], {}, 17),
    "non zero": ("NonZero", [N], {}, 17),
    "where": ("Where", [B, N, i64(9)], {}, 17),
    "cast down": ("Cast", [F], {"to": 7}, 17),
    "cast to bool": ("Cast", [N], {"to": 9}, 17),
    "one hot": ("OneHot", [i64(0, 2, -1), scalar(4), i64(3, 8)], {}, 17),
    "running sum": ("CumSum", [N, scalar(1)], {"reverse": 1}, 17),
    "trilu": ("Trilu", [N], {"upper": 0}, 17),
    "eye": ("EyeLike", [N[0]], {"k": 1}, 17),
    "add": ("Add", [BIG, THREE], {}, 17),
    "mul beyond int32": ("Mul", [BIG, THREE], {}, 17),
    "div truncates": ("Div", [i64(7, -7, 7, -7), i64(2, 2, -2, -2)], {}, 17),
    "mod": ("Mod", [i64(7, -7, 7, -7), i64(3, 3, -3, -3)], {}, 17),
    "fmod": ("Mod", [i64(7, -7, 7, -7), i64(3, 3, -3, -3)], {"fmod": 1}, 17),
    "pow": ("Pow", [i64(2, 3), i64(5, 2)], {}, 17),
    "sqrt": ("Sqrt", [F], {}, 17),
    "max": ("Max", [N, i64(1)], {}, 17),
    "min": ("Min", [N, i64(1), i64(-2)], {}, 17),
    "equal": ("Equal", [N, i64(1)], {}, 17),
    "less": ("Less", [N, i64(1)], {}, 17),
    "not": ("Not", [B], {}, 17),
    "clip": ("Clip", [N, scalar(-2), scalar(3)], {}, 17),
    "clip attributes": ("Clip", [F], {"min": 0.5, "max": 1.5}, 10),
    "matmul": ("MatMul", [F[0], F[0].T.copy()], {}, 17),
    "reduce product": ("ReduceProd", [N], {"axes": [0, 2], "keepdims": 0}, 17),
    "reduce sum": ("ReduceSum", [N, i64(1)], {}, 17),
    "reduce max": ("ReduceMax", [F], {}, 17),
    "reduce l1": ("ReduceL1", [F], {"axes": [1]}, 17),
    "reduce l2": ("ReduceL2", [F], {"axes": [0, 2]}, 17),
    "reduce squares": ("ReduceSumSquare", [F], {"axes": [1], "keepdims": 0}, 17),
    "softmax": ("Softmax", [F], {"axis": 1}, 17),
    "arg max": ("ArgMax", [N], {"axis": 1, "keepdims": 0}, 17),
    "exp": ("Exp", [F], {}, 17),
    "resize cubic": ("Resize", [P, None, f32(1, 1, 1.5, 2.3)], {"mode": "cubic"}, 17),
    "resize cubic down": ("Resize", [P, None, None, i64(1, 2, 4, 5)], {"mode": "cubic", "cubic_coeff_a": -0.5}, 17),
    "resize linear": ("Resize", [P, None, None, i64(1, 2, 9, 4)], {"mode": "linear"}, 17),
    "resize nearest": ("Resize", [P, None, f32(1, 1, 1.7, 0.6)], {"mode": "nearest", "nearest_mode": "floor"}, 17),
    "resize nearest opset 10": ("Resize", [P, f32(1, 1, 2.5, 0.5)], {"mode": "nearest"}, 10),
    "resize antialias": ("Resize", [P, None, None, i64(1, 2, 4, 3)], {"mode": "linear", "antialias": 1}, 18),
    "gather nd in batches": ("GatherND", [N, np.array([[1], [-2]])], {"batch_dims": 1}, 17),
    "scatter nd max": ("ScatterND", [N[0, 0], i64(1, 1).reshape(2, 1), i64(3, 9)], {"reduction": "max"}, 18),
    "scatter elements": ("ScatterElements", [N[0], np.array([[1, -1]]), np.array([[70, 80]])], {"axis": 1}, 17),
    "scatter elements add": ("ScatterElements", [N[0], np.array([[1, 1]]), N[:1, 0, :2]], {"reduction": "add"}, 17),
    "top k": ("TopK", [N, i64(3)], {"axis": 1}, 17),
    "top k smallest": ("TopK", [N, i64(2)], {"largest": 0}, 17),
    "top k of equals": ("TopK", [i64(2, 5, 5, 1), i64(3)], {}, 17),
    "arg max last": ("ArgMax", [i64(2, 5, 5, 1)], {"select_last_index": 1}, 17),
    "running sum exclusive": ("CumSum", [N, scalar(-1)], {"reverse": 1, "exclusive": 1}, 17),
    "compress": ("Compress", [N, np.array([False, True])], {"axis": 1}, 17),
    "compress flat": ("Compress", [N, np.array([False, True, True])], {}, 17),
    "unique": ("Unique", [i64(4, -1, 4, 2)], {}, 17),
    "unique unsorted": ("Unique", [i64(4, -1, 4, 2)], {"sorted": 0}, 17),
    "unique rows": ("Unique", [np.array([[2, 1], [0, 3], [2, 1]])], {"axis": 0}, 17),
    "one hot outside": ("OneHot", [i64(0, -5, 4), scalar(4), i64(3, 8)], {}, 17),
    "identity": ("Identity", [N], {}, 17),
}
OUTPUTS = {"Split": 2, "TopK": 2, "Unique": 4}


def node_of(kind: str, inputs: list[Array | None], attributes: dict[str, Any], opset: int, outputs: int) -> SourceNode:
    plain = {k: np.array(v.int64_data) if hasattr(v, "int64_data") else v for k, v in attributes.items()}
    return SourceNode(
        kind,
        "the node",
        [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)],
        [f"y{i}" for i in range(outputs)],
        plain,
        opset=opset,
    )


@pytest.mark.parametrize("name", CASES)
def test_fold_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    kind, inputs, attributes, opset = CASES[name]
    feeds = {f"x{i}": v for i, v in enumerate(inputs) if v is not None}
    outputs = OUTPUTS.get(kind, 1)
    node = helper.make_node(
        kind,
        [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)],
        [f"y{i}" for i in range(outputs)],
        **attributes,
    )
    wanted = list(by_runtime(saved(model([node], feeds, {}, node.output, opset), tmp_path), feeds).values())
    got = fold(node_of(kind, inputs, attributes, opset, outputs), inputs, Budget())
    assert got is not None
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(
            mine, theirs, rtol=0 if theirs.dtype.kind in "iub" else 3e-7, atol=1e-6 * (kind == "Resize")
        )


REFUSED = {
    "too large": ("ConstantOfShape", [i64(1 << 20, 1 << 20)], {}, "at most"),
    "too large tile": ("Tile", [N, i64(1 << 20, 1 << 20, 1)], {}, "at most"),
    "negative extent": ("ConstantOfShape", [i64(-1)], {}, "negative extent"),
    "does not fit": ("Reshape", [N, i64(5, 5)], {}, "24 elements"),
    "two free extents": ("Reshape", [N, i64(-1, -1)], {}, "does not fit"),
    "index out of range": ("Gather", [N, i64(7)], {}, "out of bounds"),
    "division by zero": ("Div", [i64(1), i64(0)], {}, "division by zero"),
    "no step": ("Range", [scalar(1), scalar(2), scalar(0)], {}, "cannot be computed|division"),
    "broadcast": ("Add", [i64(1, 2), i64(1, 2, 3)], {}, "broadcast"),
    "step 0": ("Slice", [N, i64(0), i64(1), i64(0), i64(0)], {}, "step 0"),
    "axis": ("Concat", [N, N], {"axis": 5}, "axis 5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_fold_refuses(name: str) -> None:
    kind, inputs, attributes, message = REFUSED[name]
    with pytest.raises((ModelError, UnsupportedError), match=message):
        fold(node_of(kind, inputs, attributes, 17, 1), inputs, Budget())


def test_every_fold_is_known_to_onnx() -> None:
    from onnx import defs

    assert {k for k in FOLDS if not defs.has(k)} == set()
