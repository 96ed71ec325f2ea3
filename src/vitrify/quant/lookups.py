"""Functions without an integer kernel that a table replaces: each step of the input has one answer.

SIN, COS, FLOOR, POW by a constant, a constant divided by a value, a CAST to whole numbers: with 256 or 65,536 possible
inputs, all answers are computed beforehand, and the graph looks them up (``forms/tables.py`` writes that down).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import DType, Node, Operator, Tensor
from vitrify.ops import (
    Add,
    AveragePool2D,
    Cast,
    Ceil,
    Cos,
    Div,
    Elu,
    Floor,
    FloorDiv,
    FloorMod,
    Log,
    Mul,
    Pow,
    Relu0To1,
    ReluN1To1,
    ResizeBilinear,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Square,
    Sub,
)
from vitrify.ops.int8 import Int8Rule

Array = np.ndarray[Any, np.dtype[Any]]

FUNCTIONS: tuple[type[Operator], ...] = (Sin, Cos, Floor, Ceil, Round, Sign, Square, Cast)
"""Operators of one input that compute each element by itself and have no integer kernel."""

BY_A_NUMBER: tuple[type[Operator], ...] = (Pow, FloorDiv, FloorMod, Div)
"""The same with two inputs, where one of them is a constant of one value."""

WHOLE: tuple[type[Operator], ...] = (Floor, Ceil, Round, FloorDiv, FloorMod, Cast)
"""Where a small difference of the input can move the answer by a whole number."""

ROUNDING: tuple[type[Operator], ...] = (Floor, Ceil, Round, FloorDiv, Sign)
"""What makes whole numbers of any."""

WHOLE_SUMS: tuple[type[Operator], ...] = (Add, Sub, Mul)
"""What makes whole numbers of whole numbers, besides what only chooses or moves values."""

SIXTEEN: tuple[type[Operator], ...] = (Elu, Log, Relu0To1, ReluN1To1, Rsqrt)
"""Functions with an 8-bit kernel only, or one that is far off in 16 bits: those of LOG and RSQRT go in straight lines
between 513 points, which misses steep ends by hundreds of steps. Source: TFLite kernels/internal/common.h."""

TYPES = (DType.INT32, DType.INT16, DType.BOOL)
"""What a CAST may give that GATHER takes as it is. Source: TFLite kernels/gather.cc."""


def variable(node: Node, wide: bool = False) -> int | None:
    """The position of the input that a table is looked up by, None for a node that no table replaces.

    ``wide``: the node computes in 16 bits.
    """
    if isinstance(node.op, (*FUNCTIONS, *SIXTEEN) if wide else FUNCTIONS):
        return 0 if _is_looked_up(node.input(0)) and _gives_numbers(node) else None
    if not isinstance(node.op, BY_A_NUMBER) or len(node.inputs) != 2:
        return None
    for index in (0, 1):
        value, number = node.input(index), node.input(1 - index)
        if _is_looked_up(value) and _is_number(number) and value.shape == node.output.shape:
            return index
    return None


def is_whole(node: Node) -> bool:
    """True for a table whose answers are whole numbers, or what is left over from one."""
    return isinstance(node.op, WHOLE) and variable(node) is not None


def holds_whole(tensor: Tensor) -> bool:
    """True for a float tensor of whole numbers, made by operators that round and by others that keep them whole.

    Its steps need not meet them: 5 may become 4.9999, which a CAST would make 4.
    """
    waiting, seen = [tensor], {tensor}
    while waiting:
        one = waiting.pop()
        if one.data is not None:
            if not np.array_equal(one.data, np.rint(one.data)):
                return False
        elif one.producer is None or not isinstance(one.producer.op, ROUNDING):
            values = () if one.producer is None else _kept_whole(one.producer)
            if not values:
                return False
            waiting.extend(t for t in values if t not in seen)
            seen.update(values)
    return True


def _kept_whole(node: Node) -> tuple[Tensor, ...]:
    """The inputs of a node whose output is whole when they are; none for a node that makes parts of whole numbers."""
    if isinstance(node.op, WHOLE_SUMS):
        return tuple(node.input(index) for index in range(len(node.inputs)))
    if isinstance(node.op, AveragePool2D | ResizeBilinear) or node.op.int8 is None:
        return ()
    return tuple(t for index in node.op.int8.shared(len(node.inputs)) if (t := node.inputs[index]) is not None)


def table_rule(node: Node) -> Int8Rule | None:
    """The int8 rule of a node that a table replaces: scales are free, and its number stays as it is."""
    index = variable(node)
    return None if index is None else Int8Rule(keep=(1 - index,) if len(node.inputs) == 2 else ())


def answers(node: Node, index: int, values: Array) -> Array:
    """What the node gives for each of ``values`` at input ``index``.

    What is not a number becomes 0, infinities the largest floats.
    """
    arrays: list[Array | None] = [None if t is None else t.data for t in node.inputs]
    arrays[index] = values.astype(np.float32)
    evaluate = getattr(node.op, "evaluate")     # noqa: B009  (the base class of operators has none)
    with np.errstate(all="ignore"):
        found: Array = np.asarray(evaluate(arrays)[0])
    return np.nan_to_num(found) if found.dtype.kind == "f" else found


def _is_looked_up(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32 and not tensor.is_constant


def _gives_numbers(node: Node) -> bool:
    return node.output.dtype is DType.FLOAT32 or (isinstance(node.op, Cast) and node.output.dtype in TYPES)


def _is_number(tensor: Tensor) -> bool:
    return tensor.data is not None and tensor.size == 1
