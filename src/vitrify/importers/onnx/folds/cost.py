"""Estimates of what a node takes to compute from constants, from shapes alone (see ``budget`` for the unit)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.source import SourceNode

Cost = Callable[[SourceNode, Sequence[Any]], int]

_SORTING = 4
"""Of a stable sort, for each element and halving."""
_PRODUCT = 32
"""Multiply-accumulates of floats that a matrix product does in the time of one operation."""
_PLAIN_PRODUCT = 2
"""Operations of one that no library does: integers whose sums float64 does not hold."""


def elements(node: SourceNode, inputs: Sequence[Any]) -> int:
    """One for each element read; what is made is bounded by itself."""
    return sum(value.size for value in inputs if isinstance(value, np.ndarray))


def times(weight: int) -> Cost:
    """``weight`` for each element read."""
    return lambda node, inputs: weight * elements(node, inputs)


def broadcasting(weight: int = 1) -> Cost:
    """``weight`` for each element of the result and each input."""

    def count(node: SourceNode, inputs: Sequence[Any]) -> int:
        given = [value.shape for value in inputs if isinstance(value, np.ndarray)]
        return weight * len(given) * math.prod(np.broadcast_shapes(*given))

    return count


def sorting(node: SourceNode, inputs: Sequence[Any]) -> int:
    """Each element as often as it takes halvings to come down to one."""
    count = elements(node, inputs[:1])
    return _SORTING * count * max(count.bit_length(), 1)


def product(node: SourceNode, inputs: Sequence[Any]) -> int:
    """A matrix product: each element of the result takes a row."""
    x, y = inputs
    batch = math.prod(np.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    rows, columns = (x.shape[-2] if x.ndim > 1 else 1), (y.shape[-1] if y.ndim > 1 else 1)
    macs: int = batch * rows * columns * x.shape[-1]
    return elements(node, inputs) + (macs // _PRODUCT if in_floats(x, y) else macs * _PLAIN_PRODUCT)


def in_floats(x: Any, y: Any) -> bool:
    """True when floats hold the products' sums: of floats, and of integers that stay below 2**53."""
    if x.dtype.kind == "f":
        return True
    if x.size == 0 or y.size == 0:
        return False
    top = (max(abs(int(v.max())), abs(int(v.min()))) for v in (x, y))
    return math.prod(top) * int(x.shape[-1]) < 2**53


def determinant(node: SourceNode, inputs: Sequence[Any]) -> int:
    """One for each element and row."""
    return elements(node, inputs) * int(inputs[0].shape[-1])


_STEP = 500
"""Of the evaluator that comes with the `onnx` package, for one element in a loop of Python."""
_NEIGHBOURS = {"GridSample": 16, "Resize": 16, "Upsample": 16, "RoiAlign": 64, "LRN": 8}


def by_evaluator(node: SourceNode, inputs: Sequence[Any], made: int) -> int:
    """What the evaluator takes for ``made`` elements: at the most, where its way is not known."""
    shapes = [value.shape for value in inputs if isinstance(value, np.ndarray)]
    read = elements(node, inputs)
    return read + _STEP * (read + made * _taps(node)) + _sums(node, shapes, made)


def _taps(node: SourceNode) -> int:
    """How many elements each element of the result is made from, one by one."""
    return math.prod(node.ints("kernel_shape") or [1]) * _NEIGHBOURS.get(node.kind, 1)


def _sums(node: SourceNode, shapes: Sequence[tuple[int, ...]], made: int) -> int:
    """Multiply-accumulates: letters of an equation, boxes against boxes, steps of a layer, or rows of the weights."""
    if node.kind == "Einsum":
        terms = node.string("equation").partition("->")[0].replace(" ", "").replace(".", "").split(",")
        named = {letter: extent for term, shape in zip(terms, shapes, strict=False)
                 for letter, extent in zip(term[::-1], shape[::-1], strict=False)}
        hidden = max((math.prod(shape[: len(shape) - len(t)]) for t, shape in zip(terms, shapes, strict=False)),
                     default=1)
        return math.prod(named.values()) * hidden
    if node.kind == "NonMaxSuppression" and len(shapes) > 1:
        return _STEP * math.prod(shapes[1]) * shapes[1][-1]
    if node.kind in ("LSTM", "GRU", "RNN") and len(shapes) > 2:
        return shapes[0][0] * shapes[0][1] * (math.prod(shapes[1]) + math.prod(shapes[2]))
    if node.kind in ("ConvTranspose", "DeformConv") or "Conv" in node.kind:
        widest = max((math.prod(shape[1:]) for shape in shapes if len(shape) > 2), default=1)
        return max(made, math.prod(shapes[0])) * widest
    if node.kind in ("Det", "DFT", "STFT") or "MatMul" in node.kind or node.kind in ("Gemm", "Attention"):
        return made * max((max(shape, default=1) for shape in shapes), default=1)
    return 0
