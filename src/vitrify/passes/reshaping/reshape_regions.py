"""Reshapes around whole stretches of a graph, which compute on the unreshaped tensors as well."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from vitrify import ops
from vitrify.ir import Node, Operator, Tensor
from vitrify.passes.graphs import RESHAPES, constant, is_dense
from vitrify.passes.layout.perms import Shape, groups
from vitrify.passes.layout.rules_axes import Reductions, axis_list
from vitrify.passes.layout.rules_elementwise import AlongLastAxis, Broadcasting, Unary

ELEMENTWISE = tuple(kind for kind in (*Unary.kinds, *Broadcasting.kinds) if kind is not ops.Prelu)
REDUCTIONS = tuple(kind for kind in Reductions.kinds if kind not in (ops.ArgMax, ops.ArgMin))
MOST_AXES = 4


@dataclass(frozen=True)
class Joining:
    """A reshape that joins axes, or adds and drops those of extent 1: which axes of ``whole`` each axis was made of."""

    whole: Shape
    axes: tuple[tuple[int, ...], ...]

    def before(self, shape: Shape) -> Shape | None:
        """The unreshaped form of any shape beside the reshaped one: all of an axis, or extent 1, or one axis's own."""
        if len(shape) != len(self.axes):
            return None
        result = [1] * len(self.whole)
        for extent, made_of in zip(shape, self.axes, strict=True):
            if extent == prod(self.whole[a] for a in made_of):
                for axis in made_of:
                    result[axis] = self.whole[axis]
            elif len(made_of) == 1:
                result[made_of[0]] = extent
            elif extent != 1:
                return None
        return tuple(result)

    def keeps_last(self) -> bool:
        """True when the last axis is one axis, and the last, on both sides."""
        return bool(self.axes) and self.axes[-1] == (len(self.whole) - 1,)


def joining(node: Node) -> Joining | None:
    """What a reshape joins; None when it splits axes."""
    whole, shape = node.input(0).shape, node.output.shape
    runs = groups(whole, shape)
    if runs is None or len(whole) > MOST_AXES or whole == shape or any(len(right) != 1 for _, right in runs):
        return None
    made_of: list[tuple[int, ...]] = [()] * len(shape)
    for left, right in runs:
        made_of[right[0]] = tuple(left)
    return Joining(whole, tuple(made_of))


@dataclass
class Stretch:
    """The nodes that can work on unreshaped tensors, and those tensors' shapes."""

    join: Joining
    shapes: dict[Tensor, Shape] = field(default_factory=dict)
    nodes: set[Node] = field(default_factory=set)

    def gain(self) -> int:
        """How many reshapes fewer there are when the stretch changes."""
        gained = 0
        for tensor, shape in self.shapes.items():
            outside = [user for user in tensor.users if user not in self.nodes]
            if tensor.producer not in self.nodes:
                known = source_of(tensor, shape) is not None
                gained += known and not outside and not tensor.is_output
                gained -= not known
                continue
            gained += sum(isinstance(user.op, RESHAPES) and user.output.shape == shape for user in outside)
            gained -= tensor.is_output or any(not isinstance(user.op, RESHAPES) for user in outside)
        return gained


def source_of(tensor: Tensor, shape: Shape) -> Tensor | None:
    """What ``tensor`` is a reshape of, when that has ``shape``."""
    maker = tensor.producer
    if maker is None or not isinstance(maker.op, RESHAPES) or maker.input(0).shape != shape:
        return None
    return maker.input(0)


def stretch(seed: Tensor, join: Joining, most_nodes: int) -> Stretch | None:
    """Follow the reshaped tensors from ``seed``; None when there are too many."""
    found = Stretch(join, {seed: join.whole})
    waiting = [seed]
    while waiting:
        tensor = waiting.pop()
        if tensor.quantization is not None or tensor.is_variable:
            return None
        for node in (*([tensor.producer] if tensor.producer is not None else []), *tensor.users):
            if node in found.nodes or not _works(node, join):
                continue
            found.nodes.add(node)
            for other in (*node.inputs, *node.outputs):
                if other is not None and not other.is_constant and other not in found.shapes:
                    shape = join.before(other.shape)
                    assert shape is not None
                    found.shapes[other] = shape
                    waiting.append(other)
        if len(found.nodes) > most_nodes:
            return None
    return found


def _works(node: Node, join: Joining) -> bool:
    """True when the node can work on unreshaped tensors."""
    op = node.op
    moving = (*node.inputs[:1], *node.outputs)
    if isinstance(op, ELEMENTWISE):
        moving = (*node.inputs, *node.outputs)
    elif isinstance(op, ops.FullyConnected):
        first, weights = node.input(0), node.input(1)
        fits = join.keeps_last() and weights.is_constant and first.shape[-1:] == weights.shape[-1:]
        if not fits or not (op.keep_num_dims or len(first.shape) == len(node.output.shape)):
            return False
    elif isinstance(op, REDUCTIONS):
        if not getattr(op, "keep_dims", False) or not _axes(node, join):
            return False
    elif not isinstance(op, AlongLastAxis.kinds) or not join.keeps_last():
        return False
    return all(t is not None and _fits(t, join) for t in moving)


def _fits(tensor: Tensor, join: Joining) -> bool:
    if not tensor.is_constant:
        return join.before(tensor.shape) is not None
    shape = (1,) * (len(join.axes) - len(tensor.shape)) + tensor.shape
    return is_dense(tensor) and tensor.quantization is None and join.before(shape) is not None


def _axes(node: Node, join: Joining) -> list[int]:
    """The unreshaped axes that a reduction goes over; empty when they are not known."""
    axes = axis_list(node.optional(1), len(join.axes))
    return sorted(a for axis in axes for a in join.axes[axis]) if axes is not None else []


def unreshaped(node: Node, join: Joining, inputs: list[Tensor | None]) -> tuple[Operator, list[Tensor | None]]:
    """The operator and inputs on unreshaped tensors; ``inputs`` are so already but for constants."""
    op = node.op
    if isinstance(op, ops.FullyConnected):
        return replace(op, keep_num_dims=len(join.whole) != 2), inputs
    if isinstance(op, REDUCTIONS):
        axes = np.array(_axes(node, join), np.int32)
        return op, [inputs[0], constant(node.input(1).name, axes)]
    if isinstance(op, ELEMENTWISE):
        inputs = [t if t is None or t.data is None or t.shape == () else _constant(t, join) for t in inputs]
    return op, inputs


def _constant(tensor: Tensor, join: Joining) -> Tensor:
    shape = join.before((1,) * (len(join.axes) - len(tensor.shape)) + tensor.shape)
    assert shape is not None
    assert tensor.data is not None
    trimmed = shape[next((i for i, n in enumerate(shape) if n != 1), len(shape)):]
    return constant(tensor.name, tensor.data.reshape(trimmed), tensor.origin)
