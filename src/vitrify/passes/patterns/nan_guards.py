"""Guards against NaN where there is none."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import bypass, producer, scalar, sweep

FINITE = (ops.Add, ops.Sub, ops.Mul, ops.BatchMatMul, ops.FullyConnected)
"""Operators that give finite numbers for finite ones: the first three clamp to them. A SELECT may put in -inf."""


class NanGuards(Pass):
    """Leave out the choice of 0 for what a softmax of a masked row would be.

    Before:  %1 = SOFTMAX(ADD(%x, mask));  %2 = NOT_EQUAL(%1, %1);  %3 = SELECT_V2(%2, 0, %1)
    After:   %3 = SOFTMAX(ADD(%x, mask))
    ADD clamps -inf to the lowest number, so that not even a row that is masked whole gives NaN, which is what the guard
    looks for; scores without a mask give none either. It would cost two operators that NPUs do not have.
    Source: TFLite kernels/add.cc.
    """

    name = "nan-guards"
    kinds = (ops.SelectV2,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Read the softmax itself."""
        test, value = producer(node.input(0), ops.NotEqual), node.input(2)
        if test is None or test.input(0) is not value or test.input(1) is not value:
            return False
        softmax = producer(value, ops.Softmax)
        if softmax is None or not _is_finite(softmax.input(0)) or scalar(node.input(1)) is None:
            return False
        if node.output.shape != value.shape or not bypass(graph, node, value):
            return False
        sweep(graph, test.output)
        return True


def _is_finite(tensor: Tensor) -> bool:
    """True for what sums and products give, also after a change of shape."""
    maker = producer(tensor, *FINITE, ops.Reshape, ops.Transpose)
    while maker is not None and isinstance(maker.op, ops.Reshape | ops.Transpose):
        maker = producer(maker.input(0), *FINITE, ops.Reshape, ops.Transpose)
    return maker is not None
