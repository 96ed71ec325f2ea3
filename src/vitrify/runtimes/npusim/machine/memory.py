"""The memories that commands name: regions of bytes with bounds, and the tables inside the accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
CONSTANTS, ARENA, FAST = 0, 1, 2
NAMES = {CONSTANTS: "constants", ARENA: "arena", FAST: "fast arena"}


class Touch(NamedTuple):
    """Bytes that a command reads or writes: ``region`` -1 is the memory inside the accelerator."""

    region: int
    start: int
    end: int
    writes: bool


INTERNAL = -1
_SPARE = 1 << 20
"""Values that padding may add to any input."""


class Memory:
    """The regions of one model: constants cannot be written; nothing is read or written outside a region."""

    def __init__(self, constants: Bytes, arena: Bytes, fast: Bytes, internal: int) -> None:
        self.regions: Mapping[int, Bytes] = {CONSTANTS: constants, ARENA: arena, FAST: fast,
                                             INTERNAL: np.zeros(internal, np.uint8)}

    def region(self, index: int, low: int, high: int, what: str, write: bool = False) -> Bytes:
        """Return the region that ``what`` reads or writes, from byte ``low`` up to ``high``.

        Raises:
            ModelError: there is no such region, or the bytes are not all inside.
        """
        found = self.regions.get(index)
        if found is None:
            raise self._error(f"{what} names region {index}; there are {sorted(NAMES)}")
        if low < 0 or high > found.size:
            raise self._error(f"{what} takes bytes {low}..{high} of the {NAMES.get(index, 'internal memory')}, which "
                              f"has {found.size}")
        if write and index == CONSTANTS:
            raise self._error(f"{what} writes into the constants")
        return found

    def room(self, index: int, count: int, what: str, spread: int = 1) -> None:
        """Check that a region could hold ``count`` values, or ``spread`` times as many made of what it holds.

        Nothing is laid out for a command before this: a few bytes of a damaged stream can name 2^48 values.

        Raises:
            ModelError: there is no such region, or it is smaller.
        """
        found = self.regions.get(index)
        if found is None:
            raise self._error(f"{what} names region {index}; there are {sorted(NAMES)}")
        if count > spread * found.size + (_SPARE if spread > 1 else 0):
            raise self._error(f"{what} has {count} values, more than the {found.size} bytes of the "
                              f"{NAMES.get(index, 'internal memory')} can make")

    @staticmethod
    def _error(headline: str) -> ModelError:
        return ModelError.of("npusim.out-of-bounds", headline, why="the stream is damaged, or the compiler is wrong")
