"""Quotients of two activations: by a reciprocal where 8 bits hold the divisor, else in 16 bits, never by 0.

No kernel of DIV survives a divisor of 0, and beside a large divisor a small one rounds to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.ops import Div, Maximum, Minimum, Mul, Rsqrt
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.rules import is_real
from vitrify.quant.scales import INT16_HIGH

PASS = "quotients"

NEAR = 16.0
"""Up to this ratio between the largest and the smallest divisor, 8 bits hold its reciprocal to 3 %."""

BELOW = 0.5
"""Divisors down to this share of the smallest one that was seen are taken as they are."""


def write_quotients(graph: Graph, nodes: Sequence[Node], ranges: Mapping[Tensor, Range]) -> dict[Tensor, Range]:
    """Rewrite these DIVs of two activations; returns the ranges of the tensors that this makes.

    Before:  %y = DIV(%x, %d)                       d > 0
    After:   %r = RSQRT(%d);  %y = MUL(%x, %r * %r)     where the divisors are of one order of magnitude
             %y = DIV(%x, MAXIMUM(%d, least))           elsewhere; it computes in 16 bits
    Exact for divisors down to half of the smallest one that was seen. One that goes through 0 is left, and refused.
    """
    made: dict[Tensor, Range] = {}
    for node in nodes:
        found = ranges.get(node.input(1))
        if found is None or found.low <= 0 <= found.high:
            continue
        if found.low > 0 and found.high <= NEAR * found.low:
            _by_reciprocal(graph, node, found, made)
        else:
            _guarded(graph, node, found, made)
    return made


def quotients(graph: Graph) -> list[Node]:
    """The nodes that divide by an activation; a table stands for a constant by an activation."""
    return [n for n in graph.nodes_of(Div) if is_real(n.input(1)) and not n.input(1).is_constant
            and not (n.input(0).is_constant and n.input(0).size == 1)]


def _by_reciprocal(graph: Graph, node: Node, found: Range, made: dict[Tensor, Range]) -> None:
    root = _add(graph, node, Rsqrt(), [node.input(1)], "root")
    inverse = _add(graph, node, Mul(), [root, root], "inverse")
    made[root] = Range(found.high ** -0.5, found.low ** -0.5)
    made[inverse] = Range(1 / found.high, 1 / found.low)
    activation = getattr(node.op, "fused_activation_function")      # noqa: B009
    graph.replace_node(node, Mul(fused_activation_function=activation), [node.input(0), inverse],
                       origin=node.origin.by(PASS))


def _guarded(graph: Graph, node: Node, found: Range, made: dict[Tensor, Range]) -> None:
    largest, smallest = max(found.high, -found.low), min(abs(found.low), abs(found.high))
    least = max(smallest * BELOW, 1.01 * largest / INT16_HIGH)
    kind, bound = (Maximum(), least) if found.low > 0 else (Minimum(), -least)
    limit = Tensor(f"{node.name}_least", DType.FLOAT32, (), data=np.array(bound, np.float32))
    guard = _add(graph, node, kind, [node.input(1), limit], "divisor")
    made[guard] = Range(min(found.low, bound), max(found.high, bound))
    graph.set_input(node, 1, guard)


def _add(graph: Graph, node: Node, op: Operator, inputs: list[Tensor | None], name: str) -> Tensor:
    origin = node.origin.by(PASS)
    tensor = graph.add(op, inputs, name=f"{node.name}/{name}", origin=origin, before=node).output
    tensor.origin = tensor.origin._replace(sources=())
    return tensor
