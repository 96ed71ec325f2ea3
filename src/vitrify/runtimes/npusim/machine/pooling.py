"""Pooling commands: the largest, the average or the sum of what a window meets."""

from __future__ import annotations

from functools import reduce

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.memory import Memory
from vitrify.runtimes.npusim.machine.numerics import Values, divide, rescale
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.windows import Window, input_map, padded_input, window
from vitrify.runtimes.npusim.machine.work import Place, Work
from vitrify.runtimes.npusim.stream.commands import Pooling

_LEAST = -(1 << 31)
_NARROW = 16


def pooling(mode: int, registers: Registers, memory: Memory) -> Work:
    """Return what makes the scaled values of one command, and the bytes it read."""
    over = window(registers)
    source = input_map(registers, over)
    largest = mode == Pooling.MAX
    x = padded_input(source, memory, over, _LEAST if largest else 0, np.int32 if source.bits <= _NARROW else np.int64)
    if over.output[2] != (1 if mode == Pooling.REDUCE_SUM else x.shape[2]):
        raise ModelError.of("npusim.geometry", f"pooling of {x.shape[2]} channels into {over.output[2]}",
                            why="the stream is damaged")
    scaled = bool(registers.field("OFM_PRECISION", "global_scale"))
    scale, shift = registers.scaling("OFM_SCALE") if scaled else (1, 0)
    if largest and (scale, shift) != (1, 0):
        raise ModelError.of("npusim.not-modelled", f"a max pool with the scale {(scale, shift)}",
                            why="compilers disagree on what it means: only Vela 4.5's Regor was seen to make one")
    rounding = registers.field("OFM_PRECISION", "rounding")

    def made(place: Place) -> Values:
        part, below = over.part(x, place)
        total = reduce(np.maximum if largest else np.add, part.sweep(below.astype(np.int64)))
        if mode == Pooling.REDUCE_SUM:
            total = total.sum(axis=2, keepdims=True)
        if mode == Pooling.AVERAGE and over.padded:
            return _average(total, over, (scale, shift), place)
        return rescale(total, scale, shift, rounding) if scaled else total

    return Work(made, [source.touch(writes=False)], x.size)


def _average(total: Values, over: Window, scaling: tuple[int, int], place: Place) -> Values:
    """Divide by the taps that lie within the input: the chip does so wherever an average pool has padding."""
    if scaling != (1, 0):
        raise ModelError.of("npusim.not-modelled", f"an average pool with padding and the scale {scaling}",
                            why="no compiler was seen to make one")
    down, across = (_inside(over, axis) for axis in (0, 1))
    count = down[place.rows, None, None] * across[place.columns, None]
    if not count.all():
        raise ModelError.of("npusim.geometry", "an average of padding alone", why="the stream is damaged")
    return divide(total, count)


def _inside(over: Window, axis: int) -> Values:
    """How many of the window's rows (or columns) lie within the input, at each place."""
    places = np.arange(over.output[axis])[:, None] * over.stride[axis] \
        + np.arange(over.extent[axis]) * over.dilation[axis] - over.padding[axis]
    return np.asarray(((places >= 0) & (places < over.input[axis])).sum(1, dtype=np.int64))
