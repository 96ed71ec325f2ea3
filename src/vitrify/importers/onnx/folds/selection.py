"""Taking elements, and putting them together."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.cost import broadcasting, times
from vitrify.importers.onnx.folds.registry import axis_at, folds
from vitrify.importers.onnx.reading.tensors import DTYPES
from vitrify.importers.onnx.rules import limit, padding, slices, split_sizes
from vitrify.importers.onnx.source import Array, SourceNode


@folds("Concat")
def _concat(node: SourceNode, inputs: list[Any]) -> Array:
    limit(node, [sum(i.size for i in inputs)])
    return np.concatenate(inputs, axis_at(node, inputs[0].ndim, 1))


@folds("Split")
def _split(node: SourceNode, inputs: list[Any]) -> list[Array]:
    axis = axis_at(node, inputs[0].ndim)
    sizes = split_sizes(
        node, inputs[0].shape[axis], inputs[1].tolist() if len(inputs) > 1 and inputs[1] is not None else None
    )
    return list(np.split(inputs[0], np.cumsum(sizes)[:-1], axis))


@folds("Slice")
def _slice(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0][tuple(slices(node, inputs[0].shape, inputs))]
    return array


@folds("Pad")
def _pad(node: SourceNode, inputs: list[Any]) -> Array:
    pads, value = padding(node, inputs, inputs[0].ndim)
    limit(node, [d + b + a for d, (b, a) in zip(inputs[0].shape, pads, strict=True)])
    mode = node.string("mode", "constant")
    if min(min(p) for p in pads) < 0:
        cut = tuple(slice(max(-b, 0), d - max(-a, 0)) for d, (b, a) in zip(inputs[0].shape, pads, strict=True))
        inputs[0] = inputs[0][cut]
        pads = [(max(b, 0), max(a, 0)) for b, a in pads]
    if mode == "constant":
        return np.pad(inputs[0], pads, constant_values=np.asarray(value, inputs[0].dtype).reshape(()))
    modes: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in modes:
        raise node.problem(f"mode '{mode}' is not one of constant, reflect, edge, wrap")
    return np.pad(inputs[0], pads, modes[mode])


@folds("Gather")
def _gather(node: SourceNode, inputs: list[Any]) -> Array:
    x, indices, axis = inputs[0], inputs[1], axis_at(node, inputs[0].ndim)
    limit(node, (*x.shape[: axis % x.ndim], *indices.shape, *x.shape[axis % x.ndim + 1 :]))
    return np.asarray(np.take(x, indices, axis))


@folds("GatherElements")
def _gather_elements(node: SourceNode, inputs: list[Any]) -> Array:
    return np.take_along_axis(inputs[0], inputs[1], axis_at(node, inputs[0].ndim))


@folds("GatherND")
def _gather_nd(node: SourceNode, inputs: list[Any]) -> Array:
    x, indices, batch = inputs[0], inputs[1], node.integer("batch_dims")
    if not 0 <= batch < indices.ndim or indices.shape[:batch] != x.shape[:batch]:
        raise node.problem(f"batch_dims {batch} for the shapes {list(x.shape)} and {list(indices.shape)}")
    limit(node, (*indices.shape[:-1], *x.shape[batch + indices.shape[-1] :]))
    grid = np.indices(indices.shape[:-1], sparse=True)[:batch]
    array: Array = x[(*grid, *np.moveaxis(indices, -1, 0))]
    return array


_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(node: SourceNode, x: Array, where: tuple[Array, ...], updates: Array) -> Array:
    result, name = x.copy(), node.string("reduction", "none")
    if name == "none":
        result[where] = updates
    elif name in _REDUCTIONS:
        _REDUCTIONS[name].at(result, where, updates)
    else:
        raise node.problem(f"reduction '{name}' is unknown")
    return result


@folds("ScatterND", cost=times(20))
def _scatter_nd(node: SourceNode, inputs: list[Any]) -> Array:
    return _scattered(node, inputs[0], tuple(np.moveaxis(inputs[1], -1, 0)), inputs[2])


@folds("Scatter", "ScatterElements", cost=times(20))
def _scatter_elements(node: SourceNode, inputs: list[Any]) -> Array:
    x, indices = inputs[0], inputs[1]
    where = list(np.indices(indices.shape, sparse=True))
    where[axis_at(node, x.ndim)] = indices
    return _scattered(node, x, tuple(where), inputs[2])


@folds("NonZero")
def _non_zero(node: SourceNode, inputs: list[Any]) -> Array:
    return np.array(np.nonzero(inputs[0]), np.int64)


@folds("Where", cost=broadcasting())
def _where(node: SourceNode, inputs: list[Any]) -> Array:
    limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
    return np.asarray(np.where(*inputs))


@folds("EyeLike")
def _eye(node: SourceNode, inputs: list[Any]) -> Array:
    rows, columns = inputs[0].shape
    return np.eye(rows, columns, node.integer("k"), dtype=DTYPES.get(node.integer("dtype"), inputs[0].dtype))


@folds("Trilu")
def _trilu(node: SourceNode, inputs: list[Any]) -> Array:
    k = int(inputs[1].reshape(-1)[0]) if len(inputs) > 1 and inputs[1] is not None else 0
    return np.triu(inputs[0], k) if node.integer("upper", 1) else np.tril(inputs[0], k)


@folds("Identity", "Dropout")
def _identity(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0]
    return array


@folds("OneHot")
def _one_hot(node: SourceNode, inputs: list[Any]) -> Array:
    depth = int(inputs[1].reshape(-1)[0])
    off, on = inputs[2]
    limit(node, [*inputs[0].shape, depth])
    places = np.where(inputs[0] < 0, inputs[0] + depth, inputs[0])
    hot = np.arange(depth) == places[..., None]
    return np.moveaxis(np.where(hot, on, off).astype(inputs[2].dtype), -1, node.integer("axis", -1))
