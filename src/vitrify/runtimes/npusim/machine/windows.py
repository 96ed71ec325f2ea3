"""Commands that move a window over their input: its geometry from the registers, and the input made ready for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.features import FeatureMap, feature_map
from vitrify.runtimes.npusim.machine.memory import Memory
from vitrify.runtimes.npusim.machine.numerics import Values
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.work import Place
from vitrify.runtimes.npusim.stream.commands import Upscale

_SPREAD = 8
"""Upscaling makes four values of one; padding is a few rows and columns more."""
_MOST = 1 << 37
"""Multiplications of one command: a tenth of a second on the largest of these chips."""


class Window(NamedTuple):
    """A window: its extents, strides and dilation (each y, x), the padding, and the output's extents."""

    extent: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    output: tuple[int, int, int]
    part_kernel: bool
    upscale: int

    @property
    def taps(self) -> list[tuple[int, int]]:
        """Row and column of each element of the window."""
        return [(y, x) for y in range(self.extent[0]) for x in range(self.extent[1])]

    @property
    def input(self) -> tuple[int, int]:
        """Height and width of the input, after upscaling: no register holds them."""
        top, left, bottom, right = self.padding
        high, wide = ((count - 1) * step + (size - 1) * spread + 1 for count, step, size, spread in zip(
            self.output[:2], self.stride, self.extent, self.dilation, strict=True))
        return high - top - bottom, wide - left - right

    @property
    def padded(self) -> bool:
        """True when any side has padding."""
        return any(self.padding)

    def cut(self, x: Values, tap: tuple[int, int]) -> Values:
        """Return the values of a padded input that one element of the window meets."""
        (rows, columns), (sy, sx) = self.output[:2], self.stride
        y0, x0 = tap[0] * self.dilation[0], tap[1] * self.dilation[1]
        return x[y0:y0 + (rows - 1) * sy + 1:sy, x0:x0 + (columns - 1) * sx + 1:sx]

    def sweep(self, x: Values) -> Iterator[Values]:
        """Yield the values that each element of the window meets."""
        return (self.cut(x, tap) for tap in self.taps)

    def part(self, x: Values, place: Place) -> tuple[Window, Values]:
        """Return the window over a part of the output, and what it meets of a padded input."""
        axes = zip(place, self.stride, self.extent, self.dilation, strict=True)
        rows, columns = (slice(one.start * step, (one.stop - 1) * step + (size - 1) * spread + 1)
                         for one, step, size, spread in axes)
        high, wide = (one.stop - one.start for one in place)
        return self._replace(output=(high, wide, self.output[2])), x[rows, columns]


def window(registers: Registers) -> Window:
    """Return the window that the registers describe.

    Raises:
        ModelError: it reads less than nothing.
    """
    stride = "KERNEL_STRIDE"
    steps = tuple(1 + registers.field(stride, low) + 2 * registers.field(stride, f"{low}_high") for low in ("y", "x"))
    spread = tuple(1 + registers.field(stride, f"dilation_{axis}") for axis in ("y", "x"))
    extent = tuple(registers[f"KERNEL_{name}_M1"] // by + 1
                   for name, by in zip(("HEIGHT", "WIDTH"), spread, strict=True))
    sides = tuple(registers[f"IFM_PAD_{side}"] for side in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
    found = Window((extent[0], extent[1]), (steps[0], steps[1]), (spread[0], spread[1]),
                   (sides[0], sides[1], sides[2], sides[3]), output_shape(registers),
                   bool(registers.field(stride, "part_kernel")), registers["IFM_UPSCALE"])
    if min(found.input) < 1:
        raise ModelError.of("npusim.geometry", f"a window of {found.extent} with padding {found.padding} leaves an "
                            f"input of {found.input}", why="the stream is damaged")
    rows, columns, depth = found.output
    work = rows * columns * depth * found.extent[0] * found.extent[1] * (registers["IFM_DEPTH_M1"] + 1)
    if work > _MOST:
        raise ModelError.of("npusim.geometry", f"a command of {work} multiplications; {_MOST} are run",
                            why="the stream is damaged")
    return found


def output_shape(registers: Registers) -> tuple[int, int, int]:
    """Height, width and depth of the output."""
    return registers["OFM_HEIGHT_M1"] + 1, registers["OFM_WIDTH_M1"] + 1, registers["OFM_DEPTH_M1"] + 1


def input_map(registers: Registers, over: Window) -> FeatureMap:
    """Return the map that a window moves over, as it lies in memory."""
    high, wide = over.input
    if over.upscale:
        high, wide = -(-high // 2), -(-wide // 2)
    return feature_map(registers, "IFM", (high, wide, registers["IFM_DEPTH_M1"] + 1))


def padded_input(source: FeatureMap, memory: Memory, over: Window, fill: int, kind: Any = np.int64) -> Values:
    """Return the input less its zero point, upscaled and padded with ``fill``, in a type that holds it."""
    high, wide = over.input
    top, left, bottom, right = over.padding
    memory.room(source.region, (high + top + bottom) * (wide + left + right) * source.layout.shape[2],
                "a padded input", _SPREAD)
    x = source.read_as(memory, kind)
    x -= kind(source.zero_point)
    if over.upscale == Upscale.NEAREST:
        x = x.repeat(2, 0).repeat(2, 1)[:high, :wide]
    elif over.upscale == Upscale.ZEROS:
        spread = np.zeros((2 * x.shape[0], 2 * x.shape[1], x.shape[2]), x.dtype)
        spread[::2, ::2] = x
        x = spread[:high, :wide]
    if not over.padded:
        return x
    whole = np.full((x.shape[0] + top + bottom, x.shape[1] + left + right, x.shape[2]), fill, kind)
    whole[top:top + x.shape[0], left:left + x.shape[1]] = x
    return whole
