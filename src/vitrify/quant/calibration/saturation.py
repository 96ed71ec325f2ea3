"""Values that make no difference: an activation that has gone flat needs no levels for what lies beyond.

A tensor read by HARD_SWISH alone may be cut at -3, since everything below gives 0; a logistic has reached
its int8 limits beyond about 7. The range that is left uses the 256 levels where they count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vitrify.ir import Node, Tensor
from vitrify.ops import Add, Gelu, HardSwish, Logistic, Mul, Relu, Relu0To1, Relu6, ReluN1To1, SelectV2, Softmax, Tanh
from vitrify.quant.calibration.ranges import constant_range
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.rules import keeps_values
from vitrify.quant.scales import LEVELS

Array = np.ndarray[Any, np.dtype[Any]]

EVERYTHING = Range(-np.inf, np.inf)
FLAT: dict[type, Range] = {
    Relu: Range(0.0, np.inf),
    Relu6: Range(0.0, 6.0),
    ReluN1To1: Range(-1.0, 1.0),
    Relu0To1: Range(0.0, 1.0),
    HardSwish: Range(-3.0, np.inf),
    Logistic: Range(float(np.log(0.25 / 255.75)), float(np.log(254.75 / 1.25))),
    Tanh: Range(float(np.arctanh(-127.75 / 128)), float(np.arctanh(126.75 / 128))),
}
"""Where each operator still answers to its input. The curves end a quarter of an int8 step from their limits (0 and
255/256 for the logistic, -1 and 127/128 for tanh): beyond half a step, where one more rounding could lift a cut value
by a whole step."""

SPARSE = -2.0
"""Scores that go down to this are of things that are mostly not there: a share of 0.12. Others keep their range."""

MASK = -100.0
"""What holds values below this masks what it is added to: exp(-100) of a row's largest share is nothing."""

UNDER = 10.0
"""How far under the lowest score a masked one is kept: a share below exp(-10) in every row."""

_SEARCH = np.linspace(-16.0, -1.5, 291)      # below -1.5 both curves rise towards 0 from one side only


def _silu(x: Array) -> Array:
    value: Array = x / (1 + np.exp(-x))
    return value


def _gelu(x: Array) -> Array:
    value: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return value


def needed(tensor: Tensor, ranges: Mapping[Tensor, Range]) -> Range:
    """Return the values of ``tensor`` that its readers tell apart; ``ranges`` holds those of their outputs."""
    if tensor.is_output or not tensor.users:
        return EVERYTHING
    whole: Range | None = None
    for user in tensor.users:
        one = _needed_by(user, tensor, ranges)
        whole = one if whole is None else whole.join(one)
    return whole or EVERYTHING


def is_score(tensor: Tensor) -> bool:
    """True when only logistics read a tensor, and what they make is given out: scores of the model.

    A few calibration samples may hold no confident score, so these tensors get the whole curve, seen or not.
    """
    return bool(tensor.users) and not tensor.is_output and all(
        _reaches_output(user.output) if isinstance(user.op, Logistic) else keeps_values(user) and len(user.outputs) == 1
        and is_score(user.output) for user in tensor.users)


def _reaches_output(tensor: Tensor) -> bool:
    return tensor.is_output or any(keeps_values(user) and any(map(_reaches_output, user.outputs))
                                   for user in tensor.users)


def _needed_by(user: Node, tensor: Tensor, ranges: Mapping[Tensor, Range]) -> Range:
    if _is_silu(user, tensor):
        return _tail(_silu, user.output, ranges)
    if isinstance(user.op, Gelu):
        return _tail(_gelu, user.output, ranges)
    if isinstance(user.op, Logistic) and any(_is_silu(other, tensor) for other in tensor.users):
        return Range(0.0, 0.0)                  # the product decides
    if isinstance(user.op, Softmax):
        lowest = _lowest_score(tensor, ranges)
        return EVERYTHING if lowest is None else Range(lowest - UNDER, np.inf)
    if keeps_values(user) and len(user.outputs) == 1:
        return needed(user.output, ranges)
    return FLAT.get(type(user.op), EVERYTHING)


def _is_silu(node: Node, tensor: Tensor) -> bool:
    """True for the product of a tensor with its own logistic."""
    if not isinstance(node.op, Mul) or len(node.inputs) != 2 or tensor not in node.inputs:
        return False
    other = node.input(1 if node.inputs[0] is tensor else 0)
    made = other.producer
    return made is not None and isinstance(made.op, Logistic) and made.inputs[0] is tensor


def _tail(curve: Callable[[Array], Array], output: Tensor, ranges: Mapping[Tensor, Range]) -> Range:
    """Everything above the point below which the curve stays within half a step of 0."""
    step = ranges[output].with_zero().width / (LEVELS - 1) if output in ranges else 0.0
    flat = _SEARCH[np.abs(curve(_SEARCH)) <= step / 2]
    return Range(float(flat[-1]), np.inf) if flat.size else EVERYTHING


def _lowest_score(tensor: Tensor, ranges: Mapping[Tensor, Range]) -> float | None:
    """The lowest value of masked scores that is not masked; None where nothing masks them."""
    maker = tensor.producer
    if maker is None or not isinstance(maker.op, Add | SelectV2):
        return None
    first = 1 if isinstance(maker.op, SelectV2) else 0
    pair = [maker.input(first), maker.input(first + 1)]
    for scores, mask in (pair, pair[::-1]):
        limits = constant_range(mask) if mask.is_constant else ranges.get(mask)
        if limits is None or limits.low > MASK or (first and not mask.is_constant) or scores not in ranges:
            continue
        inner = _lowest_score(scores, ranges)
        lowest = ranges[scores].low if inner is None else inner
        return lowest if first else lowest + limits.high
    return None
