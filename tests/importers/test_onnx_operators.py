"""Every lowering against ONNX Runtime: one node, imported, written, run in LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, by_litert, by_runtime, saved
from onnx_node_suite import collected

from vitrify.importers import load
from vitrify.importers.onnx.lowerings import LOWERINGS
from vitrify.ir.validation import problems

RNG = np.random.default_rng(3)


def f(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def ints(*shape: int, low: int = -9, high: int = 9) -> Feed:
    return Feed(RNG.integers(low, high, shape).astype(np.int32))


def flags(*shape: int) -> Feed:
    return Feed(RNG.integers(0, 2, shape).astype(bool))


X = (1, 4, 9, 11)
ROW = (1, 6, 20)

CONVOLUTION = {
    "conv": Case("Conv", [X, f(8, 4, 3, 3), f(8)]),
    "conv no bias": Case("Conv", [X, f(8, 4, 1, 1)]),
    "conv same": Case("Conv", [X, f(8, 4, 3, 3), f(8)], {"pads": [1, 1, 1, 1]}),
    "conv same stride 2, odd input": Case("Conv", [X, f(8, 4, 3, 3), f(8)], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "conv stride 2, even input": Case(
        "Conv", [(1, 4, 8, 12), f(8, 4, 3, 3)], {"pads": [1, 1, 1, 1], "strides": [2, 2]}
    ),
    "conv asymmetric": Case("Conv", [X, f(8, 4, 3, 5)], {"pads": [0, 3, 2, 1], "strides": [2, 1]}),
    "conv dilated": Case("Conv", [X, f(8, 4, 3, 3)], {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "conv same upper": Case("Conv", [X, f(8, 4, 4, 4)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "conv same lower": Case("Conv", [X, f(8, 4, 4, 4)], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "conv valid": Case("Conv", [X, f(8, 4, 4, 4)], {"auto_pad": "VALID"}),
    "conv batch 3": Case("Conv", [(3, 4, 6, 6), f(8, 4, 3, 3)]),
    "conv depthwise": Case("Conv", [X, f(4, 1, 3, 3), f(4)], {"group": 4, "pads": [1, 1, 1, 1]}),
    "conv depthwise multiplier": Case("Conv", [X, f(12, 1, 3, 3), f(12)], {"group": 4, "strides": [2, 2]}),
    "conv depthwise strides differ": Case("Conv", [X, f(4, 1, 3, 3)], {"group": 4, "strides": [2, 1]}),
    "conv grouped": Case("Conv", [X, f(6, 2, 3, 3), f(6)], {"group": 2, "pads": [1, 1, 1, 1]}),
    "conv 1-D": Case("Conv", [ROW, f(5, 6, 3), f(5)], {"pads": [1, 1], "strides": [2]}),
    "conv 1-D depthwise": Case("Conv", [ROW, f(6, 1, 3)], {"group": 6, "pads": [2, 0]}),
    "transposed": Case("ConvTranspose", [X, f(4, 5, 2, 2), f(5)], {"strides": [2, 2]}),
    "transposed kernel 3": Case("ConvTranspose", [X, f(4, 5, 3, 3), f(5)], {"strides": [2, 2]}),
    "transposed pads": Case("ConvTranspose", [X, f(4, 5, 4, 4)], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "transposed output padding": Case(
        "ConvTranspose", [X, f(4, 5, 3, 3), f(5)], {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    ),
    "transposed output padding past the end": Case(
        "ConvTranspose", [X, f(4, 5, 2, 2), f(5)], {"strides": [3, 3], "output_padding": [1, 2]}
    ),
    "transposed kernel below stride": Case("ConvTranspose", [X, f(4, 5, 1, 1), f(5)], {"strides": [2, 2]}),
    "transposed grouped": Case("ConvTranspose", [X, f(4, 3, 2, 2), f(6)], {"strides": [2, 2], "group": 2}),
    "transposed depthwise": Case(
        "ConvTranspose", [X, f(4, 1, 4, 4)], {"strides": [2, 2], "group": 4, "pads": [1, 1, 1, 1]}
    ),
    "transposed dilated": Case("ConvTranspose", [X, f(4, 5, 3, 3)], {"dilations": [2, 2]}),
    "transposed output shape": Case("ConvTranspose", [X, f(4, 5, 3, 3)], {"strides": [2, 2], "output_shape": [18, 22]}),
    "transposed same upper": Case("ConvTranspose", [X, f(4, 5, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "transposed same lower": Case("ConvTranspose", [X, f(4, 5, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "transposed 1-D": Case("ConvTranspose", [ROW, f(6, 3, 4), f(3)], {"strides": [2], "pads": [1, 1]}),
    "transposed asymmetric": Case("ConvTranspose", [X, f(4, 5, 3, 3)], {"strides": [2, 1], "pads": [0, 1, 2, 0]}),
}
POOLING = {
    "max": Case("MaxPool", [X], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "max same": Case("MaxPool", [X], {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
    "max below zero, stride 2": Case(
        "MaxPool", [(1, 4, 8, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, low=-5, high=-1
    ),
    "max below zero, odd pads": Case(
        "MaxPool", [(1, 4, 8, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 0]}, low=-5, high=-1
    ),
    "max ceil": Case(
        "MaxPool", [(1, 4, 8, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, low=-5, high=-1
    ),
    "max 1-D": Case("MaxPool", [ROW], {"kernel_shape": [3], "strides": [2]}),
    "max opset 8": Case("MaxPool", [X], {"kernel_shape": [2, 2]}, 8),
    "average": Case("AveragePool", [X], {"kernel_shape": [3, 2], "strides": [2, 2]}),
    "average same": Case("AveragePool", [X], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "average same, pads counted": Case(
        "AveragePool", [X], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}
    ),
    "average odd pads": Case(
        "AveragePool", [(1, 4, 8, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    ),
    "average ceil": Case("AveragePool", [(1, 4, 8, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "average ceil, pads counted": Case(
        "AveragePool",
        [(1, 4, 7, 8)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1], "count_include_pad": 1},
        19,
    ),
    "average 1-D": Case("AveragePool", [ROW], {"kernel_shape": [4], "strides": [2], "pads": [1, 1]}),
    "global average": Case("GlobalAveragePool", [X]),
    "global average 1-D": Case("GlobalAveragePool", [ROW]),
    "global max": Case("GlobalMaxPool", [X]),
}
ELEMENTWISE = {
    "add": Case("Add", [X, X]),
    "add channel": Case("Add", [X, f(4, 1, 1)]),
    "add scalar": Case("Add", [X, number(2.5)]),
    "add broadcast both": Case("Add", [(1, 4, 1, 11), (9, 1)]),
    "add int": Case("Add", [ints(3, 4), ints(3, 4)]),
    "sub from constant": Case("Sub", [f(1), X]),
    "mul": Case("Mul", [X, f(1, 4, 1, 1)]),
    "div": Case("Div", [X, Feed(RNG.uniform(1, 2, X).astype(np.float32))]),
    "max of one": Case("Max", [X]),
    "max of three": Case("Max", [X, X, f(1)]),
    "min": Case("Min", [X, number(0.5)]),
    "sum of three": Case("Sum", [X, X, X]),
    "mean of three": Case("Mean", [X, X, X]),
    "pow 2": Case("Pow", [X, number(2)]),
    "pow 2 int64": Case("Pow", [X, np.array(2, np.int64)]),
    "pow 3": Case("Pow", [X, number(3)]),
    "pow half": Case("Pow", [X, number(0.5)], low=0.1),
    "pow 1": Case("Pow", [X, number(1)]),
    "pow 1.7": Case("Pow", [X, number(1.7)], low=0.1, tolerance=1e-5),
    "pow of tensors": Case("Pow", [X, (4, 1, 1)], low=0.1, tolerance=1e-5),
    "sqrt": Case("Sqrt", [X], low=0.1),
    "reciprocal": Case("Reciprocal", [X], low=0.5),
    "exp": Case("Exp", [X]),
    "log": Case("Log", [X], low=0.1),
    "abs": Case("Abs", [X]),
    "neg": Case("Neg", [X]),
    "sin": Case("Sin", [X]),
    "cos": Case("Cos", [X]),
    "floor": Case("Floor", [X]),
    "ceil": Case("Ceil", [X]),
    "round": Case("Round", [Feed(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6], np.float32))]),
    "sign": Case("Sign", [X]),
    "mod int": Case("Mod", [ints(3, 4), Feed(np.array([[3, -4, 5, 7]], np.int32))]),
}
ACTIVATION = {
    "relu": Case("Relu", [X]),
    "sigmoid": Case("Sigmoid", [X]),
    "tanh": Case("Tanh", [X]),
    "clip 0..6": Case("Clip", [X, number(0), number(6)], low=-9, high=9),
    "clip -1..1": Case("Clip", [X, number(-1), number(1)]),
    "clip 0..1": Case("Clip", [X, number(0), number(1)]),
    "clip 0..": Case("Clip", [X, number(0)]),
    "clip ..1": Case("Clip", [X, None, number(1)]),
    "clip odd": Case("Clip", [X, number(-0.3), number(1.7)]),
    "clip nothing": Case("Clip", [X]),
    "clip attributes": Case("Clip", [X], {"min": 0.0, "max": 6.0}, 10, low=-9, high=9),
    "clip int": Case("Clip", [ints(3, 4), np.array(-2, np.int32), np.array(3, np.int32)]),
    "leaky": Case("LeakyRelu", [X], {"alpha": 0.1}),
    "leaky default": Case("LeakyRelu", [X]),
    "prelu": Case("PRelu", [X, f(4, 1, 1)]),
    "prelu one slope": Case("PRelu", [X, f(1)]),
    "prelu rank 2": Case("PRelu", [(3, 4), f(4)]),
    "prelu 1-D": Case("PRelu", [ROW, f(6, 1)]),
    "hard sigmoid": Case("HardSigmoid", [X], {"alpha": 0.1666667, "beta": 0.5}, low=-9, high=9),
    "hard sigmoid default": Case("HardSigmoid", [X], low=-9, high=9),
    "hard swish": Case("HardSwish", [X], low=-9, high=9),
    "mish": Case("Mish", [X], {}, 18, low=-30, high=30, tolerance=5e-6),
    "softplus": Case("Softplus", [X], low=-90, high=90, tolerance=5e-6),
    "swish": Case("Swish", [X], {}, 24),
    "swish alpha": Case("Swish", [X], {"alpha": 1.7}, 24),
    "softsign": Case("Softsign", [X]),
    "elu": Case("Elu", [X]),
    "elu alpha": Case("Elu", [X], {"alpha": 0.3}),
    "celu": Case("Celu", [X], {"alpha": 0.7}),
    "selu": Case("Selu", [X]),
    "gelu": Case("Gelu", [X], {}, 20, tolerance=1e-5),
    "gelu tanh": Case("Gelu", [X], {"approximate": "tanh"}, 20, tolerance=1e-5),
    "thresholded": Case("ThresholdedRelu", [X], {"alpha": 0.7}),
    "softmax last": Case("Softmax", [X]),
    "softmax channels": Case("Softmax", [X], {"axis": 1}),
    "softmax rows": Case("Softmax", [X], {"axis": 2}),
    "softmax first": Case("Softmax", [(4, 5)], {"axis": 0}),
    "softmax opset 11": Case("Softmax", [X], {"axis": 1}, 11),
    "softmax opset 11 last": Case("Softmax", [X], {"axis": 3}, 11),
    "log softmax": Case("LogSoftmax", [(3, 7)], tolerance=5e-6),
    "log softmax channels": Case("LogSoftmax", [X], {"axis": 1}, tolerance=5e-6),
}
MATRIX = {
    "matmul": Case("MatMul", [(3, 4), f(4, 5)]),
    "matmul rank 3": Case("MatMul", [(2, 3, 4), f(4, 5)]),
    "matmul vector": Case("MatMul", [(3, 4), f(4)]),
    "matmul two tensors": Case("MatMul", [(2, 3, 4), (2, 4, 5)]),
    "matmul broadcast": Case("MatMul", [(2, 3, 3, 4), (3, 4, 5)]),
    "matmul constant first": Case("MatMul", [f(3, 4), (4, 5)]),
    "matmul vector of tensors": Case("MatMul", [(4,), (2, 4, 5)]),
    "matmul constant stack": Case("MatMul", [(2, 3, 4), f(2, 4, 5)]),
    "gemm": Case("Gemm", [(3, 4), f(4, 5), f(5)]),
    "gemm transB": Case("Gemm", [(3, 4), f(5, 4), f(5)], {"transB": 1}),
    "gemm transA alpha beta": Case("Gemm", [(4, 3), f(4, 5), f(5)], {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    "gemm no bias": Case("Gemm", [(3, 4), f(4, 5)]),
    "gemm bias of rows": Case("Gemm", [(3, 4), f(4, 5), f(3, 1)]),
    "gemm bias one number": Case("Gemm", [(3, 4), f(4, 5), f(1)]),
    "gemm of tensors": Case("Gemm", [(3, 4), (5, 4), (3, 5)], {"transB": 1, "alpha": 0.5, "beta": 0.3}),
}
SHAPES = {
    "reshape": Case("Reshape", [X, i64(2, 2, -1)]),
    "reshape zero": Case("Reshape", [X, i64(0, 0, -1)]),
    "flatten": Case("Flatten", [X]),
    "flatten -1": Case("Flatten", [X], {"axis": -1}),
    "flatten 0": Case("Flatten", [X], {"axis": 0}),
    "squeeze": Case("Squeeze", [(1, 4, 1, 3), i64(0, 2)]),
    "squeeze all": Case("Squeeze", [(1, 4, 1, 3)]),
    "squeeze attribute": Case("Squeeze", [(1, 4, 1, 3)], {"axes": [2]}, 11),
    "unsqueeze": Case("Unsqueeze", [(4, 3), i64(0, -1)]),
    "unsqueeze attribute": Case("Unsqueeze", [(4, 3)], {"axes": [0, 2]}, 11),
    "transpose": Case("Transpose", [X], {"perm": [0, 2, 3, 1]}),
    "transpose default": Case("Transpose", [(2, 3, 4)]),
    "transpose nothing": Case("Transpose", [(2, 3, 4)], {"perm": [0, 1, 2]}),
    "transpose rank 5": Case("Transpose", [(2, 3, 2, 2, 3)], {"perm": [0, 2, 1, 4, 3]}),
    "cast to int": Case("Cast", [X], {"to": 6}),
    "cast to float": Case("Cast", [ints(3, 4)], {"to": 1}),
    "cast to bool": Case("Cast", [ints(3, 4, low=-1, high=2)], {"to": 9}),
    "cast double": Case("Cast", [X], {"to": 11}),
    "expand": Case("Expand", [(4, 1, 3), i64(2, 1, 5, 3)]),
    "expand ranks only": Case("Expand", [(4, 3), i64(1, 1, 4, 3)]),
    "tile": Case("Tile", [(2, 3), i64(2, 3)]),
    "identity": Case("Identity", [X]),
    "dropout": Case("Dropout", [X]),
    "depth to space": Case("DepthToSpace", [(1, 8, 3, 5)], {"blocksize": 2}),
    "depth to space crd": Case("DepthToSpace", [(1, 12, 3, 5)], {"blocksize": 2, "mode": "CRD"}),
    "space to depth": Case("SpaceToDepth", [(1, 3, 4, 6)], {"blocksize": 2}),
}
JOINING = {
    "concat channels": Case("Concat", [X, (1, 2, 9, 11)], {"axis": 1}),
    "concat last": Case("Concat", [(2, 3), (2, 1), f(2, 2)], {"axis": -1}),
    "concat one": Case("Concat", [X], {"axis": 1}),
    "split": Case("Split", [X], {"axis": 1}, 17, 2),
    "split sizes": Case("Split", [X, i64(1, 3)], {"axis": 1}, 17, 2),
    "split attribute": Case("Split", [X], {"axis": 1, "split": [1, 3]}, 11, 2),
    "split uneven": Case("Split", [X], {"axis": 3, "num_outputs": 3}, 18, 3),
    "slice": Case("Slice", [X, i64(1, 2), i64(3, 100), i64(1, -1)]),
    "slice step": Case("Slice", [X, i64(0, 1), i64(9, 11), i64(2, 3), i64(2, 3)]),
    "slice backwards": Case("Slice", [X, i64(-1), i64(-(2**63) + 1), i64(3), i64(-1)]),
    "slice backwards by 2": Case("Slice", [X, i64(8), i64(1), i64(2), i64(-2)]),
    "slice attributes": Case("Slice", [X], {"starts": [1], "ends": [-1], "axes": [2]}, 9),
    "slice nothing": Case("Slice", [X, i64(0), i64(2**62), i64(1)]),
    "gather one": Case("Gather", [X, np.array(2, np.int64)], {"axis": 1}),
    "gather run": Case("Gather", [X, i64(1, 2, 3)], {"axis": 2}),
    "gather": Case("Gather", [X, i64(3, -1, 0)], {"axis": 1}),
    "gather matrix": Case("Gather", [X, np.array([[3, 1], [0, 2]], np.int64)], {"axis": 1}),
    "gather by tensor": Case("Gather", [f(5, 3), ints(2, 2, low=0, high=5)]),
}
PADDING = {
    "constant": Case("Pad", [X, i64(0, 0, 1, 2, 0, 0, 3, 0)]),
    "value": Case("Pad", [X, i64(0, 1, 0, 0, 0, 0, 0, 2), number(1.5)]),
    "negative": Case("Pad", [X, i64(0, 0, -1, 2, 0, 0, 1, -3)]),
    "attributes": Case("Pad", [X], {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "value": 0.5}, 10),
    "reflect": Case("Pad", [X, i64(0, 0, 2, 1, 0, 0, 1, 3)], {"mode": "reflect"}),
    "edge": Case("Pad", [X, i64(0, 0, 2, 1, 0, 0, 0, 3)], {"mode": "edge"}),
    "wrap": Case("Pad", [X, i64(0, 0, 2, 1, 0, 0, 0, 3)], {"mode": "wrap"}, 19),
    "axes": Case("Pad", [X, i64(1, 2), None, i64(3)], {}, 18),
    "nothing": Case("Pad", [X, i64(0, 0, 0, 0, 0, 0, 0, 0)]),
}
NONE = np.zeros(0, np.float32)


def resized(mode: str, scales: list[float] | None = None, sizes: list[int] | None = None, **attributes: object) -> Case:
    scale = NONE if scales is None else np.array([1, 1, *scales], np.float32)
    inputs = [(1, 3, 6, 8), None, scale] if sizes is None else [(1, 3, 6, 8), None, None, i64(1, 3, *sizes)]
    return Case("Resize", inputs, {"mode": mode, **attributes})


RESIZING = {
    "nearest x2 asymmetric floor": resized(
        "nearest", [2, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "nearest x2 half pixel": resized("nearest", [2, 2]),
    "nearest x3 by 2": resized("nearest", [3, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "nearest to sizes": resized(
        "nearest", None, [13, 17], coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "nearest prefer ceil": resized("nearest", None, [9, 20], nearest_mode="round_prefer_ceil"),
    "nearest align corners": resized(
        "nearest", None, [11, 15], coordinate_transformation_mode="align_corners", nearest_mode="round_prefer_ceil"
    ),
    "nearest smaller": resized(
        "nearest", [0.5, 0.5], coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "linear x2 half pixel": resized("linear", [2, 2]),
    "linear x2 pytorch": resized("linear", [2, 2], coordinate_transformation_mode="pytorch_half_pixel"),
    "linear x2 asymmetric": resized("linear", [2, 2], coordinate_transformation_mode="asymmetric"),
    "linear align corners": resized("linear", None, [11, 13], coordinate_transformation_mode="align_corners"),
    "linear to sizes": resized("linear", None, [7, 20]),
    "resize rank 3": Case("Resize", [(1, 3, 8), None, np.array([1, 1, 2], np.float32)], {"mode": "linear"}),
    "resize opset 10": Case("Resize", [(1, 3, 6, 8), np.array([1, 1, 2, 2], np.float32)], {"mode": "nearest"}, 10),
    "upsample": Case("Upsample", [(1, 3, 6, 8), np.array([1, 1, 2, 2], np.float32)], {"mode": "nearest"}, 9),
    "upsample linear": Case("Upsample", [(1, 3, 6, 8), np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}, 9),
    "resize axes": Case("Resize", [(1, 3, 6, 8), None, None, i64(12, 16)], {"mode": "nearest", "axes": [2, 3]}, 18),
    "resize nothing": resized("cubic", [1, 1]),
}
REDUCTION = {
    "mean": Case("ReduceMean", [X], {"axes": [2, 3]}),
    "mean without dims": Case("ReduceMean", [X], {"axes": [-1], "keepdims": 0}),
    "mean of all": Case("ReduceMean", [X]),
    "mean opset 18": Case("ReduceMean", [X, i64(1)], {}, 18),
    "sum": Case("ReduceSum", [X, i64(1)], tolerance=5e-6),
    "sum opset 11": Case("ReduceSum", [X], {"axes": [1]}, 11, tolerance=5e-6),
    "sum no axes": Case("ReduceSum", [X], {"noop_with_empty_axes": 1}),
    "max": Case("ReduceMax", [X], {"axes": [1]}),
    "min": Case("ReduceMin", [X], {"axes": [1], "keepdims": 0}),
    "product": Case("ReduceProd", [(2, 3, 4)], {"axes": [1]}),
    "l1": Case("ReduceL1", [X], {"axes": [1]}),
    "l2": Case("ReduceL2", [X], {"axes": [1]}),
    "sum of squares": Case("ReduceSumSquare", [X], {"axes": [1]}),
    "log sum": Case("ReduceLogSum", [X], {"axes": [1]}, low=0.5),
    "log sum exp": Case("ReduceLogSumExp", [X], {"axes": [1], "keepdims": 0}, low=-80, high=80),
    "arg max": Case("ArgMax", [X], {"axis": 1}),
    "arg min without dims": Case("ArgMin", [X], {"axis": -1, "keepdims": 0}),
    "running sum": Case("CumSum", [(3, 5), np.array(1, np.int64)]),
    "running sum reversed": Case("CumSum", [(3, 5), np.array(0, np.int64)], {"reverse": 1, "exclusive": 1}),
}
LOGIC = {
    "equal": Case("Equal", [ints(3, 4, low=0, high=2), ints(3, 4, low=0, high=2)]),
    "greater": Case("Greater", [X, f(1)]),
    "greater or equal": Case("GreaterOrEqual", [X, X]),
    "less": Case("Less", [X, f(1)]),
    "less or equal": Case("LessOrEqual", [X, X]),
    "and": Case("And", [flags(3, 4), flags(3, 4)]),
    "or": Case("Or", [flags(3, 4), flags(4)]),
    "xor": Case("Xor", [flags(3, 4), flags(3, 4)]),
    "not": Case("Not", [flags(3, 4)]),
    "where": Case("Where", [flags(3, 4), (3, 4), f(1)]),
    "where broadcast": Case("Where", [flags(3, 1), (1, 4), (3, 4)]),
}
NORMALIZATION = {
    "batch": Case("BatchNormalization", [X, f(4), f(4), f(4), np.abs(f(4)) + 0.5]),
    "batch rank 2": Case("BatchNormalization", [(3, 4), f(4), f(4), f(4), np.abs(f(4)) + 0.5], {"epsilon": 0.01}),
    "layer": Case("LayerNormalization", [(2, 5, 8), f(8), f(8)], tolerance=5e-6),
    "layer axis": Case("LayerNormalization", [(2, 5, 8), f(5, 8)], {"axis": 1}, tolerance=5e-6),
    "instance": Case("InstanceNormalization", [X, f(4), f(4)], tolerance=5e-6),
    "group": Case("GroupNormalization", [X, f(2), f(2)], {"num_groups": 2}, 18, tolerance=5e-6),
    "group, opset 21": Case("GroupNormalization", [X, f(4), f(4)], {"num_groups": 2}, 21, tolerance=5e-6),
    "lp 2": Case("LpNormalization", [(3, 5)], {"axis": 1}),
    "lp 1": Case("LpNormalization", [(3, 5)], {"axis": 0, "p": 1}),
}


def recurrent(
    kind: str,
    gates: int,
    direction: str = "forward",
    steps: int = 3,
    states: bool = True,
    peepholes: bool = False,
    **attributes: object,
) -> Case:
    count = 2 if direction == "bidirectional" else 1
    outputs = 3 if kind == "LSTM" else 2
    state = [(count, 2, 5)] * (outputs - 1) if states else []
    extra = [None, *state, *([f(count, 15)] if peepholes else [])]
    kernels = [f(count, gates * 5, 4), f(count, gates * 5, 5), f(count, gates * 10)]
    options = {"hidden_size": 5, "direction": direction, **attributes}
    return Case(kind, [(steps, 2, 4), *kernels, *extra], options, 17, outputs, tolerance=5e-6)


RECURRENT = {
    "lstm": recurrent("LSTM", 4),
    "lstm reverse": recurrent("LSTM", 4, "reverse"),
    "lstm both": recurrent("LSTM", 4, "bidirectional"),
    "lstm no states": recurrent("LSTM", 4, states=False),
    "lstm one step": recurrent("LSTM", 4, steps=1),
    "lstm peepholes": recurrent("LSTM", 4, peepholes=True),
    "lstm activations": recurrent("LSTM", 4, activations=["Sigmoid", "Relu", "Tanh"]),
    "gru": recurrent("GRU", 3),
    "gru linear before reset": recurrent("GRU", 3, linear_before_reset=1),
    "gru both": recurrent("GRU", 3, "bidirectional", linear_before_reset=1),
    "gru no states": recurrent("GRU", 3, states=False),
    "rnn": recurrent("RNN", 1),
    "rnn reverse, no states": recurrent("RNN", 1, "reverse", states=False),
}
FAMILIES = {
    "convolution": CONVOLUTION,
    "pooling": POOLING,
    "elementwise": ELEMENTWISE,
    "activation": ACTIVATION,
    "matrix": MATRIX,
    "shape": SHAPES,
    "joining": JOINING,
    "padding": PADDING,
    "resize": RESIZING,
    "reduction": REDUCTION,
    "logic": LOGIC,
    "normalization": NORMALIZATION,
    "recurrent": RECURRENT,
}
CASES = {f"{family}: {name}": case for family, cases in FAMILIES.items() for name, case in cases.items()}


@pytest.mark.parametrize("name", CASES)
def test_operator_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = saved(case.proto(), tmp_path)
    feeds = case.feeds()
    wanted = by_runtime(path, feeds)
    model = load(path)
    assert problems(model.main) == []
    got = by_litert(model, feeds)
    assert list(got) == list(wanted)
    for output, value in wanted.items():
        assert got[output].shape == value.shape
        span = max(float(np.abs(value.astype(np.float64)).max()), 1e-30)
        error = float(np.abs(got[output].astype(np.float64) - value.astype(np.float64)).max())
        assert error <= case.tolerance * span, f"{output}: error {error:.3g} of {span:.3g}"


def test_every_lowering_has_a_case() -> None:
    """In a family's table or among ONNX's own node tests; kinds of ours (``vitrify::``) come from patterns."""
    tables = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    own = {node.op_type for case in collected()[0] for node in case.model.graph.node}
    kinds = {kind.split("::")[-1] for kind in LOWERINGS if not kind.startswith("vitrify::")}
    assert {kind for kind in kinds - own if f'"{kind}"' not in tables} == set()
