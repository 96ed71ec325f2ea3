"""The rules by which numbers are rounded and bounded, one function each.

They follow the documented numerics and TFLite's reference kernels, which Vela's own tests hold the chip against; none
was measured on silicon by us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.runtimes.npusim.stream.commands import Rounding

Values = np.ndarray[Any, np.dtype[Any]]
_FIRST_SHIFT = 31
_SAFE = 1 << 62
_RANK = 3
_BLOCK = 1 << 16      # values


def rescale(x: Values, scale: Values | int, shift: Values | int, rounding: int) -> Values:
    """Return ``x * scale / 2**shift`` as int64, rounded."""
    values, factor, by = (np.asarray(v, np.int64) for v in (x, scale, shift))
    rule = _RULES[Rounding(rounding)]
    if _largest(values) * _largest(factor) < _SAFE:
        return _in_blocks(values, factor, by, rule)
    exact = rule(values.astype(object) * factor.astype(object), by.astype(object))
    return np.asarray(np.clip(exact, -_SAFE, _SAFE)).astype(np.int64)


def _in_blocks(values: Values, factor: Values, by: Values, rule: Callable[[Values, Values], Values]) -> Values:
    """Apply a rule to some rows at a time, whose values between the steps stay in the processor's cache."""
    if values.ndim != _RANK or values.size <= _BLOCK or factor.ndim >= _RANK or by.ndim >= _RANK:
        return np.asarray(rule(values * factor, by)).astype(np.int64)
    found = np.empty(values.shape, np.int64)
    rows = max(1, _BLOCK * len(values) // values.size)
    for first in range(0, len(values), rows):
        found[first:first + rows] = rule(values[first:first + rows] * factor, by)
    return found


def _largest(values: Values) -> int:
    return max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))


def half_up(product: Values, shift: Values) -> Values:
    """Round half up: a half goes to the larger number."""
    one = np.ones_like(shift)
    return np.asarray((product + np.where(shift > 0, one << np.maximum(shift - 1, 0), 0)) >> shift)


def half_away(product: Values, shift: Values) -> Values:
    """Round half away from zero."""
    one = np.ones_like(shift)
    half = np.where(shift > 0, one << np.maximum(shift - 1, 0), 0)
    return np.asarray((product + half - ((product < 0) & (shift > 0))) >> shift)


def twice(product: Values, shift: Values) -> Values:
    """Round as TFLite does: by up to 31 bits half up, then by the rest half away from zero."""
    first = np.minimum(shift, _FIRST_SHIFT)
    return half_away(half_up(product, first), shift - first)


def truncate(product: Values, shift: Values) -> Values:
    """Round toward zero."""
    return np.asarray(np.where(product < 0, -((-product) >> shift), product >> shift))


_RULES = {Rounding.TFL: twice, Rounding.TRUNCATE: truncate, Rounding.NATURAL: half_up}


def divide(total: Values, count: Values) -> Values:
    """Return an average: half away from zero, as a padded average pool divides by the taps within the input."""
    return np.asarray(np.sign(total) * ((np.abs(total) + count // 2) // count))


def wrap32(values: Values) -> Values:
    """Keep the low 32 bits as a signed number."""
    low = values & 0xFFFFFFFF
    return np.asarray(np.where(low >> 31, low - (1 << 32), low))


def leading_zeros(values: Values) -> Values:
    """Count the zeros before the first one bit of a 32-bit number; none in a negative one."""
    bits = np.zeros(values.shape, np.int64)
    rest = np.maximum(values, 0)
    for step in (16, 8, 4, 2, 1):
        large = rest >> step > 0
        bits += np.where(large, step, 0)
        rest = np.where(large, rest >> step, rest)
    return np.where(values < 0, 0, 32 - bits - (rest > 0))
