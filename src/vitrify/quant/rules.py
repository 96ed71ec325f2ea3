"""What the quantizer reads from an operator's int8 rule: the roles of a node's inputs, and who must share a scale."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.ops import Cast
from vitrify.ops.activation import LONG_ROW
from vitrify.ops.int8 import Int8Rule
from vitrify.ops.lstm import has_integer_kernel
from vitrify.quant.lookups import table_rule, variable

COUNTS = (DType.INT32, DType.INT16, DType.INT8, DType.UINT8)
"""Plain integers that QUANTIZE takes as steps of 1. Source: TFLite kernels/quantize.cc."""


WIDE_STEP = 1 / 32768
"""The output scale of the 16-bit kernels of LOGISTIC, TANH and SOFTMAX. Source: the TensorFlow Lite 16x8 quantization
specification."""

SEQUENCE = Int8Rule(keep=tuple(range(1, 24)))
"""The rule of a sequence LSTM: weights and states are settled when its input and output are (``forms/lstm.py``)."""

SIXTEEN: tuple[type[Operator], ...] = (
    ops.Abs, ops.Add, ops.AveragePool2D, ops.BatchMatMul, ops.BatchToSpaceND, ops.BroadcastTo, ops.Concatenation,
    ops.Conv2D, ops.DepthwiseConv2D, ops.Div, ops.DynamicUpdateSlice, ops.Exp, ops.ExpandDims, ops.FullyConnected,
    ops.Gather, ops.GatherND, ops.Gelu, ops.HardSwish, ops.LeakyRelu, ops.Logistic, ops.Maximum, ops.MaxPool2D,
    ops.Mean, ops.Minimum, ops.MirrorPad, ops.Mul, ops.Pack, ops.Pad, ops.PadV2, ops.ReduceMax, ops.ReduceMin,
    ops.Relu, ops.Relu6, ops.Reshape, ops.ResizeBilinear, ops.ResizeNearestNeighbor, ops.ReverseV2, ops.Select,
    ops.SelectV2, ops.Slice, ops.Softmax, ops.SpaceToBatchND, ops.Split, ops.SplitV, ops.Sqrt, ops.Squeeze,
    ops.StridedSlice, ops.Sub, ops.Tanh, ops.Tile, ops.TopKV2, ops.Transpose, ops.TransposeConv, ops.Unpack)
"""Operators whose 16-bit kernel is right, as found by running models of one operator in LiteRT 2.3; HARD_SWISH by what
it is made of. PRELU gives other values, comparisons pass over scales, ARG_MAX, DEPTH_TO_SPACE and others refuse."""


@dataclass(frozen=True)
class Roles:
    """The inputs of one node, by what quantization does with them."""

    rule: Int8Rule
    weight: int | None
    bias: int | None
    activations: tuple[int, ...]

    @property
    def data(self) -> int | None:
        """The first activation: what weights are multiplied with."""
        return self.activations[0] if self.activations else None


def is_real(tensor: Tensor | None) -> bool:
    """True for a tensor that quantization turns into integers."""
    return tensor is not None and tensor.dtype is DType.FLOAT32


def touches_reals(node: Node) -> bool:
    """True when a node reads or gives a float tensor."""
    return any(t is not None and t.dtype.is_float for t in (*node.inputs, *node.outputs))


def rule_of(node: Node) -> Int8Rule | None:
    """The int8 rule of a node: its kernel's, or that of a table in its place; None when it has neither."""
    if is_island(node):
        return None
    if makes_real(node):
        return Int8Rule()
    return table_rule(node) or (SEQUENCE if has_integer_kernel(node) else own_rule(node))


def own_rule(node: Node) -> Int8Rule | None:
    """The rule that the operator itself states: that of its integer kernel."""
    rule = getattr(node.op, "int8", None)
    return rule if isinstance(rule, Int8Rule) else None


def is_island(node: Node) -> bool:
    """True for a node that a recipe keeps in float, or that leads out: inside, values have the type float64."""
    return any(t is not None and t.dtype is DType.FLOAT64 for t in (*node.inputs, *node.outputs))


def has_kernel(node: Node) -> bool:
    """True when the operator itself computes in integers, so that no table has to."""
    return makes_real(node) or own_rule(node) is not None or has_integer_kernel(node)


def makes_real(node: Node) -> bool:
    """True for a CAST of plain integers to floats: in int8 it is a QUANTIZE of steps of 1."""
    return isinstance(node.op, Cast) and node.input(0).dtype in COUNTS and is_real(node.output)


def roles(node: Node) -> Roles | None:
    """Sort a node's inputs into weight, bias and activations; None without an int8 rule.

    Weights that are computed at run time are activations like any other.
    """
    rule = rule_of(node)
    if rule is None:
        return None
    weight = rule.weight if rule.weight is not None and _is_constant(node, rule.weight) else None
    bias = rule.bias if rule.bias is not None and is_real(node.optional(rule.bias)) else None
    activations = tuple(i for i, t in enumerate(node.inputs)
                        if is_real(t) and i not in (weight, bias) and i not in rule.keep)
    return Roles(rule, weight, bias, activations)


def shared_inputs(node: Node) -> tuple[int, ...]:
    """The inputs that must have the scale of the node's outputs."""
    found = roles(node)
    if found is None or not any(is_real(t) for t in node.outputs):
        return ()
    if found.rule.variadic:
        return found.activations
    return tuple(i for i in found.rule.same_scale if i in found.activations)


def keeps_values(node: Node) -> bool:
    """True when every output value lies within the values of its inputs, so that no range of its own is needed."""
    shared = shared_inputs(node)
    found = roles(node)
    return bool(shared) and found is not None and set(shared) == set(found.activations)


def fixed_output(node: Node, wide: bool = False) -> tuple[float, int] | None:
    """The scale and zero point that the kernel demands of the outputs, None when they are free.

    ``wide``: of the kernel with 16-bit activations.
    """
    rule = rule_of(node)
    if rule is None or rule.output is None:
        return None
    return (WIDE_STEP, 0) if wide else rule.output


def takes_sixteen(node: Node) -> bool:
    """True when a node can compute with 16-bit activations: by a kernel, a table, or written out."""
    if not all(is_real(t) for t in node.outputs[:1]) and not isinstance(node.op, Cast):
        return False
    return isinstance(node.op, SIXTEEN) or variable(node, wide=True) is not None


def is_long(node: Node) -> bool:
    """True for a softmax whose rows are so long that their shares need 16 bits."""
    return isinstance(node.op, ops.Softmax) and bool(node.input(0).shape) and node.input(0).shape[-1] >= LONG_ROW


def real_nodes(graph: Graph) -> list[Node]:
    """The nodes that compute with floats."""
    return [node for node in graph if touches_reals(node)]


def _is_constant(node: Node, index: int) -> bool:
    tensor = node.optional(index)
    return tensor is not None and tensor.is_constant
