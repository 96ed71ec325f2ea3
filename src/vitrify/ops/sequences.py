"""What the recurrent operators share: checked weights, states, sequences with time first."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator
from vitrify.ops.base import Array, Arrays, Inputs, Shape, TensorType, expect, refuse


def shape_of(op: Operator, inputs: Inputs, index: int, rank: int) -> Shape:
    """Return the shape of input ``index``, which must be there and have ``rank`` axes."""
    tensor = inputs[index] if index < len(inputs) else None
    if tensor is None or len(tensor.shape) != rank:
        raise refuse(op, f"needs {rank} dimensions in input {index}, "
                     f"got {tensor.type if tensor else 'nothing'}", inputs)
    return tensor.shape


def units_of(op: Operator, inputs: Inputs, input_weights: int, recurrent_weights: int, depth: int) -> int:
    """Return the width of one direction's output, after checking its weights against an input of ``depth``."""
    cells, taken = shape_of(op, inputs, input_weights, 2)
    rows, units = shape_of(op, inputs, recurrent_weights, 2)
    expect(op, taken == depth and rows == cells, f"has weights [{cells},{taken}] and [{rows},{units}] for inputs of "
           f"{depth}", inputs)
    return units


def both(op: Operator, x: TensorType, first: int, second: int, merged: bool) -> list[TensorType]:
    """Return the outputs of both directions, side by side when ``merged``."""
    widths = [first + second] if merged else [first, second]
    return [TensorType(x.dtype, (*x.shape[:2], width)) for width in widths]


def time_first(array: Array, time_major: bool) -> Array:
    """Return a sequence with time first, or back."""
    return array if time_major else array.swapaxes(0, 1)


def state_of(inputs: Arrays, index: int, batch: int, units: int, dtype: np.dtype[Any]) -> Array:
    """Return the state at ``index``; zeros where it is not given, as a variable starts."""
    found = inputs[index] if index < len(inputs) else None
    return np.zeros((batch, units), dtype) if found is None else found


def sides(forth: Array, back: Array, time_major: bool, merged: bool) -> list[Array]:
    """Return the outputs of both directions, side by side when ``merged``."""
    found = [time_first(forth, time_major), time_first(back, time_major)]
    return [np.concatenate(found, axis=2)] if merged else found


def products(node: Node, times: int) -> int:
    """Return the multiply-accumulates of all matrices among the constants, each used ``times`` over."""
    return times * sum(t.size for t in node.inputs if t is not None and t.is_constant and len(t.shape) == 2)
