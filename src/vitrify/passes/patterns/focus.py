"""Every second pixel taken in slices that are put together as channels: the stem of some detectors."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, producer, swap
from vitrify.passes.patterns.pixel_blocks import TO_FIRST, TO_LAST
from vitrify.passes.weights.scales import weights_of, with_weights

PARTS = 4
Place = tuple[int, int]


class Focus(Pass):
    """Recognise the four slices of a Focus stem; the convolution behind takes their order into its weights.

    Before:  %1 = STRIDED_SLICE(%x, from [0,0,0,0] by [1,1,2,2]);  ...  %5 = CONCATENATION(%1, %2, %3, %4, axis 1);
             %6 = CONV_2D(%5, w, b)
    After:   %5 = SPACE_TO_DEPTH(%x, 2);  %6 = CONV_2D(%5, w with its columns in the operator's order, b)
    """

    name = "focus"
    kinds = (ops.Concatenation,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the slices and the concatenation; an order that no convolution takes over is left as it is."""
        if len(node.inputs) != PARTS or len(node.output.shape) != 4 or node.output.dtype is not DType.FLOAT32:
            return False
        assert isinstance(node.op, ops.Concatenation)
        axis = node.op.axis % 4
        spatial = {1: (2, 3), 3: (1, 2)}.get(axis)
        found = [_picked(node.input(i), spatial) if spatial is not None else None for i in range(PARTS)]
        picked = [f for f in found if f is not None]
        if len(picked) < PARTS or len({id(x) for x, _ in picked}) > 1 or {p for _, p in picked} != {*_places()}:
            return False
        source = picked[0][0]
        if source.shape[axis] * PARTS != node.output.shape[axis]:
            return False
        order = [_places().index(place) for _, place in picked]
        if order != [0, 1, 2, 3] and not self._reorder(graph, node, order, axis == 1):
            return False
        self._replace(graph, node, source, axis == 1)
        return True

    def _replace(self, graph: Graph, node: Node, source: Tensor, first: bool) -> None:
        def turned(t: Tensor, perm: tuple[int, ...], name: str) -> list[Tensor | None]:
            return [t, constant(f"{node.name}_{name}", np.array(perm, np.int32))]

        parts = [t.producer for t in node.inputs if t is not None]
        if not first:
            swap(graph, node, ops.SpaceToDepth(block_size=2), [source], self.made(*parts, node))
            return
        last = self.insert(graph, ops.Transpose(), turned(source, TO_LAST, "last"), f"{node.name}_last", node, node)
        y = self.insert(graph, ops.SpaceToDepth(block_size=2), [last], f"{node.name}_blocks", node, *parts, node)
        swap(graph, node, ops.Transpose(), turned(y, TO_FIRST, "first"), self.made(*parts, node))

    def _reorder(self, graph: Graph, node: Node, order: list[int], first: bool) -> bool:
        """Put the columns of every reader's weights in the operator's order; False when some reader has none."""
        readers = [_convolution(user, first) for user in node.output.users]
        if node.output.is_output or not readers or any(r is None for r in readers):
            return False
        for reader in readers:
            found = weights_of(reader)
            assert found is not None
            assert reader is not None
            places, weights, bias = found
            blocks = weights.reshape(*weights.shape[:3], PARTS, weights.shape[3] // PARTS)
            wide = blocks[:, :, :, np.argsort(order)].reshape(weights.shape)
            swap(graph, reader, reader.op, with_weights(reader, places, wide, bias), self.made(reader))
        return True


def _places() -> list[Place]:
    """The places of a block's pixels in the order of SPACE_TO_DEPTH."""
    return [(0, 0), (0, 1), (1, 0), (1, 1)]


def _convolution(user: Node, first: bool) -> Node | None:
    """The convolution that reads a value, behind its own TRANSPOSE where channels stand second."""
    if first and isinstance(user.op, ops.Transpose):
        perm = user.input(1).data
        behind = user.output.users
        if perm is None or tuple(perm) != TO_LAST or len(behind) != 1 or user.output.is_output:
            return None
        user = behind[0]
    elif first:
        return None
    if isinstance(user.op, ops.Pad) and len(user.output.users) == 1 and not user.output.is_output:
        user = user.output.users[0]
    found = weights_of(user) if isinstance(user.op, ops.Conv2D) else None
    whole = found is not None and found[1].shape[3] == user.input(0).shape[3]      # a group sees only some of the parts
    return user if found is not None and whole and found[1].shape[3] % PARTS == 0 else None


def _picked(tensor: Tensor, spatial: Place | None) -> tuple[Tensor, Place] | None:
    """The (source, first row and column) of every second pixel, taken in one slice or in one for each axis."""
    steps, begins = [1, 1], [0, 0]
    while (maker := producer(tensor, ops.StridedSlice)) is not None and spatial is not None:
        found = _slice(maker)
        if found is None:
            break
        for axis, (begin, step) in enumerate(found):
            if axis in spatial:
                i = spatial.index(axis)
                begins[i], steps[i] = begin + step * begins[i], steps[i] * step
            elif (begin, step) != (0, 1) or maker.output.shape[axis] != maker.input(0).shape[axis]:
                return None
        tensor = maker.input(0)
        if steps == [2, 2]:
            break
    if spatial is None or steps != [2, 2] or any(tensor.shape[a] % 2 for a in spatial) or max(begins) > 1:
        return None
    return tensor, (begins[0], begins[1])


def _slice(node: Node) -> list[tuple[int, int]] | None:
    """The (begin, step) of each axis of a STRIDED_SLICE that takes all that follows; None for others."""
    assert isinstance(node.op, ops.StridedSlice)
    x = node.input(0)
    begins, strides = node.input(1).data, node.input(3).data
    masks = (node.op.shrink_axis_mask, node.op.new_axis_mask, node.op.ellipsis_mask)
    if begins is None or strides is None or any(masks) or len(begins) != len(x.shape) or (strides < 1).any():
        return None
    found = []
    for axis, (begin, step) in enumerate(zip(begins.tolist(), strides.tolist(), strict=True)):
        begin = 0 if node.op.begin_mask >> axis & 1 else begin
        if begin < 0 or node.output.shape[axis] != len(range(begin, x.shape[axis], step)):
            return None
        found.append((begin, step))
    return found
