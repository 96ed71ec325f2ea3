"""What the quantizer reads from an operator's int8 rule: the roles of a node's inputs, and who must share a scale."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.ops import Cast
from vitrify.ops.int8 import Int8Rule

COUNTS = (DType.INT32, DType.INT16, DType.INT8, DType.UINT8)
"""Plain integers that QUANTIZE takes as steps of 1. Source: TFLite kernels/quantize.cc."""


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
    """The operator's int8 rule, None when it has no int8 kernel."""
    if makes_real(node):
        return Int8Rule()
    rule = getattr(node.op, "int8", None)
    return rule if isinstance(rule, Int8Rule) else None


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


def fixed_output(node: Node) -> tuple[float, int] | None:
    """The scale and zero point that the kernel demands of the outputs, None when they are free."""
    rule = rule_of(node)
    return rule.output if rule is not None else None


def real_nodes(graph: Graph) -> list[Node]:
    """The nodes that compute with floats."""
    return [node for node in graph if touches_reals(node)]


def _is_constant(node: Node, index: int) -> bool:
    tensor = node.optional(index)
    return tensor is not None and tensor.is_constant
