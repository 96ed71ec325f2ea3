"""Feature maps: where each value of an input or output lies in memory, and reading and writing them.

A map is cut into up to four tiles with a base of their own, in rows of values (NHWC) or bricks of 16 channels
(NHCWB16). Strides are signed: a mirrored map has negative ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from vitrify.runtimes.npusim.machine.memory import Memory, Touch
from vitrify.runtimes.npusim.machine.numerics import Values
from vitrify.runtimes.npusim.machine.registers import Registers

Prefix = Literal["IFM", "IFM2", "OFM"]
_TYPES: dict[tuple[int, int], Any] = {(8, 0): np.uint8, (8, 1): np.int8, (16, 0): np.uint16, (16, 1): np.int16,
                                      (32, 0): np.uint32, (32, 1): np.int32}
_BRICK = 16
_PLANS = 512


class Layout(NamedTuple):
    """All that decides where the values of a map lie."""

    bases: tuple[int, int, int, int]
    height0: int
    height1: int
    width0: int
    stride_y: int
    stride_x: int
    stride_c: int
    bricks: bool
    size: int
    shape: tuple[int, int, int]


class FeatureMap(NamedTuple):
    """A map as the registers describe it: its element type, where it lies, and its zero point."""

    prefix: Prefix
    region: int
    bits: int
    signed: bool
    zero_point: int
    layout: Layout

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        found: np.dtype[Any] = np.dtype(_TYPES[self.bits, int(self.signed)])
        return found

    def check(self, memory: Memory) -> None:
        """Refuse a map of more values than its region has bytes.

        Raises:
            ModelError: it has.
        """
        height, width, depth = self.layout.shape
        memory.room(self.region, height * width * depth, self.prefix)

    def read(self, memory: Memory) -> Values:
        """Return its values as they are stored, [height, width, depth], int64."""
        self.check(memory)
        plan = addresses(self.layout)
        data = memory.region(self.region, plan.low, plan.high, self.prefix)
        if plan.start is not None:
            count = self.layout.shape[0] * self.layout.shape[1] * self.layout.shape[2]
            raw = data[plan.start:plan.start + count * self.layout.size].view(self.dtype)
            return raw.astype(np.int64).reshape(self.layout.shape)
        return _gather(data, plan.at, self.dtype)

    def write(self, memory: Memory, values: Values) -> None:
        """Store ``values``, which fit the type."""
        self.check(memory)
        plan = addresses(self.layout)
        data = memory.region(self.region, plan.low, plan.high, self.prefix, write=True)
        stored = np.ascontiguousarray(values.astype(self.dtype))
        if plan.start is not None:
            data[plan.start:plan.start + stored.nbytes] = stored.view(np.uint8).reshape(-1)
            return
        raw = stored.view(np.uint8).reshape(*plan.at.shape, self.layout.size)
        for byte in range(self.layout.size):
            data[plan.at + byte] = raw[..., byte]

    def touch(self, writes: bool) -> Touch:
        """The bytes it spans."""
        plan = addresses(self.layout)
        return Touch(self.region, plan.low, plan.high, writes)


class Plan(NamedTuple):
    """The byte address of every value, the span they lie in, and the start if they lie in order without gaps."""

    at: Any
    low: int
    high: int
    start: int | None


def feature_map(registers: Registers, prefix: Prefix, shape: tuple[int, int, int]) -> FeatureMap:
    """Return the map that the registers describe, of the given height, width and depth."""
    precision = f"{prefix}_PRECISION"
    bits = 8 << registers.field(precision, "size")
    bases = tuple(registers[f"{prefix}_BASE{i}"] for i in range(4))
    layout = Layout(
        (bases[0], bases[1], bases[2], bases[3]), registers[f"{prefix}_HEIGHT0_M1"] + 1,
        registers[f"{prefix}_HEIGHT1_M1"] + 1, registers[f"{prefix}_WIDTH0_M1"] + 1, registers[f"{prefix}_STRIDE_Y"],
        registers[f"{prefix}_STRIDE_X"], registers[f"{prefix}_STRIDE_C"],
        bool(registers.field(precision, "layout")), bits // 8, shape)
    return FeatureMap(prefix, registers[f"{prefix}_REGION"], bits, bool(registers.field(precision, "signed")),
                      registers[f"{prefix}_ZERO_POINT"], layout)


@lru_cache(maxsize=_PLANS)
def addresses(layout: Layout) -> Plan:
    """Return where each value lies."""
    height, width, depth = layout.shape
    y, x = np.arange(height)[:, None], np.arange(width)[None, :]
    tile, row, column = _tiles(layout, y, x)
    base = np.array(layout.bases, np.int64)[tile]
    channel = np.arange(depth)
    if layout.bricks:
        start = base + row * layout.stride_y + column * (_BRICK * layout.size)
        at = start[:, :, None] + channel // _BRICK * layout.stride_c + channel % _BRICK * layout.size
    else:
        at = (base + row * layout.stride_y + column * layout.stride_x)[:, :, None] + channel * layout.size
    return _plan(at, layout.size)


def _plan(at: Values, size: int) -> Plan:
    low, high = int(at.min()), int(at.max()) + size
    flat = at.reshape(-1)
    dense = high - low == flat.size * size and bool((np.diff(flat) == size).all())
    return Plan(np.zeros(0, np.int64) if dense else at.astype(np.int64), low, high, low if dense else None)


def _tiles(layout: Layout, y: Values, x: Values) -> tuple[Values, Values, Values]:
    """The tile of each value, and its row and column within."""
    right = x >= layout.width0
    low = np.where(right, y >= layout.height1, y >= layout.height0)
    row = y - np.where(low, np.where(right, layout.height1, layout.height0), 0)
    return right + 2 * low, row, x - np.where(right, layout.width0, 0) + 0 * y


def _gather(data: Any, at: Values, dtype: np.dtype[Any]) -> Values:
    if dtype.itemsize == 1:
        return np.asarray(data.view(dtype)[at]).astype(np.int64)
    raw = data[at[..., None] + np.arange(dtype.itemsize)]
    return np.ascontiguousarray(raw).view(dtype)[..., 0].astype(np.int64)
