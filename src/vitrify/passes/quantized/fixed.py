"""Outputs whose scale the kernel fixes, read as they are where any scale will do."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node
from vitrify.passes.base import Pass
from vitrify.passes.graphs import sweep
from vitrify.passes.quantized.steps import is_bridge, rule_of


class ReadFixedOutput(Pass):
    """Spare a change of scale between an operator with a fixed output scale and readers that take any.

    Before:  %1 = LOGISTIC(%q);  %2 = QUANTIZE(%1);  %3 = MUL(%q, %2)
    After:   %1 = LOGISTIC(%q);  %3 = MUL(%q, %1)
    One rounding less: the scale that the file gives to %2 is that of no stored value any more.
    """

    name = "read-fixed-output"
    kinds = (ops.Quantize,)
    exactness = Exactness.ROUNDING

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Where every reader computes with 8-bit steps of any scale and has no bias in units of it."""
        source, result = node.input(0), node.output
        maker = source.producer
        rule = rule_of(maker) if maker is not None else None
        if rule is None or rule.output is None or source.dtype is not DType.INT8 or result.dtype is not DType.INT8 \
                or result.is_output or not result.uses or not all(_takes_any(n, i) for n, i in result.uses):
            return False
        graph.replace_uses(result, source)
        sweep(graph, result)
        return True


def _takes_any(node: Node, index: int) -> bool:
    rule = rule_of(node)
    return (rule is not None and not is_bridge(node) and rule.weight is None and index not in rule.keep
            and not rule.same_scale)
