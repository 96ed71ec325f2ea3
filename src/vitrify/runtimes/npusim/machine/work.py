"""What a command computes, a part of its output at a time: whole maps of wide numbers would take far more memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from vitrify.runtimes.npusim.machine.memory import Touch
from vitrify.runtimes.npusim.machine.numerics import Values

_VALUES = 1 << 15
"""Of one part: 64 bits of each, and of a few steps between, stay in the processor's cache."""


class Place(NamedTuple):
    """Rows and columns of an output."""

    rows: slice
    columns: slice


class Work(NamedTuple):
    """``made`` gives the scaled values, int64, of a place; all that it reads was read before, from ``touched``.

    ``read`` is how many values that are.
    """

    made: Callable[[Place], Values]
    touched: list[Touch]
    read: int

    def parts(self, shape: tuple[int, int, int]) -> Iterator[Place]:
        """Yield the places of an output of ``shape``: some rows at a time, of long ones some columns."""
        high, wide, depth = shape
        each = -(-max(self.read, high * wide * depth) // (high * wide))
        across = min(wide, max(1, _VALUES // each))
        down = max(1, _VALUES // (each * wide))
        return (Place(slice(y, min(high, y + down)), slice(x, min(wide, x + across)))
                for y in range(0, high, down) for x in range(0, wide, across))
