"""Quantized operators against ONNX Runtime, in steps of the result, and that they compute in integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_makers import Array, by_runtime, model, saved

from vitrify import tflite
from vitrify.data.binding import to_file_inputs, to_source_outputs
from vitrify.importers import load
from vitrify.ir import Model
from vitrify.passes import optimize

RNG = np.random.default_rng(11)
_MIDDLE = np.uint8(128)


@dataclass(frozen=True)
class Q:
    """A scale and a zero point; the zero point's type is that of the steps."""

    scale: float | Array
    zero: Any = _MIDDLE
    axis: int | None = None

    def arrays(self) -> tuple[Array, Array]:
        """Scale and zero point as the nodes take them."""
        scale = np.asarray(self.scale, np.float32)
        return scale, np.broadcast_to(np.asarray(self.zero), scale.shape).copy()


U8, S8 = Q(0.02, np.uint8(120)), Q(0.02, np.int8(-5))
U16, S16 = Q(2**-13, np.uint16(32768)), Q(2**-13, np.int16(0))


def steps(quantization: Q, *shape: int) -> Array:
    """Random steps."""
    info = np.iinfo(np.asarray(quantization.zero).dtype)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(info.dtype)


def weights(*shape: int, low: int = -127, dtype: Any = np.int8) -> Array:
    """Random weights."""
    return RNG.integers(low, 127, shape, endpoint=True).astype(dtype)


@dataclass
class Case:
    """One operator between DequantizeLinear and QuantizeLinear.

    ``inputs``: a (shape, Q) is a float input that is quantized first, an (array, Q) stored steps, an array a plain
    constant. ``kinds``: the TFLite operators that come of it.
    """

    kind: str
    inputs: Sequence[Any]
    output: Q = U8
    attributes: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    made: str = "int8"
    opset: int = 21

    def feeds(self) -> dict[str, Array]:
        """Float inputs that lie on steps, so that no tie is rounded."""
        rng = np.random.default_rng(2)
        found = {}
        for i, given in enumerate(self.inputs):
            if isinstance(given, tuple) and isinstance(given[0], tuple):
                scale, zero = given[1].arrays()
                info = np.iinfo(zero.dtype)
                q = rng.integers(info.min, info.max, given[0], endpoint=True)
                found[f"x{i}"] = ((q - int(zero)) * scale).astype(np.float32)
        return found

    def proto(self) -> onnx.ModelProto:
        """The model."""
        nodes, constants, names = [], {}, []
        for i, given in enumerate(self.inputs):
            if isinstance(given, np.ndarray):
                constants[f"c{i}"] = given
                names.append(f"c{i}")
                continue
            source, quantization = given
            constants[f"s{i}"], constants[f"z{i}"] = quantization.arrays()
            axis = {} if quantization.axis is None else {"axis": quantization.axis}
            if isinstance(source, np.ndarray):
                constants[f"q{i}"] = source
            else:
                nodes.append(helper.make_node("QuantizeLinear", [f"x{i}", f"s{i}", f"z{i}"], [f"q{i}"]))
            nodes.append(helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], [f"d{i}"], **axis))
            names.append(f"d{i}")
        constants["sy"], constants["zy"] = self.output.arrays()
        nodes.append(helper.make_node(self.kind, names, ["r"], "the node", **self.attributes))
        nodes.append(helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["qy"]))
        nodes.append(helper.make_node("DequantizeLinear", ["qy", "sy", "zy"], ["y"]))
        return model(nodes, self.feeds(), constants, ["y"], self.opset)


def executed(found: Model, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Run in LiteRT's reference kernels; integers in and out are scaled as the interface says."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    assert found.interface is not None
    interpreter = Interpreter(model_content=bytes(tflite.to_bytes(found)), num_threads=1,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    for detail, array in zip(details, to_file_inputs(found.interface, feeds, details), strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    results = interpreter.get_output_details()
    return to_source_outputs(found.interface, [interpreter.get_tensor(d["index"]) for d in results], results)


X = ((1, 4, 6, 6), U8)
PER_CHANNEL = Q(np.linspace(0.002, 0.01, 8), np.int8(0), axis=0)
BIAS = Q(np.float32(0.02) * np.linspace(0.002, 0.01, 8).astype(np.float32), np.int32(0), axis=0)
WIDE = Q(0.05, np.uint8(128))
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}

CASES = {
    "conv": Case("Conv", [X, (weights(8, 4, 3, 3), Q(0.004, np.int8(0)))], WIDE, kinds=("CONV_2D",)),
    "conv, signed": Case("Conv", [((1, 4, 6, 6), S8), (weights(8, 4, 3, 3), Q(0.004, np.int8(0)))],
                         Q(0.05, np.int8(3)), kinds=("CONV_2D",)),
    "conv, per channel, bias": Case("Conv", [X, (weights(8, 4, 3, 3), PER_CHANNEL), (weights(8, dtype=np.int32), BIAS)],
                                    WIDE, {"pads": [1, 1, 1, 1]}, kinds=("CONV_2D",)),
    "conv, float bias": Case("Conv", [X, (weights(8, 4, 3, 3), PER_CHANNEL), RNG.normal(size=8).astype(np.float32)],
                             WIDE, kinds=("CONV_2D",)),
    "conv, depthwise": Case("Conv", [((1, 8, 6, 6), U8), (weights(8, 1, 3, 3), PER_CHANNEL)], WIDE, {"group": 8},
                            kinds=("DEPTHWISE_CONV_2D",)),
    "conv, groups": Case("Conv", [X, (weights(8, 2, 3, 3), PER_CHANNEL)], WIDE, {"group": 2},
                         kinds=("CONV_2D",)),
    "conv, unsigned weights": Case("Conv", [X, (weights(8, 4, 3, 3, low=0, dtype=np.uint8), Q(0.004, np.uint8(64)))],
                                   WIDE, kinds=("CONV_2D",)),
    "conv, 16 bits": Case("Conv", [((1, 4, 6, 6), U16), (weights(8, 4, 3, 3), PER_CHANNEL)],
                          Q(2**-11, np.uint16(32768)), kinds=("CONV_2D",), made="int16x8"),
    "transposed conv": Case("ConvTranspose", [X, (weights(4, 8, 2, 2), Q(0.004, np.int8(0)))], WIDE,
                            {"strides": [2, 2]}, kinds=("TRANSPOSE_CONV",)),
    "matmul": Case("MatMul", [((3, 16), U8), (weights(16, 8), Q(np.linspace(0.002, 0.01, 8), np.int8(0), axis=1))],
                   WIDE, kinds=("FULLY_CONNECTED",)),
    "matmul of two": Case("MatMul", [((2, 3, 16), U8), ((2, 16, 4), S8)], Q(0.2), kinds=("BATCH_MATMUL",)),
    "gemm": Case("Gemm", [((3, 16), U8), (weights(8, 16), PER_CHANNEL), (weights(8, dtype=np.int32), BIAS)], WIDE,
                 {"transB": 1}, kinds=("FULLY_CONNECTED",)),
    "add": Case("Add", [X, ((1, 4, 6, 6), Q(0.05, np.uint8(7)))], Q(0.06, np.uint8(90)), kinds=("ADD",)),
    "add a constant": Case("Add", [X, (weights(4, 1, 1), Q(0.01, np.int8(3)))], Q(0.03), kinds=("ADD",)),
    "sub": Case("Sub", [X, ((1, 4, 6, 6), S8)], Q(0.04), kinds=("SUB",)),
    "mul": Case("Mul", [X, ((1, 4, 1, 1), Q(0.01, np.uint8(0)))], Q(0.04), kinds=("MUL",)),
    "relu": Case("Relu", [X], Q(0.011, np.uint8(0)), kinds=("RELU",)),
    "leaky relu": Case("LeakyRelu", [X], Q(0.02, np.uint8(50)), {"alpha": 0.3}, kinds=("LEAKY_RELU",)),
    "sigmoid": Case("Sigmoid", [X], Q(1 / 256, np.uint8(0)), kinds=("LOGISTIC",)),
    "sigmoid in another scale": Case("Sigmoid", [X], Q(0.005, np.uint8(3)), kinds=("LOGISTIC", "QUANTIZE")),
    "tanh": Case("Tanh", [X], Q(1 / 128, np.uint8(128)), kinds=("TANH",)),
    "softmax": Case("Softmax", [((3, 16), Q(0.1))], Q(1 / 256, np.uint8(0)), {"axis": -1}, kinds=("SOFTMAX",)),
    "hard swish": Case("HardSwish", [((1, 4, 6, 6), Q(0.05))], Q(0.03, np.uint8(12)), kinds=("HARD_SWISH",)),
    "gelu": Case("Gelu", [((1, 4, 6, 6), Q(0.05))], Q(0.03, np.uint8(6)), kinds=("GELU",)),
    "clip": Case("Clip", [X, np.array(0, np.float32), np.array(6, np.float32)], Q(0.01, np.uint8(0)), kinds=("RELU6",)),
    "max pool": Case("MaxPool", [X], U8, POOL, kinds=("MAX_POOL_2D",)),
    "average pool": Case("AveragePool", [X], U8, POOL, kinds=("AVERAGE_POOL_2D",)),
    "average pool in another scale": Case("AveragePool", [X], Q(0.015), POOL,
                                          kinds=("AVERAGE_POOL_2D", "QUANTIZE")),
    "global average pool": Case("GlobalAveragePool", [X], Q(0.01), kinds=("MEAN",)),
    "reshape": Case("Reshape", [X, np.array([4, 36], np.int64)], U8, kinds=("RESHAPE",)),
    "reshape to another scale": Case("Reshape", [X, np.array([4, 36], np.int64)], Q(0.03),
                                     kinds=("QUANTIZE", "RESHAPE")),
    "concat": Case("Concat", [X, ((1, 2, 6, 6), Q(0.05, np.uint8(7)))], Q(0.05, np.uint8(7)), {"axis": 1},
                   kinds=("QUANTIZE", "CONCATENATION")),
    "pad": Case("Pad", [X, np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)], U8, kinds=("PAD",)),
    "slice": Case("Slice", [X, *(np.array([i], np.int64) for i in (1, 3, 2))], U8),
    "resize": Case("Resize", [X, np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)], U8,
                   {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
                   kinds=("RESIZE_NEAREST_NEIGHBOR",)),
    "hard sigmoid": Case("HardSigmoid", [((1, 4, 6, 6), Q(0.05))], Q(1 / 256, np.uint8(0)),
                         {"alpha": 1 / 6, "beta": 0.5}),
    "add, 16 bits": Case("Add", [((1, 4, 6, 6), S16), ((1, 4, 6, 6), S16)], Q(2**-12, np.int16(0)), kinds=("ADD",),
                         made="int16x8"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_between_quantizing_nodes(case: Case, tmp_path: Path) -> None:
    """The result is off by a step at most, and everything computes in integers."""
    path = saved(case.proto(), tmp_path)
    wanted = by_runtime(path, case.feeds())["y"]
    found = load(path)
    scale = float(np.asarray(case.output.scale))
    exact = executed(found, case.feeds())["y"]
    assert np.abs(exact - wanted).max() <= 1.01 * scale
    optimize(found)
    assert tflite.classify(found).value == case.made
    kinds = sorted(n.op.kind for n in found.main)
    for kind in case.kinds:
        assert kind in kinds
        kinds.remove(kind)
    if "QUANTIZE" not in case.kinds:
        assert "QUANTIZE" not in kinds
    given = executed(found, case.feeds())["y"]
    assert np.abs(given - wanted).max() <= 1.01 * scale


def test_rounds_asymmetric_weights_again(tmp_path: Path) -> None:
    """Weights that use all of 256 unsigned steps do not fit; the finding names the node."""
    case = Case("Conv", [X, (steps(Q(0.004), 8, 4, 3, 3), Q(0.004, np.uint8(30)))], Q(0.2))
    path = saved(case.proto(), tmp_path)
    found = load(path)
    optimize(found)
    told = {f.code: f for f in found.extras["findings"]}
    assert "the node" in told["quant.weights-again"].where
    wanted = by_runtime(path, case.feeds())["y"]
    assert np.abs(executed(found, case.feeds())["y"] - wanted).max() <= 2.01 * 0.2


def test_keeps_float_between(tmp_path: Path) -> None:
    """What has no scale after it stays float, and is told."""
    case = CASES["conv"].proto()
    last = case.graph.node[-1]
    case.graph.node.append(helper.make_node("Sin", ["y"], ["z"], "the sine"))
    case.graph.node.append(helper.make_node("QuantizeLinear", ["z", last.input[1], last.input[2]], ["qz"]))
    case.graph.node.append(helper.make_node("DequantizeLinear", ["qz", last.input[1], last.input[2]], ["out"]))
    case.graph.output[0].name = "out"
    path = saved(case, tmp_path)
    found = load(path)
    optimize(found)
    told = {f.code: f for f in found.extras["findings"]}
    assert "1 SIN" in told["quant.float-islands"].headline
    assert "the sine" in told["quant.float-islands"].where
    assert tflite.classify(found).value == "mixed"


def test_keeps_the_scales_of_the_file(tmp_path: Path) -> None:
    """Weights, their scales and those of inputs and outputs are those that stand in the file."""
    case = CASES["conv, per channel, bias"]
    found = load(saved(case.proto(), tmp_path))
    optimize(found)
    conv = next(n for n in found.main if n.op.kind == "CONV_2D")
    kernel, bias = conv.input(1), conv.input(2)
    assert kernel.data is not None
    assert bias.data is not None
    np.testing.assert_array_equal(kernel.data, case.inputs[1][0].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(bias.data, case.inputs[2][0])
    assert found.main.inputs[0].quantization is not None
    assert int(found.main.inputs[0].quantization.zero_point[0]) == int(U8.zero) - 128
    assert np.float32(found.main.inputs[0].quantization.scale[0]) == np.float32(0.02)


def test_weights_of_4_bits(tmp_path: Path) -> None:
    """int4 weights per channel are computed with as int8, their own steps and scales."""
    rng = np.random.default_rng(9)
    stored = rng.integers(-8, 7, (8, 4, 1, 1), endpoint=True)
    case = Case("Conv", [X, (stored.astype(np.int8), PER_CHANNEL)], Q(0.01))
    proto = case.proto()
    for name, kind, values in (("q1", onnx.TensorProto.INT4, stored), ("z1", onnx.TensorProto.INT4, np.zeros(8, int))):
        kept = [t for t in proto.graph.initializer if t.name != name]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend([*kept, helper.make_tensor(name, kind, values.shape, values.ravel().tolist())])
    proto.ir_version = 10
    path = saved(proto, tmp_path)
    found = load(path)
    optimize(found)
    kernel = next(n for n in found.main if n.op.kind == "CONV_2D").input(1)
    assert kernel.data is not None
    np.testing.assert_array_equal(kernel.data[:, 0, 0], stored[:, :, 0, 0])
    wanted = by_runtime(path, case.feeds())["y"]
    assert np.abs(executed(found, case.feeds())["y"] - wanted).max() <= 1.01 * 0.01
