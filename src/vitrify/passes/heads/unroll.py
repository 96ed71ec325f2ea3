"""The pass: copies the region of an attention once per head."""

from __future__ import annotations

from math import prod

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Operator, Origin, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, is_dense, sweep
from vitrify.passes.heads.lanes import integers, shared_shape, single, without
from vitrify.passes.heads.region import Pick, Region, trace
from vitrify.passes.layout.perms import is_identity
from vitrify.passes.reshaping.reshapes import reshape_to

MOST_HEADS = 8
"""More heads than this cost more operators than their TRANSPOSEs do.

Vela 5.2's estimate for an i.MX93 of one attention, as a batch with TRANSPOSEs and head by head, with DRAM traffic:
49 tokens in 16 windows, 3 heads of 32: 8.3 ms 41 MB, 7.8 ms 24 MB; 197 tokens, 3 heads of 64: 12.8 ms 67 MB,
13.1 ms 34 MB; 256 tokens, 8 heads of 32: 32.5 ms 197 MB, 45.9 ms 100 MB; 128 tokens, 12 heads of 32: 12.7 ms 64 MB,
18.4 ms 31 MB. The products of one head of 32 without windows keep its units less busy.
"""


class UnrollHeads(Pass):
    """Compute attention head by head on slices of the channels, so that heads need not become a batch.

    Before:  %1 = RESHAPE(%x, [1,N,H,D]);  %2 = TRANSPOSE(%1, [0,2,1,3]);  ...  %8 = BATCH_MATMUL(%7, %2)
             %9 = TRANSPOSE(%8, [0,2,1,3]);  %10 = RESHAPE(%9, [1,N,H*D])
    After:   %1, %2 = SPLIT(%x, H);  ...  %8 = BATCH_MATMUL(%7, %1);  ...  %10 = CONCATENATION(%8, %9)
    The scores of one head at a time need a part of the memory.
    """

    name = "unroll-heads"
    kinds = (ops.BatchMatMul,)

    def run(self, graph: Graph) -> int:
        """Unroll around each product; the order of nodes is restored once, at the end."""
        position = {node: i for i, node in enumerate(graph)}
        changed = 0
        for node in graph.nodes_of(*self.kinds):
            region = self._region(node) if node.graph is graph else None
            if region is None:
                continue
            self.touch(str(node.origin) if node.origin.sources else "")
            _Unrolling(self, graph, region, position).run()
            changed += 1
        if changed:
            graph.sort()
        return changed

    @staticmethod
    def _region(node: Node) -> Region | None:
        """What to unroll around a product, along the first batch axis that works."""
        shape = node.output.shape
        for axis in range(len(shape) - 2):
            region = trace(node.output, axis) if 2 <= shape[axis] <= MOST_HEADS else None
            if region is not None and region.saves():
                return region
        return None


class _Unrolling:
    """One region being copied. ``parts`` holds a reshape's output taken apart, ``found`` what stands for a head."""

    def __init__(self, owner: Pass, graph: Graph, region: Region, position: dict[Node, int]) -> None:
        self.owner, self.graph, self.region, self.position = owner, graph, region, position
        makers = [t.producer for t in region.axes if t.producer is not None]
        self.order = sorted(region.nodes, key=position.__getitem__)
        self.last = max([*makers, *region.nodes, *region.ends], key=position.__getitem__)
        self.parts: dict[Tensor, tuple[Tensor, ...]] = {}
        self.found: dict[tuple[Tensor, int], Tensor] = {}
        self.shared: dict[tuple[Tensor, tuple[int, ...]], Tensor] = {}

    def run(self) -> None:
        """Copy, join, and drop what is unused."""
        for head in range(self.region.heads):
            for node in self.order:
                self._copy(node, head)
        joined = {end: self._joined(tensor) for end, tensor in self.region.ends.items()}
        for end, whole in joined.items():
            op, shape = reshape_to(end)
            made = self.graph.replace_node(end, op, [whole, shape], origin=self.owner.made(end))
            self.position[made] = self.position[end]        # another region may start there
        sweep(self.graph, *reversed(self.region.axes), *(pick.picker.output for pick in self.region.picks.values()))

    def _add(self, op: Operator, inputs: list[Tensor], like: Tensor, origin: Origin) -> tuple[Tensor, ...]:
        made = self.graph.add(op, inputs, name=like.name, origin=origin, before=self.last)
        for result in made.outputs:
            result.origin = Origin()
        return made.outputs

    def _copy(self, node: Node, head: int) -> None:
        found = self.region.nodes[node]
        inputs: list[Tensor] = []
        for place, axis in enumerate(found.inputs):
            tensor = node.input(place)
            if axis is not None:
                inputs.append(self._of_head(tensor, axis, head))
            else:
                shape = shared_shape(node, found, place)
                inputs.append(tensor if shape is None else self._reshaped(tensor, shape, node))
        op, inputs = single(node, found, head, inputs)
        outputs = self._add(op, inputs, node.output, node.origin.by(self.owner.name))
        for tensor, made in zip(node.outputs, outputs, strict=True):
            self.found[tensor, head] = made

    def _of_head(self, tensor: Tensor, axis: int, head: int) -> Tensor:
        """What one head has of ``tensor``, without the axis of heads."""
        if tensor.data is not None:
            assert is_dense(tensor)
            return constant(tensor.name, tensor.data.take(head, axis), tensor.origin)
        known = self.found.get((tensor, head))
        if known is not None:
            return known
        pick = self.region.picks.get(tensor)
        made = self._split(tensor, (axis,))[head] if pick is None else self._picked(pick, head, tensor)
        self.found[tensor, head] = self._shaped(made, without(tensor.shape, axis), tensor)
        return self.found[tensor, head]

    def _picked(self, pick: Pick, head: int, tensor: Tensor) -> Tensor:
        stack, heads = pick.whole.shape[pick.stack], pick.whole.shape[pick.heads]
        index = pick.item * heads + head if pick.stack < pick.heads else head * stack + pick.item
        part = self._split(pick.whole, (pick.stack, pick.heads))[index]
        if is_identity(pick.perm):
            return part
        return self._add(ops.Transpose(), [part, integers(pick.perm)], tensor, self._origin(tensor))[0]

    def _split(self, tensor: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Take neighbouring axes apart: joined with the axis behind them, and split in one go."""
        if tensor not in self.parts:
            first, count = min(axes), len(axes) + 1
            shape, extents = tensor.shape, tensor.shape[first:first + count]
            joined = prod(extents)
            maker = tensor.producer
            assert maker is not None
            whole = self._shaped(maker.input(0), (*shape[:first], joined, *shape[first + count:]), tensor)
            axis = constant(f"{tensor.name}_axis", np.array(first, np.int32))
            op = ops.Split(num_splits=joined // extents[-1])
            self.parts[tensor] = self._add(op, [axis, whole], tensor, self._origin(tensor))
        return self.parts[tensor]

    def _shaped(self, tensor: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
        if tensor.shape == shape:
            return tensor
        return self._add(ops.Reshape(new_shape=shape), [tensor, integers(shape)], like, self._origin(like))[0]

    def _reshaped(self, tensor: Tensor, shape: tuple[int, ...], node: Node) -> Tensor:
        """An operand that all heads share, without the axis that it does not have."""
        key = (tensor, shape)
        if key not in self.shared:
            self.shared[key] = (self._shaped(tensor, shape, tensor) if tensor.data is None
                                else constant(tensor.name, tensor.data.reshape(shape), tensor.origin))
        return self.shared[key]

    def _joined(self, tensor: Tensor) -> Tensor:
        """The heads side by side along the axis behind theirs; the same for all reshapes that read it."""
        axis = self.region.axes[tensor]
        if (tensor, ()) not in self.shared:
            parts = [self._of_head(tensor, axis, head) for head in range(self.region.heads)]
            self.shared[tensor, ()] = self._add(ops.Concatenation(axis=axis), parts, tensor, self._origin(tensor))[0]
        return self.shared[tensor, ()]

    def _origin(self, tensor: Tensor) -> Origin:
        return self.owner.made(tensor.producer)
