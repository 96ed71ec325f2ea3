"""Sums without an integer kernel as products with constant weights, and what is made of such sums."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Operator, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, swap

LONGEST = 2048
"""A longer axis would need weights of more than 16 MB."""


class RunningSum(Pass):
    """Sum up along an axis with a layer of ones and zeros.

    Before:  %1 = CUMSUM(%x, axis)
    After:   %2 = TRANSPOSE(%x);  %3 = FULLY_CONNECTED(%2, triangle of ones);  %1 = TRANSPOSE(%3)
    Without the TRANSPOSEs where the axis is the last. Sums are added in another order.
    Source: TFLite kernels/cumsum.cc refuses int8.
    """

    name = "running-sum"
    exactness = Exactness.ROUNDING
    kinds = (ops.Cumsum,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator where the axis is known and not too long."""
        x, axes = node.input(0), node.input(1).data
        if x.dtype is not DType.FLOAT32 or axes is None or not x.shape or x.shape[int(axes.flat[0])] > LONGEST:
            return False
        assert isinstance(node.op, ops.Cumsum)
        axis = int(axes.flat[0]) % len(x.shape)
        turn = [a for a in range(len(x.shape)) if a != axis] + [axis]
        moved = turn != sorted(turn)
        value = self._turned(graph, node, x, turn) if moved else x
        op = ops.FullyConnected(keep_num_dims=True)
        inputs: list[Tensor | None] = [value, constant(f"{node.name}_triangle", _triangle(x.shape[axis], node.op))]
        if not moved:
            swap(graph, node, op, inputs, self.made(node))
            return True
        total = self.insert(graph, op, inputs, f"{node.name}_sums", node, node)
        back = constant(f"{node.name}_back", np.argsort(turn).astype(np.int32))
        swap(graph, node, ops.Transpose(), [total, back], self.made(node))
        return True

    def _turned(self, graph: Graph, node: Node, x: Tensor, turn: list[int]) -> Tensor:
        order = constant(f"{node.name}_order", np.array(turn, np.int32))
        return self.insert(graph, ops.Transpose(), [x, order], f"{node.name}_turned", node, node)


def _triangle(extent: int, op: ops.Cumsum) -> Array:
    """Weights [output, input]: ones where an input counts."""
    ones = np.tri(extent, k=-1 if op.exclusive else 0, dtype=np.float32)
    return np.ascontiguousarray(ones.T if op.reverse else ones)


class PairwiseSum(Pass):
    """Add any number of values two at a time.

    Before:  %1 = ADD_N(%x, %y, %z)
    After:   %2 = ADD(%x, %y);  %1 = ADD(%2, %z)
    Source: TFLite kernels/add_n.cc refuses int8.
    """

    name = "pairwise-sum"
    kinds = (ops.AddN,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace a sum of two or more."""
        values = [t for t in node.inputs if t is not None]
        if len(values) < 2 or node.output.dtype is not DType.FLOAT32:
            return False
        total = values[0]
        for number, value in enumerate(values[1:-1]):
            total = self.insert(graph, ops.Add(), [total, value], f"{node.name}_{number}", node, node)
        swap(graph, node, ops.Add(), [total, values[-1]], self.made(node))
        return True


class LocalResponse(Pass):
    """Sum the squares of neighbouring channels with a layer, and look the power up.

    Before:  %1 = LOCAL_RESPONSE_NORMALIZATION(%x)
    After:   %2 = MUL(%x, %x);  %3 = CONV_2D(%2, band of alpha, bias);  %4 = POW(%3, -beta);  %1 = MUL(%x, %4)
    Source: TFLite kernels/local_response_norm.cc refuses int8.
    """

    name = "local-response"
    exactness = Exactness.ROUNDING
    kinds = (ops.LocalResponseNormalization,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator on a map."""
        x, op = node.input(0), node.op
        assert isinstance(op, ops.LocalResponseNormalization)
        if x.dtype is not DType.FLOAT32 or len(x.shape) != 4 or x.shape[-1] > LONGEST:
            return False
        channels = np.arange(x.shape[-1])
        distance = channels[None, :] - channels[:, None]      # the runtime's window ends before channel c + radius
        band = np.where((distance >= -op.radius) & (distance < op.radius), np.float32(op.alpha), np.float32(0))
        square = self.insert(graph, ops.Mul(), [x, x], f"{node.name}_squares", node, node)
        weights = constant(f"{node.name}_band", band.reshape(len(channels), 1, 1, len(channels)))
        bias = constant(f"{node.name}_bias", np.full(len(channels), op.bias, np.float32))
        total = self.insert(graph, ops.Conv2D(stride_w=1, stride_h=1), [square, weights, bias], f"{node.name}_sums",
                            node, node)
        power = constant(f"{node.name}_power", np.array(-op.beta, np.float32))
        factor = self.insert(graph, ops.Pow(), [total, power], f"{node.name}_factor", node, node)
        swap(graph, node, ops.Mul(), [x, factor], self.made(node))
        return True


class RootOfMean(Pass):
    """The root of the mean square of a window, written out.

    Before:  %1 = L2_POOL_2D(%x)
    After:   %2 = MUL(%x, %x);  %3 = AVERAGE_POOL_2D(%2);  %1 = SQRT(%3)
    Source: TFLite kernels/pooling.cc refuses int8.
    """

    name = "root-of-mean"
    exactness = Exactness.ROUNDING
    kinds = (ops.L2Pool2D,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator; one with a fused activation stays."""
        x, op = node.input(0), node.op
        assert isinstance(op, ops.L2Pool2D)
        if x.dtype is not DType.FLOAT32 or op.fused_activation_function is not ops.Activation.NONE:
            return False
        square = self.insert(graph, ops.Mul(), [x, x], f"{node.name}_squares", node, node)
        pool: Operator = ops.AveragePool2D(padding=op.padding, stride_h=op.stride_h, stride_w=op.stride_w,
                                           filter_height=op.filter_height, filter_width=op.filter_width)
        mean = self.insert(graph, pool, [square], f"{node.name}_means", node, node)
        swap(graph, node, ops.Sqrt(), [mean], self.made(node))
        return True


class FloorOfQuotient(Pass):
    """The whole part of a quotient, and what is left over, by the quotient.

    Before:  %1 = FLOOR_DIV(%x, %y);  %2 = FLOOR_MOD(%x, %y)
    After:   %1 = FLOOR(DIV(%x, %y));  %2 = SUB(%x, MUL(%y, FLOOR(DIV(%x, %y))))
    By constants of one value a table does it in integers, so these stay.
    """

    name = "floor-of-quotient"
    exactness = Exactness.ROUNDING
    kinds = (ops.FloorDiv, ops.FloorMod)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace an operator on two activations."""
        x, y = node.input(0), node.input(1)
        if x.dtype is not DType.FLOAT32 or any(t.data is not None and t.size == 1 for t in (x, y)):
            return False
        quotient = self.insert(graph, ops.Div(), [x, y], f"{node.name}_quotient", node, node)
        if isinstance(node.op, ops.FloorDiv):
            swap(graph, node, ops.Floor(), [quotient], self.made(node))
            return True
        floor = self.insert(graph, ops.Floor(), [quotient], f"{node.name}_floor", node, node)
        whole = self.insert(graph, ops.Mul(), [y, floor], f"{node.name}_whole", node, node)
        swap(graph, node, ops.Sub(), [x, whole], self.made(node))
        return True
