"""Taking elements, and putting them together."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.registry import axis_at, folds
from vitrify.importers.onnx.rules import limit, padding, slices, split_sizes
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.importers.onnx.tensors import DTYPES


@folds("Concat")
def _concat(node: SourceNode, inputs: list[Any]) -> Array:
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
    return np.asarray(np.take(inputs[0], inputs[1], axis_at(node, inputs[0].ndim)))


@folds("GatherElements")
def _gather_elements(node: SourceNode, inputs: list[Any]) -> Array:
    return np.take_along_axis(inputs[0], inputs[1], axis_at(node, inputs[0].ndim))


@folds("GatherND")
def _gather_nd(node: SourceNode, inputs: list[Any]) -> Array:
    if node.integer("batch_dims"):
        raise node.unsupported("batch_dims other than 0 on constants")
    array: Array = inputs[0][tuple(np.moveaxis(inputs[1], -1, 0))]
    return array


@folds("ScatterND")
def _scatter_nd(node: SourceNode, inputs: list[Any]) -> Array:
    if node.string("reduction", "none") != "none":
        raise node.unsupported("a reduction on constants")
    result: Array = inputs[0].copy()
    result[tuple(np.moveaxis(inputs[1], -1, 0))] = inputs[2]
    return result


@folds("NonZero")
def _non_zero(node: SourceNode, inputs: list[Any]) -> Array:
    return np.array(np.nonzero(inputs[0]), np.int64)


@folds("Where")
def _where(node: SourceNode, inputs: list[Any]) -> Array:
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
    hot = np.arange(depth) == np.asarray(inputs[0] % depth)[..., None]
    return np.moveaxis(np.where(hot, on, off).astype(inputs[2].dtype), -1, node.integer("axis", -1))
