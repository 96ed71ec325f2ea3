"""Where an axis that a node treats as a batch stands in each of its tensors, and the node without that axis."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import Node, Operator, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.graphs import RESHAPES, constant
from vitrify.passes.layout.perms import Perm, Shape, drop, groups
from vitrify.passes.layout.region import permutation
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.layout.rules_elementwise import Broadcasting, Unary


class Lane(NamedTuple):
    """The axis in each input and output; None for an input that all indices of the axis share."""

    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]


ALIGNED = (*(kind for kind in Broadcasting.kinds if kind is not ops.Prelu), ops.BatchMatMul)
"""Operators whose inputs broadcast, aligned at the last axis."""


def lane(node: Node, is_output: bool, place: int, axis: int) -> Lane | None:
    """Follow ``axis`` of one tensor through ``node``; None when the node does more than repeat itself along it."""
    op, first = node.op, node.inputs[0]
    if isinstance(op, ops.Transpose):
        return _turned(node, is_output, axis)
    if isinstance(op, RESHAPES):
        return _kept(node, is_output, axis)
    if isinstance(op, Unary.kinds):
        return Lane((axis,), (axis,))
    if isinstance(op, ALIGNED):
        return _aligned(node, axis if is_output else axis + len(node.output.shape) - len(node.input(place).shape))
    if isinstance(op, ops.Softmax | ops.LogSoftmax) and first is not None:
        return Lane((axis,), (axis,)) if axis != len(first.shape) - 1 else None
    if isinstance(op, ops.Concatenation):
        same = op.axis % len(node.output.shape) == axis
        return None if same else Lane((axis,) * len(node.inputs), (axis,))
    if isinstance(op, ops.Split | ops.SplitV):
        data, named = (1, 0) if isinstance(op, ops.Split) else (0, 2)
        along = axis_list(node.inputs[named], len(node.output.shape))
        inputs = [None] * len(node.inputs)
        return None if along is None or along == [axis] else Lane(
            tuple(axis if i == data else None for i in range(len(inputs))), (axis,) * len(node.outputs))
    return None


def _turned(node: Node, is_output: bool, axis: int) -> Lane | None:
    perm = permutation(node)
    if perm is None:
        return None
    return Lane((perm[axis], None), (axis,)) if is_output else Lane((axis, None), (perm.index(axis),))


def _kept(node: Node, is_output: bool, axis: int) -> Lane | None:
    """Through a reshape that leaves the axis as it is."""
    runs = groups(node.input(0).shape, node.output.shape) or []
    others = (None,) * (len(node.inputs) - 1)
    for left, right in runs:
        if (right if is_output else left) == [axis] and len(left) == len(right) == 1:
            return Lane((left[0], *others), (right[0],))
    return None


def _aligned(node: Node, axis: int) -> Lane | None:
    rank, extent = len(node.output.shape), node.output.shape[axis]
    if isinstance(node.op, ops.BatchMatMul) and axis >= rank - 2:
        return None
    inputs: list[int | None] = []
    for tensor in node.inputs:
        if tensor is None:
            return None
        place = len(tensor.shape) - (rank - axis)
        inputs.append(place if place >= 0 and tensor.shape[place] == extent else None)
    return Lane(tuple(inputs), (axis,))


def single(node: Node, found: Lane, head: int, inputs: list[Tensor]) -> tuple[Operator, list[Tensor]]:
    """The operator and inputs of one head; ``inputs`` have lost the axis already where the lane names it."""
    op, axis = node.op, found.outputs[0]
    if isinstance(op, ops.Transpose):
        assert found.inputs[0] is not None
        perm = drop(permutation(node) or (), [found.inputs[0]])
        return op, [inputs[0], integers(perm)]
    if isinstance(op, RESHAPES):
        shape = without(node.output.shape, axis)
        return ops.Reshape(new_shape=shape), [inputs[0], integers(shape)]
    if isinstance(op, ops.Concatenation):
        along = op.axis % len(node.output.shape)
        return replace(op, axis=along - (along > axis)), inputs
    if isinstance(op, ops.Split | ops.SplitV):
        named = 0 if isinstance(op, ops.Split) else 2
        along = (axis_list(inputs[named], len(node.output.shape)) or [0])[0]
        inputs[named] = constant(inputs[named].name, np.array(along - (along > axis), np.int32))
    return op, inputs


def shared_shape(node: Node, found: Lane, place: int) -> Shape | None:
    """The shape that an operand which all heads share needs in one head; None when it stays as it is."""
    if not isinstance(node.op, ALIGNED):
        return None
    tensor = node.input(place)
    axis = len(tensor.shape) - (len(node.output.shape) - found.outputs[0])
    return without(tensor.shape, axis) if axis >= 0 else None


def without(shape: Shape, axis: int) -> Shape:
    """The shape with one axis left out."""
    return (*shape[:axis], *shape[axis + 1:])


def integers(values: Perm | Shape) -> Tensor:
    """A constant of int32."""
    data: Array = np.array(values, np.int32)
    return constant("", data)
