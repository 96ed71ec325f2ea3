"""Pooling commands: the largest, the average or the sum of what a window meets."""

from __future__ import annotations

from functools import reduce

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.memory import Memory, Touch
from vitrify.runtimes.npusim.machine.numerics import Values, divide, rescale
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.windows import Window, input_map, padded_input, window
from vitrify.runtimes.npusim.stream.commands import Pooling

_LEAST = -(1 << 31)


def pooling(mode: int, registers: Registers, memory: Memory) -> tuple[Values, list[Touch]]:
    """Return the scaled values of one command, and the bytes it read."""
    over = window(registers)
    source = input_map(registers, over)
    largest = mode == Pooling.MAX
    x = padded_input(source, memory, over, _LEAST if largest else 0)
    total = reduce(np.maximum if largest else np.add, over.sweep(x))
    if mode == Pooling.REDUCE_SUM:
        total = total.sum(axis=2, keepdims=True)
    elif total.shape[2] != over.output[2]:
        raise ModelError.of("npusim.geometry", f"pooling of {total.shape[2]} channels into {over.output[2]}",
                            why="the stream is damaged")
    touched = [source.touch(writes=False)]
    scaled = bool(registers.field("OFM_PRECISION", "global_scale"))
    scale, shift = registers.scaling("OFM_SCALE") if scaled else (1, 0)
    if largest and (scale, shift) != (1, 0):
        raise ModelError.of("npusim.not-modelled", f"a max pool with the scale {(scale, shift)}",
                            why="compilers disagree on what it means: only Vela 4.5's Regor was seen to make one")
    if mode == Pooling.AVERAGE and over.padded:
        return _average(total, over, (scale, shift)), touched
    return rescale(total, scale, shift, registers.field("OFM_PRECISION", "rounding")) if scaled else total, touched


def _average(total: Values, over: Window, scaling: tuple[int, int]) -> Values:
    """Divide by the taps that lie within the input: the chip does so wherever an average pool has padding."""
    if scaling != (1, 0):
        raise ModelError.of("npusim.not-modelled", f"an average pool with padding and the scale {scaling}",
                            why="no compiler was seen to make one")
    top, left, bottom, right = over.padding
    inside = np.pad(np.ones((*over.input, 1), np.int64), ((top, bottom), (left, right), (0, 0)))
    count = reduce(np.add, over.sweep(inside))
    if not count.all():
        raise ModelError.of("npusim.geometry", "an average of padding alone", why="the stream is damaged")
    return divide(total, count)
