"""Whole numbers as soon as they are whole: places in integers, which hold them exactly."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, only_user, producer, swap

ROUNDERS = (ops.Floor, ops.Ceil, ops.Round, ops.FloorDiv)
"""What gives whole numbers."""

MOVERS = (ops.Reshape, ops.Squeeze, ops.ExpandDims, ops.Transpose, ops.Slice, ops.StridedSlice)
BY_WHOLE = (ops.Add, ops.Sub, ops.Mul, ops.Maximum, ops.Minimum)
"""What gives whole numbers of whole numbers and a whole constant, and computes the same in int32."""

LARGEST = 2.0 ** 24
"""Whole numbers up to here are exact in float32."""


class WholeEarlier(Pass):
    """Turn whole numbers into integers where they become whole.

    Before:  %1 = FLOOR(%x);  %2 = ADD(%1, 1);  %3 = MINIMUM(%2, 81);  %4 = CAST(%3) to int32
    After:   %1 = FLOOR(%x);  %2 = CAST(%1) to int32;  %3 = ADD(%2, 1);  %4 = MINIMUM(%3, 81)
    Exact. Integers hold every place, where a scale over all places may not.
    """

    name = "whole-earlier"
    kinds = (ops.Cast,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Exchange a CAST with the operator before it, as often as that goes."""
        changed = False
        while (maker := self._maker(node)) is not None:
            node = self._exchange(graph, node, maker)
            changed = True
        return changed

    def _maker(self, node: Node) -> Node | None:
        """The operator before the CAST, when it gives whole numbers of whole numbers, and nothing else reads them."""
        if node.input(0).dtype is not DType.FLOAT32 or node.output.dtype is not DType.INT32:
            return None
        maker = producer(node.input(0), *MOVERS, *BY_WHOLE)
        if maker is None or only_user(maker.output) is not node:
            return None
        if isinstance(maker.op, MOVERS):
            return maker if _is_whole(maker.input(0)) else None
        whole = all(_is_whole(t) for t in (maker.input(0), maker.input(1)))
        return maker if whole and _activation(maker) in (ops.Activation.NONE, ops.Activation.RELU) else None

    def _exchange(self, graph: Graph, node: Node, maker: Node) -> Node:
        inputs, casts = list(maker.inputs), []
        for index in (0,) if isinstance(maker.op, MOVERS) else (0, 1):
            value = maker.input(index)
            if value.data is not None:
                inputs[index] = constant(f"{value.name}_whole", value.data.astype(np.int32), self.made(value))
                continue
            inputs[index] = self.insert(graph, ops.Cast(in_data_type=DType.FLOAT32.value,
                                                        out_data_type=DType.INT32.value), [value],
                                        f"{node.name}_of_{value.name}", maker, node)
            casts.append(inputs[index].producer)        # type: ignore[union-attr]
        if _activation(maker) is ops.Activation.RELU:
            plain = self.insert(graph, type(maker.op)(), inputs, f"{maker.name}_whole", node, maker)
            zero = constant(f"{maker.name}_zero", np.array(0, np.int32))
            swap(graph, node, ops.Maximum(), [plain, zero], self.made(maker, node))
        else:
            swap(graph, node, maker.op, inputs, self.made(maker, node))
        last = casts[-1]
        assert last is not None
        return last


def _activation(node: Node) -> ops.Activation:
    found = getattr(node.op, "fused_activation_function", ops.Activation.NONE)
    assert isinstance(found, ops.Activation)
    return found


def _is_whole(tensor: Tensor) -> bool:
    """True for a tensor of whole numbers that int32 holds, as far as its makers tell."""
    if tensor.data is not None:
        return bool((tensor.data == np.rint(tensor.data)).all() and (np.abs(tensor.data) <= LARGEST).all())
    maker = tensor.producer
    if maker is None:
        return False
    if isinstance(maker.op, MOVERS):
        return _is_whole(maker.input(0))
    if isinstance(maker.op, BY_WHOLE):
        return _is_whole(maker.input(0)) and _is_whole(maker.input(1))
    return isinstance(maker.op, ROUNDERS) or (isinstance(maker.op, ops.Cast) and not maker.input(0).dtype.is_float)


class Fraction(Pass):
    """What is left over from the whole number below, in one operator.

    Before:  %1 = FLOOR(%x);  %2 = SUB(%x, %1)
    After:   %2 = FLOOR_MOD(%x, 1)
    Exact. The difference of two rounded values would be off by both roundings.
    """

    name = "fraction"
    exactness = Exactness.ROUNDING
    kinds = (ops.Sub,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the difference."""
        floor = producer(node.input(1), ops.Floor)
        if floor is None or floor.input(0) is not node.input(0) or node.op != ops.Sub():
            return False
        one = constant(f"{node.name}_one", np.array(1.0, np.float32))
        swap(graph, node, ops.FloorMod(), [node.input(0), one], self.made(floor, node))
        return True
