"""Normalization by statistics of the tensor itself, with the mean taken out first."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import only_user, producer, swap


class CentreFirst(Pass):
    """Take the mean out before the scale, not after it.

    Before:  %1 = MUL(%r, gamma);  %2 = MUL(%x, %1);  %3 = MUL(%mean, %1);  %4 = SUB(beta, %3);  %5 = ADD(%2, %4)
    After:   %1 = SUB(%x, %mean);  %2 = MUL(%1, %r);  %3 = MUL(%2, gamma);  %5 = ADD(%3, beta)
    Equal in real arithmetic. One operator less; no difference of two large numbers, which int8 does not survive; and
    gamma and beta go into the weights of a FULLY_CONNECTED behind.
    """

    name = "centre-first"
    exactness = Exactness.ROUNDING
    kinds = (ops.Add,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the sum; the rest goes when nobody else reads it."""
        if node.op != ops.Add() or node.output.dtype is not DType.FLOAT32:
            return False
        for scaled, shift in (node.inputs, node.inputs[::-1]):
            found = _parts(scaled, shift)
            if found is None:
                continue
            x, mean, scale, beta = found
            parts = (scaled.producer if scaled else None, shift.producer if shift else None, node)
            centred = self.insert(graph, ops.Sub(), [x, mean], f"{node.name}_centred", node, *parts)
            for factor in _factors(scale, mean):
                centred = self.insert(graph, ops.Mul(), [centred, factor], f"{node.name}_scaled", node, *parts)
            swap(graph, node, ops.Add(), [centred, beta], self.made(*parts))
            return True
        return False


def _parts(scaled: Tensor | None, shift: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """The (x, mean, scale, beta) of x * scale + (beta - mean * scale), where the mean is one of x."""
    product, difference = producer(scaled, ops.Mul), producer(shift, ops.Sub)
    moved = producer(difference.input(1), ops.Mul) if difference is not None else None
    if product is None or difference is None or moved is None or difference.op != ops.Sub():
        return None
    if product.op != ops.Mul() or moved.op != ops.Mul() or only_user(product.output) is None:
        return None
    for x, scale in (product.inputs, product.inputs[::-1]):
        for mean, same in (moved.inputs, moved.inputs[::-1]):
            maker = producer(mean, ops.Mean)
            if x is None or scale is None or mean is None or same is not scale or maker is None:
                continue
            if maker.input(0) is x and mean.shape != x.shape and len(mean.shape) == len(x.shape):
                return x, mean, scale, difference.input(0)
    return None


def _factors(scale: Tensor, mean: Tensor) -> list[Tensor]:
    """The scale as a factor of the mean's shape and a constant, when it is their product."""
    maker = producer(scale, ops.Mul)
    if maker is None or maker.op != ops.Mul():
        return [scale]
    a, b = maker.input(0), maker.input(1)
    first, second = (b, a) if a.is_constant else (a, b)
    return [first, second] if second.is_constant and first.shape == mean.shape else [scale]


class SquareOfDifference(Pass):
    """Square a difference that is there anyway.

    Before:  %1 = SQUARED_DIFFERENCE(%x, %mean);  %2 = SUB(%x, %mean)
    After:   %2 = SUB(%x, %mean);  %1 = MUL(%2, %2)
    SQUARED_DIFFERENCE has no 16-bit kernel, and takes the difference again.
    Source: TFLite kernels/squared_difference.cc.
    """

    name = "square-of-difference"
    kinds = (ops.SquaredDifference,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Put a difference of the same tensors before, which the other one then is."""
        x, mean = node.input(0), node.input(1)
        twins = [u for u in x.users if u.op == ops.Sub() and u.inputs[0] is x and u.inputs[1] is mean]
        if node.output.dtype is not DType.FLOAT32 or not twins:
            return False
        difference = self.insert(graph, ops.Sub(), [x, mean], f"{node.name}_difference", node, twins[0], node)
        swap(graph, node, ops.Mul(), [difference, difference], self.made(node))
        return True
