"""Order, running totals and choices among constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.cost import sorting, times
from vitrify.importers.onnx.folds.registry import axis_at, folds
from vitrify.importers.onnx.source import Array, SourceNode


@folds("TopK", cost=sorting)
def _top_k(node: SourceNode, inputs: list[Any]) -> list[Array]:
    x: Array = inputs[0]
    axis = axis_at(node, x.ndim, -1)
    k = int(inputs[1].reshape(-1)[0]) if len(inputs) > 1 else node.integer("k")
    if not 0 <= k <= x.shape[axis]:
        raise node.problem(f"the {k} best of {x.shape[axis]}")
    if node.integer("largest", 1):  # the last of the reversed order, so that the first of equal values comes first
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    order = np.take(order, range(k), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int64)]


@folds("ArgMax", "ArgMin")
def _arg(node: SourceNode, inputs: list[Any]) -> Array:
    axis, x = axis_at(node, inputs[0].ndim), inputs[0]
    function = np.argmax if node.kind == "ArgMax" else np.argmin
    if node.integer("select_last_index"):
        result = x.shape[axis] - 1 - np.asarray(function(np.flip(x, axis), axis=axis), np.int64)
    else:
        result = np.asarray(function(x, axis=axis), np.int64)
    return np.expand_dims(result, axis) if node.integer("keepdims", 1) else result


def _running(function: Callable[..., Array], start: int) -> Callable[[SourceNode, list[Any]], Array]:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        x, axis = inputs[0], int(inputs[1].reshape(-1)[0])
        if not -x.ndim <= axis < x.ndim:
            raise node.problem(f"axis {axis} is outside a tensor of {x.ndim} dimensions")
        turned = np.flip(x, axis) if node.integer("reverse") else x
        result = function(turned, axis, dtype=x.dtype)
        if node.integer("exclusive"):
            first = np.full_like(np.take(result, range(min(1, result.shape[axis])), axis), start)
            result = np.concatenate([first, np.take(result, range(result.shape[axis] - 1), axis)], axis)
        return np.flip(result, axis) if node.integer("reverse") else result

    return run


folds("CumSum", cost=times(6))(_running(np.cumsum, 0))
folds("CumProd", cost=times(6))(_running(np.cumprod, 1))


@folds("Compress")
def _compress(node: SourceNode, inputs: list[Any]) -> Array:
    axis = axis_at(node, inputs[0].ndim) if "axis" in node.attributes else None
    return np.compress(inputs[1].ravel(), inputs[0], axis)


@folds("Unique", cost=sorting)
def _unique(node: SourceNode, inputs: list[Any]) -> list[Array]:
    axis = axis_at(node, inputs[0].ndim) if "axis" in node.attributes else None
    values, first, inverse, counts = np.unique(inputs[0], True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.integer("sorted", 1):
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order, kind="stable")[inverse]
    return [values, *(np.asarray(a, np.int64) for a in (first, inverse, counts))]
