"""Where a fix works: one node, and the small edits that fixes of integer graphs share.

Design rule: what a fix builds stands before the old node, which stays until the new nodes are found good.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Quantization, Tensor
from vitrify.ir.graph import Array
from vitrify.ir.origin import join

MOST_PARTS = 128
"""Into how many parts a fix takes one node at most: each is an operation of the NPU with a cost of its own."""

Shape = Sequence[int]


class TooManyPartsError(Exception):
    """A fix would make more than ``MOST_PARTS`` parts; its place is left as it was."""


class Place:
    """One node with its graph, the limits of the target, and the nodes that were made for it so far."""

    def __init__(self, graph: Graph, node: Node, fix: str, limits: Mapping[str, int] | None = None) -> None:
        self.graph = graph
        self.node = node
        self.fix = fix
        self.limits = dict(limits or {})
        self.made: list[Node] = []
        self.declined = ""

    @property
    def x(self) -> Tensor:
        """The node's first input."""
        return self.node.input(0)

    @property
    def output(self) -> Tensor:
        """The node's first output."""
        return self.node.output

    @property
    def is_static(self) -> bool:
        """True when all shapes are known and nothing is empty."""
        tensors = [t for t in (*self.node.inputs, *self.node.outputs) if t is not None]
        return all(t.size > 0 and all(extent > 0 for extent in t.shape) for t in tensors if t.shape)

    def decline(self, why: str) -> None:
        """Say why the fix leaves this node as it is, where that is worth telling."""
        self.declined = why

    def ints(self, index: int) -> tuple[int, ...] | None:
        """The values of a constant input, None where it is computed or left out."""
        tensor = self.node.optional(index)
        if tensor is None or tensor.data is None:
            return None
        return tuple(int(value) for value in np.asarray(tensor.data).reshape(-1))

    def count(self, parts: int) -> int:
        """Return ``parts`` when that many are allowed.

        Raises:
            TooManyPartsError: they are not.
        """
        if parts > MOST_PARTS:
            raise TooManyPartsError(f"{parts} parts")
        return parts

    def add(self, op: Operator, inputs: Sequence[Tensor | None], like: Tensor | None = None, *,
            dtype: DType | None = None) -> Tensor:
        """Add a node before the old one; its result has type and scale of ``like``, by default the first input."""
        return self.add_many(op, inputs, like, dtype=dtype)[0]

    def add_many(self, op: Operator, inputs: Sequence[Tensor | None], like: Tensor | None = None, *,
                 dtype: DType | None = None) -> tuple[Tensor, ...]:
        """Add a node with several outputs before the old one (see ``add``)."""
        name = f"{self.node.name}/{self.fix}"
        node = self.graph.add(op, inputs, name=f"{name}_{len(self.made)}" if self.made else name, before=self.node,
                              origin=join([self.node.origin], by=self.fix))
        model = like if like is not None else next(t for t in inputs if t is not None)
        for result in node.outputs:
            result.dtype = dtype or model.dtype
            result.quantization = model.quantization
        self.made.append(node)
        return node.outputs

    def constant(self, data: Array | Sequence[int], quantization: Quantization | None = None, what: str = "constant",
                 dtype: DType | None = None) -> Tensor:
        """Make a constant; whole numbers given as a list are int32."""
        values = np.asarray(data, np.int32) if not isinstance(data, np.ndarray) else data
        return Tensor(f"{self.node.name}/{self.fix}_{what}", dtype or DType.of(values.dtype), values.shape, data=values,
                      quantization=quantization, origin=join([self.node.origin], by=self.fix))

    def reshape(self, x: Tensor, shape: Shape) -> Tensor:
        """The same values in another shape."""
        shape = tuple(map(int, shape))
        if shape == x.shape:
            return x
        if math.prod(shape) != x.size:
            raise ValueError(f"{x} does not fit {list(shape)}")
        return self.add(ops.Reshape(new_shape=shape), [x, self.constant(shape, what="shape")])

    def transpose(self, x: Tensor, perm: Shape) -> Tensor:
        """Axes in another order."""
        perm = tuple(map(int, perm))
        if perm == tuple(range(len(perm))):
            return x
        return self.add(ops.Transpose(), [x, self.constant(perm, what="permutation")])

    def slice(self, x: Tensor, begin: Shape, size: Shape) -> Tensor:
        """A box of ``x``."""
        begin, size = tuple(map(int, begin)), tuple(map(int, size))
        if size == x.shape:
            return x
        return self.add(ops.Slice(), [x, self.constant(begin, what="begin"), self.constant(size, what="size")])

    def cut(self, x: Tensor, axis: int, begin: int, size: int) -> Tensor:
        """``size`` elements of one axis, from ``begin`` on."""
        begins, sizes = [0] * len(x.shape), list(x.shape)
        begins[axis], sizes[axis] = begin, size
        return self.slice(x, begins, sizes)

    def steps(self, x: Tensor, begin: Shape, end: Shape, strides: Shape) -> Tensor:
        """A box of which only every n-th element is taken."""
        if all(s == 1 for s in strides):
            return self.slice(x, begin, [e - b for b, e in zip(begin, end, strict=True)])
        return self.add(ops.StridedSlice(), [x, *(self.constant(list(values), what=what) for values, what in (
            (begin, "begin"), (end, "end"), (strides, "steps")))])

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Parts of one scale, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return self.add(ops.Concatenation(axis=axis), list(parts))

    def pad(self, x: Tensor, amounts: Sequence[tuple[int, int]]) -> Tensor:
        """Zeros around ``x``, which in integers are its zero point."""
        if not any(map(any, amounts)):
            return x
        return self.add(ops.Pad(), [x, self.constant(np.array(amounts, np.int32), what="padding")])

    def finish(self, results: Tensor | Sequence[Tensor]) -> None:
        """Let ``results`` stand for the node's outputs, and remove it: names, scales and users of its outputs stay."""
        given = [results] if isinstance(results, Tensor) else list(results)
        graph, node = self.graph, self.node
        last = given[0].producer
        if len(given) == 1 and last is not None and last in self.made and len(last.outputs) == 1:
            op, inputs, origin = last.op, last.inputs, last.origin
            old = node.inputs
            graph.remove(last)
            new = graph.replace_node(node, op, inputs, origin=origin)
            self.made[self.made.index(last)] = new
            self._sweep(old)
            return
        for old_tensor, new_tensor in zip(node.outputs, given, strict=True):
            graph.replace_uses(old_tensor, new_tensor)
        old = node.inputs
        graph.remove(node)
        self._sweep(old)

    def undo(self) -> None:
        """Remove what was made for the node, which stays as it was."""
        for node in reversed(self.made):
            self.graph.remove(node)
        self.made.clear()

    def _sweep(self, tensors: Sequence[Tensor | None]) -> None:
        from vitrify.passes.graphs import sweep

        sweep(self.graph, *(t for t in tensors if t is not None and t.producer not in self.made))
