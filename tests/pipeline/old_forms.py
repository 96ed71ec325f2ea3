"""Forms of an int8 file that older tools write: uint8 throughout, weights with one scale and a zero point."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrify import tflite
from vitrify.ir import DType, Graph, Node, Quantization, Tensor

SHIFT = 128


def write_unsigned(source: Path, target: Path) -> Path:
    """uint8 values and weights, one scale for each weight."""
    model = tflite.read(source)
    reals = _biases(model.main)
    for tensor in model.main.tensors():
        if tensor.dtype is not DType.INT8 or tensor.quantization is None:
            continue
        if tensor.data is not None:
            _requantize(tensor, symmetric=True)
            tensor.data = (tensor.data.astype(np.int16) + SHIFT).astype(np.uint8)
        tensor.quantization = Quantization(tensor.quantization.scale, tensor.quantization.zero_point + SHIFT)
        tensor.dtype = DType.UINT8
    _set_biases(model.main, reals)
    tflite.write(model, target)
    return target


def write_asymmetric(source: Path, target: Path) -> Path:
    """int8 weights with one scale and a zero point each."""
    model = tflite.read(source)
    reals = _biases(model.main)
    for node in model.main:
        weight = _weight(node)
        if weight is not None and weight.dtype is DType.INT8:
            _requantize(weight, symmetric=False)
    _set_biases(model.main, reals)
    tflite.write(model, target)
    return target


def _weight(node: Node) -> Tensor | None:
    rule = node.op.int8
    found = None if rule is None or rule.weight is None else node.optional(rule.weight)
    return None if found is None or found.data is None or found.quantization is None else found


def _requantize(tensor: Tensor, symmetric: bool) -> None:
    assert tensor.data is not None
    assert tensor.quantization is not None
    real = tensor.quantization.dequantize(tensor.data)
    low, high = min(float(real.min()), 0.0), max(float(real.max()), 0.0)
    if symmetric:
        made = Quantization.per_tensor(max(-low, high, 1e-6) / 127)
    else:
        scale = max(high - low, 1e-6) / 255
        made = Quantization.per_tensor(scale, round(-128 - low / scale))
    tensor.data, tensor.quantization = made.quantize(real, np.int8), made


def _biases(graph: Graph) -> dict[int, np.ndarray]:
    """The real values of biases, by tensor."""
    return {id(bias): bias.quantization.dequantize(bias.data) for node in graph if (bias := _bias(node)) is not None
            and bias.quantization is not None and bias.data is not None}


def _bias(node: Node) -> Tensor | None:
    rule = node.op.int8
    return None if rule is None or rule.bias is None else node.optional(rule.bias)


def _set_biases(graph: Graph, reals: dict[int, np.ndarray]) -> None:
    for node in graph:
        bias, weight = _bias(node), _weight(node)
        x = node.input(0).quantization
        if bias is not None and weight is not None and weight.quantization is not None and x is not None:
            scale = float(x.scale[0]) * float(weight.quantization.scale[0])
            bias.data = np.round(reals[id(bias)].astype(np.float64) / scale).astype(np.int32)
            bias.quantization = Quantization.per_tensor(scale)
