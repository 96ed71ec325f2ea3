"""Products of steps with one number: a change of scale that no rounding costs."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Graph, Node, Quantization, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, scalar
from vitrify.passes.quantized.steps import new_steps, operand, steps_of, wanted_steps


class ScaleSteps(Pass):
    """Multiply steps by a positive number: the same steps in another scale.

    Before:  %1 = DEQUANTIZE(%q);  %2 = MUL(%1, c)                    no QUANTIZE follows
    After:   %1 = MUL(%q, int8 c);  %2 = DEQUANTIZE(%1)               scale of %1 = c * scale of %q
    """

    name = "scale-steps"
    kinds = (ops.Mul,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Where a constant of one value multiplies steps."""
        pair = by_constant(node, ops.Mul)
        factor = scalar(pair[1]) if pair is not None else None
        source = steps_of(pair[0]) if pair is not None else None
        if pair is None or source is None or factor is None or not 1e-20 < factor < 1e20 or wanted_steps(node) \
                or source.quantization is None:
            return False
        scale = float(source.quantization.scale[0]) * factor
        own = Quantization.per_tensor(scale, int(source.quantization.zero_point[0]))
        made = new_steps(node.output, own, source.dtype)
        factors = operand(pair[1], {}, source.dtype, self.name)
        inputs: list[Tensor | None] = [source if t is pair[0] else factors for t in node.inputs]
        graph.add(node.op, inputs, [made], name=node.name, origin=self.made(node), before=node)
        graph.replace_node(node, ops.Dequantize(), [made])
        return True


class ScaleBeforeQuantize(Pass):
    """Turn values into steps before they are multiplied by a positive number.

    Before:  %2 = MUL(%1, c);  %3 = QUANTIZE(%2)
    After:   %2 = QUANTIZE(%1);  %3 = MUL(%2, int8 c)                 scale of %2 = scale of %3 / c
    """

    name = "scale-before-quantize"
    kinds = (ops.Mul,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Where a constant of one value multiplies what does not come as steps."""
        pair, wanted = by_constant(node, ops.Mul), wanted_steps(node)
        factor = scalar(pair[1]) if pair is not None else None
        if pair is None or wanted is None or factor is None or not 1e-20 < factor < 1e20 \
                or wanted.quantization is None or steps_of(pair[0]) is not None \
                or len({u.output.quantization for u in node.output.users}) > 1:
            return False
        scale = float(wanted.quantization.scale[0]) / factor
        own = Quantization.per_tensor(scale, int(wanted.quantization.zero_point[0]))
        before = new_steps(pair[0], own, wanted.dtype)
        graph.add(ops.Quantize(), [pair[0]], [before], name=before.name, origin=self.made(node), before=node)
        made = new_steps(node.output, wanted.quantization, wanted.dtype)
        factors = operand(pair[1], {}, wanted.dtype, self.name)
        inputs: list[Tensor | None] = [before if t is pair[0] else factors for t in node.inputs]
        graph.add(node.op, inputs, [made], name=node.name, origin=self.made(node), before=node)
        for user in node.output.users:
            graph.replace_uses(user.output, made)
            graph.remove(user)
        graph.remove(node)
        return True
