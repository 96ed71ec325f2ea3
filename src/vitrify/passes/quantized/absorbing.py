"""Computations between DEQUANTIZE and QUANTIZE as integer operators with the scales that stand there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from vitrify.ir import DType, Exactness, Graph, Node, Operator, Quantization, Tensor
from vitrify.ops.int8 import Int8Rule
from vitrify.passes.base import Pass
from vitrify.passes.graphs import sweep
from vitrify.passes.quantized.steps import (
    AVERAGING,
    WIDE_OUTPUT,
    bias_steps,
    fits_type,
    is_bridge,
    moves_values,
    new_steps,
    operand,
    requantized,
    rule_of,
    steps_of,
    wanted_steps,
    weights,
)


class AbsorbSteps(Pass):
    """Compute with steps what stands between DEQUANTIZE and QUANTIZE.

    Before:  %1 = DEQUANTIZE(%q);  %2 = CONV_2D(%1, w, b);  %3 = QUANTIZE(%2)
    After:   %3 = CONV_2D(%q, int8 w, int32 b)
    Sums and products are exact, the result is rounded once: up to one step from rounding a float32 result.
    """

    name = "absorb-steps"
    exactness = Exactness.ROUNDING

    def __init__(self, known: Mapping[str, Quantization] | None = None) -> None:
        super().__init__()
        self.known = known or {}
        self.rounded_weights: list[str] = []
        self.changed_scales: list[str] = []

    def again(self) -> AbsorbSteps:
        """The same pass, to be run once more."""
        return AbsorbSteps(self.known)

    def remember(self, other: AbsorbSteps) -> None:
        """Take over what another run has to tell."""
        self.rounded_weights += other.rounded_weights
        self.changed_scales += other.changed_scales

    def run(self, graph: Graph) -> int:
        """Walk in order."""
        return sum(self._visit(graph, node) for node in graph
                   if not is_bridge(node) and not moves_values(node) and rule_of(node) is not None)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Where all that is computed comes as steps and all that is made is wanted as steps."""
        rule, wanted = rule_of(node), wanted_steps(node)
        if rule is None or wanted is None or len(node.outputs) != 1 or not _may(node, rule):
            return False
        places = [i for i, t in enumerate(node.inputs) if t is not None and t.dtype is DType.FLOAT32
                  and i not in (rule.weight if _is_constant(node, rule.weight) else None, rule.bias)
                  and i not in rule.keep]
        sources = {i: steps_of(node.input(i)) for i in places}
        found = [s for s in sources.values() if s is not None]
        if not found or any(sources[i] is None and not node.input(i).is_constant for i in places):
            return False
        dtype = found[0].dtype
        if any(s.dtype is not dtype for s in found) or not fits_type(node, dtype) or wanted.dtype not in (
                dtype, DType.INT8, DType.INT16):
            return False
        if dtype is DType.INT16 and any(s.quantization is None or s.quantization.zero_point.any() for s in found):
            return False
        inputs = list(node.inputs)
        for i in places:
            inputs[i] = sources[i] or operand(node.input(i), self.known, dtype, self.name)
        self._constants(node, rule, inputs, found[0])
        self._replace(graph, node, inputs, found[0], wanted)
        return True

    def _constants(self, node: Node, rule: Int8Rule, inputs: list[Tensor | None], source: Tensor) -> None:
        if rule.weight is None or not _is_constant(node, rule.weight):
            return
        stored = weights(node.input(rule.weight), rule.weight_axis, self.known, self.name)
        if not stored.is_exact:
            self.rounded_weights.append(str(node.origin) if node.origin.sources else node.name)
        inputs[rule.weight] = stored.tensor
        bias = node.optional(rule.bias) if rule.bias is not None else None
        if bias is not None and rule.bias is not None:
            assert source.quantization is not None
            inputs[rule.bias] = bias_steps(bias, stored.tensor, float(source.quantization.scale[0]),
                                           source.dtype is DType.INT16, self.name)

    def _replace(self, graph: Graph, node: Node, inputs: list[Tensor | None], source: Tensor, wanted: Tensor) -> None:
        own = self._own_scale(node, source, wanted)
        made = new_steps(node.output, own, source.dtype)
        graph.add(_plain(node.op), inputs, [made], name=node.name, origin=self.made(node), before=node)
        for user in node.output.users:
            asked = user.output
            if made.quantization == asked.quantization and made.dtype is asked.dtype:
                graph.replace_uses(asked, made)
            else:
                self.changed_scales.append(node.name)
                graph.replace_uses(asked, requantized(graph, made, asked, node, self.made(node)))
            graph.remove(user)
        old = node.inputs
        graph.remove(node)
        sweep(graph, *old)

    def _own_scale(self, node: Node, source: Tensor, wanted: Tensor) -> Quantization | None:
        """The scale that the kernel gives: fixed, the input's, or what is wanted."""
        if isinstance(node.op, AVERAGING):
            return source.quantization
        if source.dtype is DType.INT16 and type(node.op) in WIDE_OUTPUT:
            return Quantization.per_tensor(WIDE_OUTPUT[type(node.op)], 0)
        rule = rule_of(node)
        if rule is not None and rule.output is not None:
            return Quantization.per_tensor(*rule.output)
        if source.dtype is not wanted.dtype and wanted.quantization is not None:
            return _converted(wanted.quantization, source.dtype)
        return wanted.quantization


def _converted(quantization: Quantization, dtype: DType) -> Quantization:
    """About the same range in steps of another type."""
    scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    if dtype is DType.INT16:
        return Quantization.per_tensor(scale * (128 + abs(zero)) / 32767, 0)
    return Quantization.per_tensor(scale * 32767 / 127, 0)


def _may(node: Node, rule: Int8Rule) -> bool:
    """True when nothing but scales stands in the way: weights known, results that are real values."""
    if node.output.dtype is not DType.FLOAT32:
        return False
    if rule.weight is None:
        return True
    bias = node.optional(rule.bias) if rule.bias is not None else None
    weight = node.optional(rule.weight)
    return (weight is not None and weight.is_constant and weight.dtype is DType.FLOAT32
            and (bias is None or (bias.is_constant and bias.dtype is DType.FLOAT32)))


def _is_constant(node: Node, index: int | None) -> bool:
    tensor = node.optional(index) if index is not None else None
    return tensor is not None and tensor.is_constant


def _plain(op: Operator) -> Operator:
    """The operator without the option that 16-bit sums have scales of powers of two."""
    known: Any = op
    if any(f.name == "pot_scale_int16" for f in fields(known)):
        return replace(known, pot_scale_int16=False)  # type: ignore[no-any-return]
    return op
