"""Unsigned 8-bit models as signed ones, which is what newer compilers and kernels are made for."""

from __future__ import annotations

import numpy as np

from vitrify.ir import DType, Exactness, Graph, Model, Node, Quantization, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.graphs import is_dense
from vitrify.passes.targets.catalogue import fix

_SHIFT, _LARGEST = 128, 127


@fix("signed-values", whole=True, cheaper=True, families=(), exactness=Exactness.APPROXIMATE,
     says="shifts unsigned values by 128, of inputs and outputs too; weights are centred on zero, and rounded anew "
     "where they do not fit",
     wins="int8 kernels, which all runtimes have, and which newer NPUs want; who gives pixels subtracts 128")
def signed_values(model: Model) -> int:
    """All graphs, or none when one holds something that cannot be shifted."""
    tensors = [t for graph in model.graphs for t in graph.tensors() if t.dtype is DType.UINT8]
    if not all(map(_can_shift, tensors)):
        return 0
    weights: dict[Tensor, Node] = {}
    for graph in model.graphs:
        _find_weights(graph, weights)
    if any(_most(weight) > _LARGEST and not _is_alone(weight, node) for weight, node in weights.items()):
        return 0
    for tensor in tensors:
        if tensor in weights:
            _centre(tensor, weights[tensor])
        else:
            _shift(tensor)
    return len(tensors)


def _can_shift(tensor: Tensor) -> bool:
    scales = tensor.quantization
    return scales is not None and not scales.is_per_axis and (tensor.data is None or is_dense(tensor))


def _is_alone(weight: Tensor, node: Node) -> bool:
    """True when no other node reads these weights or this bias, which get another scale."""
    bias = _bias(node)
    return weight.use_count == 1 and (bias is None or bias.use_count == 1)


def _bias(node: Node) -> Tensor | None:
    rule = node.op.int8
    return None if rule is None or rule.bias is None else node.optional(rule.bias)


def _values(weight: Tensor) -> Array:
    assert weight.quantization is not None
    return np.asarray(weight.data).astype(np.int32) - int(weight.quantization.zero_point[0])


def _most(weight: Tensor) -> int:
    return int(np.abs(_values(weight)).max(initial=0))


def _find_weights(graph: Graph, found: dict[Tensor, Node]) -> None:
    for node in graph:
        rule = node.op.int8
        weight = None if rule is None or rule.weight is None else node.optional(rule.weight)
        if weight is not None and weight.dtype is DType.UINT8 and weight.data is not None:
            found[weight] = node


def _shift(tensor: Tensor) -> None:
    scales = tensor.quantization
    assert scales is not None
    tensor.dtype = DType.INT8
    tensor.quantization = Quantization(scales.scale, scales.zero_point - _SHIFT)
    if tensor.data is not None:
        tensor.data = (np.asarray(tensor.data).astype(np.int16) - _SHIFT).astype(np.int8)


def _centre(weight: Tensor, node: Node) -> None:
    """Weights around zero; the bias goes along where they get another scale."""
    scales = weight.quantization
    assert scales is not None
    values, most = _values(weight), _most(weight)
    weight.dtype = DType.INT8
    if most <= _LARGEST:
        weight.data, weight.quantization = values.astype(np.int8), Quantization.per_tensor(float(scales.scale[0]))
        return
    ratio = most / _LARGEST
    weight.data = np.rint(values / ratio).astype(np.int8)
    weight.quantization = Quantization.per_tensor(float(scales.scale[0]) * ratio)
    bias = _bias(node)
    if bias is not None and bias.data is not None and bias.quantization is not None:
        bias.data = np.rint(np.asarray(bias.data) / ratio).astype(bias.data.dtype)
        bias.quantization = Quantization.per_tensor(float(bias.quantization.scale[0]) * ratio)
