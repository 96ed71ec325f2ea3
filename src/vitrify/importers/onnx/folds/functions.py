"""Functions of one or two numbers that only constants of unusual models go through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.cost import broadcasting, determinant
from vitrify.importers.onnx.folds.registry import Fold, folds
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode

_ERF = np.vectorize(math.erf, otypes=[np.float64])
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Erf": lambda x: _ERF(x) if x.size else x,
    "Det": np.linalg.det,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "BitwiseNot": np.bitwise_not,
}
# One call of Python for each element; a matrix as a whole.
_COSTS = {"Erf": broadcasting(100), "Det": determinant}


def _fold(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
        return np.asarray(function(*inputs), inputs[0].dtype)

    return run


for _kind, _function in _FUNCTIONS.items():
    folds(_kind, cost=_COSTS.get(_kind) or broadcasting(1 if _kind.startswith("Bitwise") else 20))(_fold(_function))


@folds("IsInf")
def _is_inf(node: SourceNode, inputs: list[Any]) -> Array:
    x: Array = inputs[0]
    positive = np.isposinf(x) & bool(node.integer("detect_positive", 1))
    return np.asarray(positive | (np.isneginf(x) & bool(node.integer("detect_negative", 1))))


@folds("BitShift", cost=broadcasting(8))
def _bit_shift(node: SourceNode, inputs: list[Any]) -> Array:
    """Amounts below zero, or of the whole width and more, leave nothing but the sign."""
    x, amounts = inputs
    limit(node, np.broadcast_shapes(x.shape, amounts.shape))
    width = x.dtype.itemsize * 8
    beyond = (amounts < 0) | (amounts >= width)
    held = np.where(beyond, 0, amounts).astype(x.dtype)
    if node.string("direction") == "LEFT":
        return np.asarray(np.where(beyond, x.dtype.type(0), np.left_shift(x, held)))
    return np.asarray(np.where(beyond, np.where(x < 0, -1, 0).astype(x.dtype), np.right_shift(x, held)))
