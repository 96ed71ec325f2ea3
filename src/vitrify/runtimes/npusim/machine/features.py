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
        return self.read_as(memory, np.int64)

    def read_as(self, memory: Memory, kind: Any) -> Values:
        """Return its values, [height, width, depth], in a type of integers that holds them."""
        self.check(memory)
        plan = pieces(self.layout)
        data = memory.region(self.region, plan.low, plan.high, self.prefix)
        if len(plan.pieces) == 1:
            return np.asarray(plan.pieces[0].view(data, self.dtype).astype(kind)).reshape(self.layout.shape)
        values = np.empty(self.layout.shape, kind)
        for piece in plan.pieces:
            values[piece.place] = piece.view(data, self.dtype).reshape(piece.shape)
        return values

    def write(self, memory: Memory, values: Values) -> None:
        """Store ``values``, which fit the type."""
        self.check(memory)
        plan = pieces(self.layout)
        data = memory.region(self.region, plan.low, plan.high, self.prefix, write=True)
        for piece in plan.pieces:
            view = piece.view(data, self.dtype)
            view[...] = values[piece.place].reshape(view.shape)

    def touch(self, writes: bool) -> Touch:
        """The bytes it spans."""
        plan = pieces(self.layout)
        return Touch(self.region, plan.low, plan.high, writes)


class Piece(NamedTuple):
    """Values of a map at even distances: where they stand in it, and extents and strides of y, x, bricks, channels."""

    place: tuple[slice, slice, slice]
    start: int
    extents: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and depth."""
        return self.extents[0], self.extents[1], self.extents[2] * self.extents[3]

    def view(self, data: Any, dtype: np.dtype[Any]) -> Values:
        """The values in a region, [y, x, brick, channel], not copied."""
        return np.ndarray(self.extents, dtype, data, self.start, self.strides)

    def span(self, size: int) -> tuple[int, int]:
        """The first byte and the one behind the last."""
        reach = [(extent - 1) * stride for extent, stride in zip(self.extents, self.strides, strict=True)]
        return self.start + sum(min(0, one) for one in reach), self.start + sum(max(0, one) for one in reach) + size


class Plan(NamedTuple):
    """The pieces that a map lies in, and the span of bytes that they take."""

    pieces: tuple[Piece, ...]
    low: int
    high: int


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
def pieces(layout: Layout) -> Plan:
    """Return where the values lie: a piece for each tile, and of bricks one more for a last one that is not full."""
    found = tuple(piece for tile in _tiles(layout) for piece in _of_tile(layout, *tile))
    spans = [piece.span(layout.size) for piece in found]
    return Plan(found, min(low for low, _ in spans), max(high for _, high in spans))


def _tiles(layout: Layout) -> list[tuple[int, slice, slice]]:
    """The base of each tile that holds values, with the rows and columns that it holds."""
    height, width, _ = layout.shape
    column = min(layout.width0, width)
    left, right = min(layout.height0, height), min(layout.height1, height)
    found = [(0, slice(0, left), slice(0, column)), (1, slice(0, right), slice(column, width)),
             (2, slice(left, height), slice(0, column)), (3, slice(right, height), slice(column, width))]
    return [tile for tile in found if tile[1].start < tile[1].stop and tile[2].start < tile[2].stop]


def _of_tile(layout: Layout, tile: int, rows: slice, columns: slice) -> list[Piece]:
    depth, base, size = layout.shape[2], layout.bases[tile], layout.size
    high, wide = rows.stop - rows.start, columns.stop - columns.start
    if not layout.bricks:
        return [Piece((rows, columns, slice(0, depth)), base, (high, wide, 1, depth),
                      (layout.stride_y, layout.stride_x, 0, size))]
    strides, found = (layout.stride_y, _BRICK * size, layout.stride_c, size), []
    full, rest = divmod(depth, _BRICK)
    if full:
        found.append(Piece((rows, columns, slice(0, full * _BRICK)), base, (high, wide, full, _BRICK), strides))
    if rest:
        found.append(Piece((rows, columns, slice(full * _BRICK, depth)), base + full * layout.stride_c,
                           (high, wide, 1, rest), strides))
    return found
