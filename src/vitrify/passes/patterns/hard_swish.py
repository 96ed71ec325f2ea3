"""Hard swish and hard sigmoid, in the forms that exporters write."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, constant, is_close, only_user, scalar, swap
from vitrify.passes.patterns.activations import clip_range


class HardSwish(Pass):
    """Recognise x * relu6(x + 3) / 6, in any order of the products.

    Before:  %1 = ADD(%x, 3);  %2 = RELU6(%1);  %3 = MUL(%x, %2);  %4 = MUL(%3, 0.16666667)
    After:   %4 = HARD_SWISH(%x)
    Equal in real arithmetic.
    """

    name = "hard-swish"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mul,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the last product; the rest goes when nobody else reads it."""
        if node.output.dtype is not DType.FLOAT32:
            return False
        factors = _factors(node)
        if len(factors) != 3:
            return False
        values = [t for t in factors if not t.is_constant]
        scale = [scalar(t) for t in factors if t.is_constant]
        if len(values) != 2 or not is_close(scale[0], 1 / 6):
            return False
        for x, gate in (values, values[::-1]):
            if _is_gate(gate, x) and x.shape == node.output.shape:
                makers = (t.producer for t in factors)
                swap(graph, node, ops.HardSwish(), [x], self.made(*(m for m in makers if m is not x.producer), node))
                return True
        return False


def _factors(node: Node) -> list[Tensor]:
    """The factors of a product, through products that nothing else reads."""
    found: list[Tensor] = []
    for tensor in (node.input(0), node.input(1)):
        maker = tensor.producer
        plain = maker is not None and maker.op == ops.Mul() and only_user(tensor) is node
        found += [maker.input(0), maker.input(1)] if plain and maker is not None else [tensor]
    return found


def _is_gate(gate: Tensor, x: Tensor) -> bool:
    """True for relu6(x + 3)."""
    clipped = clip_range(gate.producer)
    if clipped is None or clipped[1:] != (0.0, 6.0):
        return False
    shifted = by_constant(clipped[0].producer, ops.Add)
    return shifted is not None and shifted[0] is x and is_close(scalar(shifted[1]), 3.0)


class HardSigmoid(Pass):
    """Write a line clipped to 0..1 with RELU6, so that its int8 range is exact.

    Before:  %1 = MUL(%x, 0.2);  %2 = ADD(%1, 0.5);  %3 = MINIMUM(MAXIMUM(%2, 0), 1)
    After:   %1 = MUL(%x, 1.2);  %2 = ADD(%1, 3);  %3 = MUL(RELU6(%2), 0.16666667)
    Equal in real arithmetic. A convolution before takes the first two over.
    """

    name = "hard-sigmoid"
    exactness = Exactness.ROUNDING
    kinds = (ops.Minimum, ops.Maximum, ops.Relu, ops.Relu0To1)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Scale line and clip by 6."""
        clipped = clip_range(node)
        if clipped is None or clipped[1:] != (0.0, 1.0):
            return False
        line = clipped[0]
        shifted = by_constant(line.producer, ops.Add)
        scaled = by_constant(shifted[0].producer if shifted is not None else None, ops.Mul)
        if shifted is None or scaled is None or only_user(shifted[0]) is not line.producer:
            return False
        parts = (shifted[0].producer, line.producer, node)
        product = self.insert(graph, ops.Mul(), [scaled[0], _times_six(scaled[1])], shifted[0].name, node, *parts)
        total = self.insert(graph, ops.Add(), [product, _times_six(shifted[1])], line.name, node, *parts)
        gate = self.insert(graph, ops.Relu6(), [total], f"{node.name}_gate", node, *parts)
        sixth = constant(f"{node.name}_scale", np.array(1 / 6, np.float32))
        swap(graph, node, ops.Mul(), [gate, sixth], self.made(*parts))
        return True


def _times_six(tensor: Tensor) -> Tensor:
    """Six times a constant, rounded once: 1/6 becomes exactly 1."""
    data: Array = np.asarray(tensor.data, np.float64) * 6
    return constant(tensor.name, data.astype(np.float32), tensor.origin)
