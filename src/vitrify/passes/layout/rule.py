"""What a layout rule is: how one operator spreads a permutation, and what it becomes on permuted tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Origin, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.layout.perms import Perm, Shape


class Layouts(NamedTuple):
    """The permutation of each input and output of a node; None leaves an input to the rule's rewrite."""

    inputs: tuple[Perm | None, ...]
    outputs: tuple[Perm, ...]


class Anchor(NamedTuple):
    """The tensor from which a node is reached: its place among inputs or outputs, and its permutation."""

    is_output: bool
    place: int
    perm: Perm


class Editor(NamedTuple):
    """What a rule may do besides giving operator and inputs: new constants and reshapes before the node."""

    graph: Graph
    node: Node
    origin: Origin

    def constant(self, like: Tensor, data: Array) -> Tensor:
        """Make a constant that stands for ``like`` with other data."""
        return Tensor(like.name, like.dtype, data.shape, data=data, quantization=like.quantization,
                      origin=like.origin)

    def integers(self, like: Tensor, values: Sequence[int] | Array) -> Tensor:
        """Make a constant of ``like``'s integer type and the given values."""
        assert like.data is not None
        return self.constant(like, np.asarray(values, like.data.dtype))

    def reshape(self, tensor: Tensor, shape: Shape) -> Tensor:
        """Reshape ``tensor`` before the node; a constant is reshaped at once."""
        if tensor.data is not None:
            return self.constant(tensor, tensor.data.reshape(shape))
        return reshape_node(self.graph, tensor, shape, self.origin, before=self.node).output


Spread = Callable[[Node, Anchor], "Layouts | None"]
Rewrite = Callable[[Node, Layouts, list[Tensor | None], Editor], tuple[Operator, Sequence[Tensor | None]]]


class LayoutRule:
    """The rule of the operators in ``kinds``; a subclass per family."""

    kinds: ClassVar[tuple[type[Operator], ...]] = ()

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Give the permutations of all tensors from that of one; None when the node cannot take it."""
        raise NotImplementedError

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None],
                editor: Editor) -> tuple[Operator, Sequence[Tensor | None]]:
        """Give operator and inputs on permuted tensors; ``inputs`` are permuted already where the layouts say so."""
        return node.op, inputs


RULES: dict[type[Operator], LayoutRule] = {}
"""The rule of every operator that can work on permuted tensors; filled by ``@rule`` alone."""


def rule(cls: type[LayoutRule]) -> type[LayoutRule]:
    """Register a rule for its ``kinds``."""
    for kind in cls.kinds:
        if kind in RULES:
            raise TypeError(f"{kind.name} has two layout rules: {type(RULES[kind]).__name__} and {cls.__name__}")
        RULES[kind] = cls()
    return cls


def reshape_node(graph: Graph, tensor: Tensor, shape: Shape, origin: Origin, before: Node) -> Node:
    """Add a RESHAPE of ``tensor`` before a node."""
    sizes = np.array(shape, np.int32)
    target = Tensor(f"{tensor.name}_shape", DType.INT32, sizes.shape, data=sizes)
    result = Tensor(f"{tensor.name}_reshaped", tensor.dtype, shape, quantization=tensor.quantization, origin=origin)
    return graph.add(ops.Reshape(new_shape=tuple(shape)), [tensor, target], [result], origin=origin, before=before)
