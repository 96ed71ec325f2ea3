"""Small models built in the IR, for tests of writer, reader and kinds."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Quantization, Signature, Tensor


def constant(name: str, data: np.ndarray, quantization: Quantization | None = None) -> Tensor:
    return Tensor(name, DType.of(data.dtype), data.shape, data=data, quantization=quantization)


def conv_model(dtype: DType = DType.FLOAT32, *, weights: np.ndarray | None = None) -> Model:
    """One 3x3 convolution of 4 channels to 8, with activations and constants of the types that belong together."""
    rng = np.random.default_rng(5)
    graph = Graph()
    per_tensor = None if dtype.is_float else Quantization.per_tensor(0.05)
    x = Tensor("x", dtype, (1, 8, 8, 4), quantization=per_tensor)
    y = Tensor("y", dtype, (1, 8, 8, 8), quantization=per_tensor)
    graph.inputs = [x]
    real = rng.standard_normal((8, 3, 3, 4)).astype(np.float32)
    if dtype.is_float:
        w = constant("w", real if weights is None else weights)
        b = constant("b", np.zeros(8, np.float32))
    else:
        scale = np.abs(real).max((1, 2, 3)) / 127
        w = constant("w", np.round(real / scale.reshape(-1, 1, 1, 1)).astype(np.int8), Quantization.per_axis(scale, 0))
        wide = np.int64 if dtype is DType.INT16 else np.int32
        b = constant("b", np.zeros(8, wide), Quantization.per_axis(scale * np.float32(0.05), 0))
    graph.add(ops.Conv2D(), [x, w, b], [y], name="conv")
    graph.set_outputs([y])
    return Model([graph], [Signature("serving_default", 0, {"image": 0}, {"features": 0})])


def float_ends(model: Model) -> Model:
    """Put QUANTIZE before the first input and DEQUANTIZE behind the first output."""
    graph = model.main
    x, y, conv = graph.inputs[0], graph.outputs[0], graph.nodes[0]
    real_in, real_out = Tensor("x_real", DType.FLOAT32, x.shape), Tensor("y_real", DType.FLOAT32, y.shape)
    graph.add(ops.Quantize(), [real_in], [x], before=conv)
    graph.add(ops.Dequantize(), [y], [real_out])
    graph.inputs = [real_in]
    graph.set_outputs([real_out])
    return model


def float16_weights(model: Model) -> Model:
    """Store the weights of the first node as float16 behind a DEQUANTIZE."""
    graph = model.main
    conv = graph.nodes[0]
    weights = conv.input(1)
    stored = constant("w16", weights.data.astype(np.float16))
    unpacked = Tensor("w", DType.FLOAT32, weights.shape)
    graph.add(ops.Dequantize(), [stored], [unpacked], before=conv)
    graph.set_input(conv, 1, unpacked)
    return model


def integer_weights(model: Model) -> Model:
    """Store the weights of the first node as int8, which it reads as they are while it computes in float."""
    quantized = conv_model(DType.INT8).main.nodes[0].input(1)
    model.main.set_input(model.main.nodes[0], 1, constant("w8", quantized.data, quantized.quantization))
    return model


def float_tail(model: Model) -> Model:
    """Add a float SOFTMAX behind the first output."""
    model = float_ends(model)
    graph = model.main
    graph.set_outputs([graph.add(ops.Softmax(beta=1.0), [graph.outputs[0]], name="softmax").output])
    return model


def int8_tail(model: Model) -> Model:
    """Add an int8 RELU behind the first output, which is quantized to int8 before it."""
    graph = model.main
    y = graph.outputs[0]
    narrow = Tensor("narrow", DType.INT8, y.shape, quantization=Quantization.per_tensor(0.1))
    result = Tensor("result", DType.INT8, y.shape, quantization=narrow.quantization)
    graph.add(ops.Quantize(), [y], [narrow])
    graph.add(ops.Relu(), [narrow], [result])
    graph.set_outputs([result])
    return model


def compiled() -> Model:
    """One operator that stands for a compiled graph."""
    graph = Graph()
    per_tensor = Quantization.per_tensor(0.05)
    x = Tensor("x", DType.INT8, (1, 8), quantization=per_tensor)
    y = Tensor("y", DType.INT8, (1, 8), quantization=per_tensor)
    graph.inputs = [x]
    graph.add(ops.Custom(custom_code="ethos-u", custom_options=b"\x01\x04\x01"), [x], [y], name="npu")
    graph.set_outputs([y])
    return Model([graph])


def reading(read: Tensor) -> Model:
    """A model whose one node reads the constant ``read``."""
    graph = Graph()
    x, y = Tensor("x", DType.FLOAT32, (1,)), Tensor("y", DType.FLOAT32, (1,))
    graph.inputs = [x]
    graph.add(ops.Custom(custom_code="Reads"), [x, read], [y])
    graph.set_outputs([y])
    return Model([graph])
