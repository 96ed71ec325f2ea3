"""Whether a command stream waits where it must: DMA transfers and kernels that touch the same bytes at the same time.

The model executes one command after the other; the chip does not. What it guarantees is assumed to be this, as Vela's
own insertion of waits does: transfers follow each other, and so do kernels; a kernel and a transfer run at once unless
a wait is between them. DMA_WAIT n holds what follows until at most n transfers run, KERNEL_WAIT n likewise. At most two
kernels run, and two transfers (one in the U55); one more holds until the oldest has ended. Of two kernels that follow
each other, the second starts within the last blocks of the first unless BLOCKDEP is 0: what it reads for its first
value, of a convolution the first block of channels, may then not hold the last value of the first.

Source: Vela 5.2.0, ``register_command_stream_util.py`` (``get_wait_dependency``, ``calc_blockdep``) and
``architecture_features.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vitrify.runtimes.npusim.compiled import NpuStep
from vitrify.runtimes.npusim.machine.elementwise import operands
from vitrify.runtimes.npusim.machine.features import FeatureMap, feature_map
from vitrify.runtimes.npusim.machine.memory import INTERNAL, Touch
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.transfers import sides
from vitrify.runtimes.npusim.machine.windows import input_map, output_shape, window
from vitrify.runtimes.npusim.stream.commands import Pooling
from vitrify.runtimes.npusim.stream.payload import Accelerator
from vitrify.runtimes.npusim.stream.words import Command

_KERNELS = 2
_TRANSFERS = {0: 1, 1: 2}      # by product: the U55, the U65
_TABLE, _FIRST_TABLE, _TABLES_KB = 256, 16, 2
_BRICK = 16
_ENTRIES = {8: 256, 16: 512 * 4, 32: 256 * 4}


class Hazard(NamedTuple):
    """A command that may start while an earlier one still uses the same bytes."""

    earlier: Command
    later: Command
    region: int
    start: int
    end: int

    def __str__(self) -> str:
        return (f"{self.later.spec.name} at byte {self.later.offset} may run while {self.earlier.spec.name} at byte "
                f"{self.earlier.offset} still uses bytes {self.start}..{self.end} of region {self.region}")


class First(NamedTuple):
    """A map that a kernel reads, and the part of it that its first value is made of."""

    map: FeatureMap
    rows: int = 1
    columns: int = 1
    channels: int = 1


class Running(NamedTuple):
    """A command that may not have ended, with what it touches and the maps it reads and writes."""

    command: Command
    touched: tuple[Touch, ...]
    reads: tuple[First, ...] = ()
    writes: FeatureMap | None = None


def hazards(step: NpuStep) -> Iterator[Hazard]:
    """Yield what runs at the same time and touches the same bytes, one of the two writing.

    Raises:
        ModelError: a command is not possible.
    """
    registers = Registers()
    kernels: list[Running] = []
    transfers: list[Running] = []
    previous: Running | None = None
    for command in step.commands:
        name = command.spec.name
        if not command.spec.acts:
            registers.set(command)
        elif name == "STOP":
            return
        elif name in ("DMA_WAIT", "KERNEL_WAIT"):
            waiting = transfers if name == "DMA_WAIT" else kernels
            del waiting[:max(0, len(waiting) - command.field())]
        elif name == "DMA_START":
            now = _transfer(command, registers)
            yield from _conflicts(now, kernels)
            transfers.append(now)
            del transfers[:max(0, len(transfers) - _TRANSFERS[step.accelerator.product])]
        elif name in ("CONV", "DEPTHWISE", "POOL", "ELEMENTWISE"):
            now = _kernel(command, registers, step.accelerator)
            yield from _conflicts(now, transfers)
            if previous is not None and registers["BLOCKDEP"]:
                yield from _overtaken(now, previous)
            kernels.append(now)
            del kernels[:max(0, len(kernels) - _KERNELS)]
            previous = now


def _conflicts(now: Running, others: Sequence[Running]) -> Iterator[Hazard]:
    for other in others:
        for one in now.touched:
            for held in other.touched:
                start, end = max(one.start, held.start), min(one.end, held.end)
                if one.region == held.region and (one.writes or held.writes) and start < end:
                    yield Hazard(other.command, now.command, one.region, start, end)


def _overtaken(now: Running, before: Running) -> Iterator[Hazard]:
    """A kernel whose first value is made of what the one before writes last."""
    written = before.writes
    assert written is not None
    last = int(_places(written)[-1, -1, -1])
    for read in now.reads:
        first = _places(read.map)[:read.rows, :read.columns, :read.channels]
        if read.map.region == written.region and bool((abs(first - last) < written.layout.size).any()):
            yield Hazard(before.command, now.command, written.region, last, last + written.layout.size)


def _places(map_: FeatureMap) -> Any:
    """The address of each value."""
    layout = map_.layout
    height, width, depth = layout.shape
    y, x, channel = np.arange(height)[:, None, None], np.arange(width)[:, None], np.arange(depth)
    right = x >= layout.width0
    limit = np.where(right, layout.height1, layout.height0)
    below = y >= limit
    row, column = y - np.where(below, limit, 0), x - np.where(right, layout.width0, 0)
    at = np.array(layout.bases, np.int64)[right + 2 * below] + row * layout.stride_y
    if layout.bricks:
        return at + column * _BRICK * layout.size + channel // _BRICK * layout.stride_c + channel % _BRICK * layout.size
    return at + column * layout.stride_x + channel * layout.size


def _transfer(command: Command, registers: Registers) -> Running:
    source, target = sides(registers)
    return Running(command, (Touch(source.region, *source.span, writes=False),
                             Touch(target.region, *target.span, writes=True)))


def _kernel(command: Command, registers: Registers, accelerator: Accelerator) -> Running:
    shape = output_shape(registers)
    written = feature_map(registers, "OFM", shape)
    if command.spec.name == "ELEMENTWISE":
        read = tuple(map(First, operands(command.field(), registers, shape)))
    else:
        read = (_window(command, registers),)
    touched = [written.touch(writes=True), *(one.map.touch(writes=False) for one in read)]
    if command.spec.name in ("CONV", "DEPTHWISE"):
        touched += _constants(registers, min(accelerator.cores, shape[2]))
    function = registers.field("ACTIVATION", "function")
    if function >= _FIRST_TABLE:
        tables = accelerator.shram_kb // accelerator.cores * 1024 - _TABLES_KB * 1024
        start = tables + _TABLE * (function - _FIRST_TABLE)
        touched.append(Touch(INTERNAL, start, start + _ENTRIES[written.bits], writes=False))
    return Running(command, tuple(touched), read, written)


def _window(command: Command, registers: Registers) -> First:
    """What the window meets in its first place; a block of channels where each result is made of all."""
    over = window(registers)
    (high, wide), (down, across), (top, left) = over.extent, over.dilation, over.padding[:2]
    by = 2 if over.upscale else 1
    source = input_map(registers, over)
    narrow = over.part_kernel or source.bits == 16
    summed = command.spec.name == "CONV" or (command.spec.name == "POOL" and command.field() == Pooling.REDUCE_SUM)
    return First(source, max(1, -(-((high - 1) * down + 1 - top) // by)),
                 max(1, -(-((wide - 1) * across + 1 - left) // by)), (16 if narrow else 32) if summed else 1)


def _constants(registers: Registers, cores: int) -> Iterator[Touch]:
    for core in ("", "1")[:cores]:
        for name in ("WEIGHT", "SCALE"):
            start = registers[f"{name}{core}_BASE"]
            yield Touch(registers[f"{name}_REGION"], start, start + registers[f"{name}{core}_LENGTH"], writes=False)
