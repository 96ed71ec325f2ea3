"""The one registration of folds: a function per ONNX operator that computes it on known inputs.

A fold takes the node and its input arrays and returns the output array, a list of several, or None to leave the node
to its lowering. Integers stay in ONNX's own types, so that int64 arithmetic is exact.
Source: the operators' specifications at onnx.ai/onnx/operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.budget import Budget
from vitrify.importers.onnx.folds.cost import Cost, elements
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

Fold = Callable[[SourceNode, list[Any]], Array | list[Array] | None]
FOLDS: dict[str, Fold] = {}
COSTS: dict[str, Cost] = {}
"""What each fold takes, in operations (see ``budget``)."""
_LAZY = ("Shape", "Size")  # these need the type only


class TooCostlyError(Exception):
    """A fold would take more operations than there are left."""

    def __init__(self, operations: int) -> None:
        super().__init__(operations)
        self.operations = operations


def fold(node: SourceNode, inputs: Sequence[Any], budget: Budget) -> list[Array] | None:
    """Return the node's outputs when they can be known now, None otherwise.

    Raises:
        ModelError: the inputs do not fit the operator.
        TooCostlyError: the budget does not allow it.
    """
    lazy = node.kind in _LAZY and len(inputs) > 0
    if not lazy and any(isinstance(value, Tensor) for value in inputs):
        return None
    try:
        operations = 0 if lazy else COSTS[node.kind](node, inputs)
        if not budget.takes(operations):
            raise TooCostlyError(operations)
        with np.errstate(all="ignore"):
            result = FOLDS[node.kind](node, list(inputs))
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        shapes = ", ".join(f"{v.dtype.name}{list(v.shape)}" if isinstance(v, np.ndarray) else "-" for v in inputs)
        raise node.problem(f"cannot be computed from the constants {shapes}: {error}") from error
    if result is None:
        return None
    return [np.asarray(r) for r in (result if isinstance(result, list) else [result])]


def folds(*kinds: str, cost: Cost = elements) -> Callable[[Fold], Fold]:
    """Register the function that computes ``kinds``, and the one that says how many operations that takes."""

    def register(function: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(kinds, function))
        COSTS.update(dict.fromkeys(kinds, cost))
        return function

    return register


def axis_at(node: SourceNode, rank: int, default: int = 0) -> int:
    """The axis attribute, checked against the rank."""
    axis = node.integer("axis", default)
    if not -rank <= axis < rank:
        raise node.problem(f"axis {axis} is outside a tensor of {rank} dimensions")
    return axis


def axes_given(node: SourceNode, inputs: list[Any], index: int = 1) -> tuple[int, ...] | None:
    """The axes: an attribute in old operator sets, an input in new ones."""
    given = node.ints("axes")
    if given is None and len(inputs) > index and inputs[index] is not None:
        given = [int(a) for a in inputs[index].ravel()]
    return None if given is None else tuple(given)
