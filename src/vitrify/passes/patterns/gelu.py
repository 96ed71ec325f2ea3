"""GELU in the form with a hyperbolic tangent."""

from __future__ import annotations

from math import pi, sqrt

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, is_close, only_user, scalar, swap

CUBIC = 0.044715


class TanhGelu(Pass):
    """Recognise x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), its products in any order.

    Before:  %1 = MUL(%x, %x);  ...  %7 = TANH(%6);  %8 = ADD(%7, 1);  %9 = MUL(%8, %x);  %10 = MUL(%9, 0.5)
    After:   %10 = GELU(%x, approximate)
    Equal in real arithmetic.
    """

    name = "tanh-gelu"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mul,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the last product; the rest goes when nobody else reads it."""
        if node.output.dtype is not DType.FLOAT32:
            return False
        scale, values = factors(node.output, root=node)
        if len(values) != 2 or not is_close(scale, 0.5):
            return False
        for x, gate in (values, values[::-1]):
            if x.shape == node.output.shape and _is_gate(gate, x):
                swap(graph, node, ops.Gelu(approximate=True), [x], self.made(gate.producer, node))
                return True
        return False


def factors(tensor: Tensor, root: Node | None = None, depth: int = 6) -> tuple[float, list[Tensor]]:
    """Take a product of products apart, ``depth`` of them deep: its constant factor, and the values multiplied.

    Products that others read too are values of their own, except for ``root``.
    """
    maker = tensor.producer
    if not depth or maker is None or maker.op != ops.Mul() or (maker is not root and only_user(tensor) is None):
        constant = scalar(tensor)
        return (1.0, [tensor]) if constant is None else (constant, [])
    left, right = (factors(part, depth=depth - 1) for part in (maker.input(0), maker.input(1)))
    return left[0] * right[0], left[1] + right[1]


def _is_gate(gate: Tensor, x: Tensor) -> bool:
    """True for 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))."""
    shifted = by_constant(gate.producer, ops.Add)
    bent = shifted[0].producer if shifted is not None else None
    if shifted is None or bent is None or not isinstance(bent.op, ops.Tanh) or not is_close(scalar(shifted[1]), 1.0):
        return False
    scale, values = factors(bent.input(0))
    inner = values[0].producer if len(values) == 1 else None
    if inner is None or inner.op != ops.Add() or not abs(scale - sqrt(2 / pi)) < 1e-5:
        return False
    parts = [inner.input(0), inner.input(1)]
    if x not in parts or parts[0] is parts[1]:
        return False
    cubic, cubes = factors(parts[1 - parts.index(x)])
    return abs(cubic - CUBIC) < 1e-6 and _is_cube(cubes, x)


def _is_cube(values: list[Tensor], x: Tensor) -> bool:
    """True for x * x * x, also as a square that others read."""
    flat: list[Tensor] = []
    for value in values:
        maker = value.producer
        square = maker is not None and maker.op == ops.Mul() and value is not x
        flat += [maker.input(0), maker.input(1)] if square and maker is not None else [value]
    return len(flat) == 3 and all(value is x for value in flat)
