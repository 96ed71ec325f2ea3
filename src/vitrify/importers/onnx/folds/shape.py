"""Shapes, and operators that change only shape or element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.registry import axes_given, folds
from vitrify.importers.onnx.reading.tensors import BFLOAT16, DTYPES
from vitrify.importers.onnx.rules import limit, target_shape
from vitrify.importers.onnx.source import Array, SourceNode


@folds("Shape")
def _shape(node: SourceNode, inputs: list[Any]) -> Array:
    shape = np.array(inputs[0].shape, np.int64)
    end = node.attributes.get("end")
    return shape[node.integer("start") : None if end is None else node.integer("end")]


@folds("Size")
def _size(node: SourceNode, inputs: list[Any]) -> Array:
    return np.array(np.prod(inputs[0].shape, dtype=np.int64), np.int64)


@folds("ConstantOfShape")
def _constant_of_shape(node: SourceNode, inputs: list[Any]) -> Array:
    value = node.attributes.get("value", np.zeros(1, np.float32))
    return np.broadcast_to(value.reshape(()), limit(node, inputs[0].tolist())).copy()


@folds("Range")
def _range(node: SourceNode, inputs: list[Any]) -> Array:
    start, stop, step = (np.asarray(v).reshape(()) for v in inputs)
    count = max(int(np.ceil((float(stop) - float(start)) / float(step))), 0)
    limit(node, [count])
    values: Array = (start + np.arange(count, dtype=start.dtype) * step).astype(start.dtype)
    return values


@folds("Reshape")
def _reshape(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0].reshape(target_shape(node, inputs[0].shape, inputs[1].tolist()))
    return array


@folds("Flatten")
def _flatten(node: SourceNode, inputs: list[Any]) -> Array:
    axis = node.integer("axis", 1)
    axis += inputs[0].ndim if axis < 0 else 0
    array: Array = inputs[0].reshape(int(np.prod(inputs[0].shape[:axis], dtype=np.int64)), -1)
    return array


@folds("Squeeze")
def _squeeze(node: SourceNode, inputs: list[Any]) -> Array:
    return np.asarray(np.squeeze(inputs[0], axes_given(node, inputs)))


@folds("Unsqueeze")
def _unsqueeze(node: SourceNode, inputs: list[Any]) -> Array:
    axes = axes_given(node, inputs)
    if axes is None:
        raise node.problem("there are no axes")
    return np.expand_dims(inputs[0], axes)


@folds("Transpose")
def _transpose(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0].transpose(node.ints("perm"))
    return array


@folds("Expand")
def _expand(node: SourceNode, inputs: list[Any]) -> Array:
    shape = np.broadcast_shapes(inputs[0].shape, limit(node, inputs[1].tolist()))
    return np.broadcast_to(inputs[0], limit(node, shape)).copy()


@folds("Tile")
def _tile(node: SourceNode, inputs: list[Any]) -> Array:
    repeats = inputs[1].tolist()
    limit(node, [a * b for a, b in zip(inputs[0].shape, repeats, strict=True)])
    return np.tile(inputs[0], repeats)


@folds("Cast")
def _cast(node: SourceNode, inputs: list[Any]) -> Array | None:
    to = node.integer("to")
    if to not in DTYPES and to != BFLOAT16:
        return None  # held in a wider type, with arithmetic of its own
    result: Array = inputs[0].astype(DTYPES.get(to, "float32"))
    return result
