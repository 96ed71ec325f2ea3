"""Small questions about quantized tensors, and constants as steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Origin, Quantization, Tensor
from vitrify.ir.graph import Array
from vitrify.ops.int8 import Int8Rule

STEP_TYPES = (DType.INT8, DType.INT16)
WEIGHT_HIGH = 127
EXACT = 1e-5
"""Relative distance from a step, in steps, that float32 storage of a product explains (times the step's number)."""

AVERAGING: tuple[type[Operator], ...] = (ops.AveragePool2D, ops.ResizeBilinear)
"""Operators whose kernels want one scale on both sides, though they do more than move values."""

WIDE: tuple[type[Operator], ...] = (
    ops.Add, ops.Sub, ops.Mul, ops.AveragePool2D, ops.MaxPool2D, ops.Concatenation, ops.Conv2D, ops.DepthwiseConv2D,
    ops.FullyConnected, ops.TransposeConv, ops.Mean, ops.Pad, ops.Relu, ops.Relu6, ops.LeakyRelu, ops.Logistic,
    ops.Tanh, ops.Reshape, ops.ResizeBilinear, ops.ResizeNearestNeighbor, ops.Slice, ops.Split, ops.StridedSlice,
    ops.Transpose, ops.BatchMatMul, ops.Softmax, ops.Squeeze, ops.ExpandDims, ops.Gather)
"""Operators with a kernel for 16-bit steps. Source: TFLite's 16x8 specification and kernels."""

WIDE_OUTPUT: dict[type[Operator], float] = {ops.Logistic: 1 / 32768, ops.Tanh: 1 / 32768, ops.Softmax: 1 / 32768}


def rule_of(node: Node) -> Int8Rule | None:
    """The operator's int8 rule, None when it has no int8 kernel."""
    rule = getattr(node.op, "int8", None)
    return rule if isinstance(rule, Int8Rule) else None


def is_bridge(node: Node) -> bool:
    """True for QUANTIZE and DEQUANTIZE."""
    return isinstance(node.op, ops.Quantize | ops.Dequantize)


def steps_of(tensor: Tensor | None) -> Tensor | None:
    """The quantized tensor that ``tensor`` is the real value of, None when it is no DEQUANTIZE of steps."""
    node = tensor.producer if tensor is not None else None
    if node is None or not isinstance(node.op, ops.Dequantize):
        return None
    found = node.input(0)
    return found if is_steps(found) else None


def is_steps(tensor: Tensor) -> bool:
    """True for 8- or 16-bit signed steps of one scale."""
    return (tensor.dtype in STEP_TYPES and tensor.quantization is not None and tensor.quantization.scale.size == 1)


def moves_values(node: Node) -> bool:
    """True when the outputs hold values of the inputs and no others, in an operator that takes them as steps."""
    rule = rule_of(node)
    return rule is not None and bool(rule.same_scale) and not isinstance(node.op, AVERAGING)


def shared(node: Node) -> tuple[int, ...]:
    """The inputs that must have the scale of the outputs."""
    rule = rule_of(node)
    return rule.shared(len(node.inputs)) if rule is not None else ()


def fits_type(node: Node, dtype: DType) -> bool:
    """True when the operator has a kernel for steps of that type."""
    return dtype is DType.INT8 or isinstance(node.op, WIDE)


def wanted_steps(node: Node) -> Tensor | None:
    """The quantized tensor that all readers make of the node's outputs, None when they do not agree.

    A reader that wants another scale of the same type may follow with a change of scale: that is for the caller.
    """
    found: Tensor | None = None
    for output in node.outputs:
        if output.is_output or not output.uses:
            return None
        for user in output.users:
            if not isinstance(user.op, ops.Quantize) or not is_steps(user.output):
                return None
            if found is not None and user.output.dtype is not found.dtype:
                return None
            found = user.output if found is None else found
    return found


@dataclass(frozen=True)
class Stored:
    """A constant as steps; ``is_exact`` when it holds the file's own."""

    tensor: Tensor
    is_exact: bool


def quantized_constant(tensor: Tensor, data: Array, quantization: Quantization, by: str) -> Tensor:
    """A constant with the steps ``data``."""
    return Tensor(tensor.name, DType.of(data.dtype), tensor.shape, data=data, quantization=quantization,
                  origin=tensor.origin.by(by))


def operand(tensor: Tensor, known: Mapping[str, Quantization], dtype: DType, by: str) -> Tensor:
    """A constant operand as steps with its own scale, or with one that covers its values."""
    assert tensor.data is not None
    kind = np.int8 if dtype is DType.INT8 else np.int16
    info = np.iinfo(kind)
    for stored in _known(tensor, known):
        if stored.scale.size != 1 or (dtype is DType.INT16 and stored.zero_point.any()):
            continue
        steps = np.rint(tensor.data.astype(np.float64) / float(stored.scale[0]))
        for zero in (int(stored.zero_point[0]), int(stored.zero_point[0]) - 128):
            if info.min <= zero <= info.max and steps.min() + zero >= info.min and steps.max() + zero <= info.max:
                quantization = Quantization.per_tensor(float(stored.scale[0]), zero)
                return quantized_constant(tensor, (steps + zero).astype(kind), quantization, by)
    return quantized_constant(tensor, *_covered(tensor.data, dtype), by)


def _covered(data: Array, dtype: DType) -> tuple[Array, Quantization]:
    """Steps that cover the finite values of a constant; infinities saturate."""
    finite = data[np.isfinite(data)]
    low, high = min(0.0, float(finite.min(initial=0.0))), max(0.0, float(finite.max(initial=0.0)))
    if dtype is DType.INT16:
        quantization = Quantization.per_tensor(max(-low, high, 1e-6) / 32767, 0)
        return quantization.quantize(np.nan_to_num(data), np.int16), quantization
    scale = max(high - low, 1e-6) / 255
    quantization = Quantization.per_tensor(scale, int(np.clip(round(-128 - low / scale), -128, 127)))
    return quantization.quantize(np.nan_to_num(data), np.int8), quantization


def weights(tensor: Tensor, axis: int | None, known: Mapping[str, Quantization], by: str) -> Stored:
    """Constant weights as symmetric int8: the file's own steps where they fit, else rounded again along ``axis``."""
    assert tensor.data is not None
    data = tensor.data
    for stored in _known(tensor, known):
        for quantization in _placed(stored, data.shape, axis):
            spread = quantization._along(quantization.scale, data.ndim).astype(np.float64)
            steps = data.astype(np.float64) / spread
            whole = np.rint(steps)
            if np.abs(whole).max(initial=0) <= WEIGHT_HIGH + 1 and whole.max(initial=0) <= WEIGHT_HIGH \
                    and np.all(np.abs(steps - whole) <= EXACT * np.maximum(1, np.abs(whole))):
                return Stored(quantized_constant(tensor, whole.astype(np.int8), quantization, by), True)
    others = tuple(a for a in range(data.ndim) if a != axis)
    largest = np.abs(data).max(axis=others if axis is not None else None, initial=0.0).astype(np.float64).reshape(-1)
    scales = np.where(largest > 0, largest / WEIGHT_HIGH, 1.0 / WEIGHT_HIGH).astype(np.float32)
    again = Quantization.per_tensor(float(scales[0])) if axis is None else Quantization.per_axis(scales, axis)
    return Stored(quantized_constant(tensor, again.quantize(data, np.int8), again, by), False)


def _known(tensor: Tensor, known: Mapping[str, Quantization]) -> list[Quantization]:
    """The scales under the names that a constant comes from; the n-th part of a constant is named NAME/n."""
    names = [s.name for s in tensor.origin.sources]
    names += [n.rpartition("/")[0] for n in names if n.rpartition("/")[2].isdigit()]
    return [known[n] for n in names if n in known]


def _placed(stored: Quantization, shape: tuple[int, ...], axis: int | None) -> list[Quantization]:
    """The scales along ``axis``, or those of each part when the constant was cut into parts there."""
    if stored.scale.size == 1:
        return [Quantization.per_tensor(float(stored.scale[0]))]
    if axis is None or stored.scale.size % shape[axis]:
        return []
    return [Quantization.per_axis(part, axis) for part in np.split(stored.scale, stored.scale.size // shape[axis])]


def bias_steps(tensor: Tensor, weight: Tensor, input_scale: float, wide: bool, by: str) -> Tensor:
    """A bias in units of input scale times weight scale."""
    assert tensor.data is not None
    assert weight.quantization is not None
    scales = (weight.quantization.scale.astype(np.float64) * input_scale).astype(np.float32)
    limit = 2.0 ** (39 if wide else 31)
    data = np.clip(np.rint(tensor.data.astype(np.float64) / scales.astype(np.float64)), -limit, limit - 1)
    quantization = Quantization.per_tensor(float(scales[0])) if scales.size == 1 else Quantization.per_axis(scales, 0)
    return quantized_constant(tensor, data.astype(np.int64 if wide else np.int32), quantization, by)


def new_steps(like: Tensor, quantization: Quantization | None, dtype: DType, origin: Origin = Origin()) -> Tensor:
    """A quantized tensor of the shape of ``like``."""
    return Tensor(f"{like.name}_steps", dtype, like.shape, quantization=quantization, origin=origin)


def requantized(graph: Graph, source: Tensor, like: Tensor, before: Node, origin: Origin) -> Tensor:
    """``source`` in the scale of ``like``: itself, or through a QUANTIZE."""
    if source.quantization == like.quantization and source.dtype is like.dtype:
        return source
    changed = new_steps(source, like.quantization, like.dtype)
    graph.add(ops.Quantize(), [source], [changed], name=changed.name, origin=origin, before=before)
    return changed
