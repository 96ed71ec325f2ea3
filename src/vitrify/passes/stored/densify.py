"""Sparse constants, of which a file stores the values that are not zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass

DENSE = 0
FREE_GROWTH, GROWTH = 1 << 16, 64
"""A dense constant may always have this many elements, or this many times the stored ones: weights are 98 % sparse at
most."""


class DenseConstants(Pass):
    """Put the dense values in the place of DENSIFY of a sparse constant.

    Before:  %1 = DENSIFY(w)       w: 77 stored values of float16[8,1,1,32]
    After:   %1 = w'               w': float16[8,1,1,32]
    """

    name = "dense-constants"
    kinds = (ops.Densify,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace one constant."""
        source, made = node.input(0), node.output
        if made.is_output or made.shape != source.shape:
            return False
        values = dense_values(source)
        if values is None:
            return False
        graph.replace_uses(made, Tensor(made.name, source.dtype, source.shape, data=values,
                                        quantization=source.quantization, origin=made.origin.by(self.name)))
        graph.remove(node)
        return True


def dense_values(tensor: Tensor) -> Array | None:
    """Return all values of a sparse constant, None when it is no such constant, is damaged, or would grow too much.

    The stored values stand in the order of a tree: one level for each dimension, then one for each block, as
    ``traversal_order`` says. A dense level has every child, a sparse one those that its segments and indices name.
    Source: TFLite schema.fbs, SparsityParameters.
    """
    sparsity = tensor.extras.get("sparsity")
    if sparsity is None or tensor.data is None or tensor.dtype.numpy is None:
        return None
    size = math.prod(tensor.shape)
    if size > max(FREE_GROWTH, GROWTH * tensor.data.size):
        return None
    try:
        places = _places(sparsity, tensor.shape, tensor.data.size)
    except (AttributeError, IndexError, TypeError, ValueError):
        return None                     # a damaged description; LiteRT says so when it loads the file
    values = np.zeros(tensor.shape, tensor.dtype.numpy)
    values[tuple(places)] = tensor.data
    return values


def _places(sparsity: Any, shape: tuple[int, ...], count: int) -> list[Array]:
    """The index of each stored value, a row for each dimension.

    Raises:
        ValueError, IndexError: the description does not fit the shape or the number of values.
    """
    order = sparsity.traversal_order.tolist()
    blocks = [] if sparsity.block_map is None else sparsity.block_map.tolist()
    rank, limit = len(shape), max(math.prod(shape), 1)
    if sorted(order) != list(range(rank + len(blocks))) or len(sparsity.dim_metadata) != len(order):
        raise ValueError("levels do not fit the shape")
    reached = np.zeros((len(order), 1), np.int64)
    for level, (position, entry) in enumerate(zip(order, sparsity.dim_metadata, strict=True)):
        parents = reached.shape[1]
        if entry.format == DENSE:
            counts = np.full(parents, entry.dense_size, np.int64)
            if parents * entry.dense_size > limit:
                raise ValueError("more places than the shape has")
            children = np.tile(np.arange(entry.dense_size), parents)
        else:
            segments = entry.array_segments.values.astype(np.int64)
            children = entry.array_indices.values.astype(np.int64)
            counts = np.diff(segments)
            if len(counts) != parents or segments[0] != 0 or counts.min(initial=0) < 0 or counts.sum() != len(children):
                raise ValueError(f"segments of level {level} do not fit")
        reached = np.repeat(reached, counts, axis=1)
        reached[position] = children
    if reached.shape[1] != count:
        raise ValueError("the number of values does not fit")
    extents = {order[level]: entry.dense_size for level, entry in enumerate(sparsity.dim_metadata)}
    places = list(reached[:rank])
    for number, dimension in enumerate(blocks):
        places[dimension] = places[dimension] * extents[rank + number] + reached[rank + number]
    if any(place.size and not 0 <= place.min() <= place.max() < extent
           for place, extent in zip(places, shape, strict=True)):
        raise IndexError("a place outside the shape")
    return places
