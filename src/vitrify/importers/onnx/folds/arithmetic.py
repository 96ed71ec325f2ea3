"""Arithmetic, comparisons and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.cost import broadcasting, in_floats, product, times
from vitrify.importers.onnx.folds.registry import Fold, axes_given, folds
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode


def _truncated(a: Array, b: Array) -> Array:
    """ONNX divides integers towards zero."""
    if a.dtype.kind not in "iu":
        result: Array = a / b
        return result
    if np.any(b == 0):
        raise ZeroDivisionError("division by zero")
    quotient: Array = (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)
    return quotient


@folds("Mod", cost=broadcasting(4))
def _mod(node: SourceNode, inputs: list[Any]) -> Array:
    limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
    return np.asarray(np.fmod(*inputs) if node.integer("fmod") else np.mod(*inputs), inputs[0].dtype)


def _elementwise(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
        array: Array = np.asarray(function(*inputs))
        return array if array.dtype == bool else array.astype(inputs[0].dtype)

    return run


def _many(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
        result = inputs[0]
        for other in inputs[1:]:
            result = function(result, other)
        return np.asarray(result)

    return run


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _truncated,
    "Pow": np.power,
    "Sqrt": np.sqrt,
    "Neg": np.negative,
    "Abs": np.abs,
    "Exp": np.exp,
    "Log": np.log,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sign": np.sign,
    "Reciprocal": lambda x: 1 / x,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Not": np.logical_not,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "IsNaN": np.isnan,
}
# Operations for one element, where they are more than one.
_SLOW = {"Div": 4, "Pow": 20, "Exp": 4, "Log": 4, "Sin": 8, "Cos": 8, "Tanh": 8, "Sigmoid": 8}
_MANY: dict[str, Callable[..., Any]] = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}
for _kind, _function in _ELEMENTWISE.items():
    folds(_kind, cost=broadcasting(_SLOW.get(_kind, 1)))(_elementwise(_function))
for _kind, _function in _MANY.items():
    folds(_kind, cost=broadcasting())(_many(_function))


@folds("Clip")
def _clip(node: SourceNode, inputs: list[Any]) -> Array:
    low = inputs[1] if len(inputs) > 1 and inputs[1] is not None else node.attributes.get("min")
    high = inputs[2] if len(inputs) > 2 and inputs[2] is not None else node.attributes.get("max")
    array: Array = inputs[0]
    limit(node, np.broadcast_shapes(array.shape, *(v.shape for v in (low, high) if isinstance(v, np.ndarray))))
    if low is not None:
        array = np.maximum(array, np.asarray(low, array.dtype))
    if high is not None:
        array = np.minimum(array, np.asarray(high, array.dtype))
    return array


@folds("MatMul", cost=product)
def _matmul(node: SourceNode, inputs: list[Any]) -> Array:
    x, y = inputs
    limit(node, (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), *x.shape[-2:-1], *y.shape[1:][-1:]))
    if x.dtype.kind in "iu" and in_floats(x, y):  # integers take no fast library
        return np.asarray(np.matmul(x.astype(np.float64), y.astype(np.float64))).astype(np.int64).astype(x.dtype)
    if x.dtype == np.float16:
        return np.asarray(np.matmul(x.astype(np.float32), y.astype(np.float32))).astype(x.dtype)
    return np.asarray(np.matmul(x, y))


def _reducing(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        axes = axes_given(node, inputs)
        if not axes and node.integer("noop_with_empty_axes"):
            array: Array = inputs[0]
            return array
        return np.asarray(
            function(inputs[0], axis=axes or None, keepdims=bool(node.integer("keepdims", 1))), inputs[0].dtype
        )

    return run


def _extremes(x: Array) -> tuple[Any, Any]:
    """The type's smallest and largest value: what the largest and smallest of no elements are."""
    if x.dtype.kind == "f":
        return -np.inf, np.inf
    if x.dtype.kind == "b":
        return False, True
    return np.iinfo(x.dtype).min, np.iinfo(x.dtype).max


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": lambda x, **over: np.max(x, initial=_extremes(x)[0], **over),
    "ReduceMin": lambda x, **over: np.min(x, initial=_extremes(x)[1], **over),
    "ReduceMean": np.mean,
    "ReduceLogSum": lambda x, **over: np.log(np.sum(x, **over)),
    "ReduceLogSumExp": lambda x, **over: np.logaddexp.reduce(x, **{"initial": -np.inf, **over}),
    "ReduceL1": lambda x, **over: np.sum(np.abs(x), **over),
    "ReduceL2": lambda x, **over: np.sqrt(np.sum(x * x, **over)),
    "ReduceSumSquare": lambda x, **over: np.sum(x * x, **over),
}
for _kind, _function in _REDUCTIONS.items():
    folds(_kind, cost=times(8 if "Log" in _kind else 2))(_reducing(_function))


@folds("Softmax", cost=times(8))
def _softmax(node: SourceNode, inputs: list[Any]) -> Array:
    if node.opset < 13:
        raise node.unsupported("a softmax of constants before operator set 13")
    axis, x = node.integer("axis", -1), inputs[0]
    powers = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True), x.dtype)
