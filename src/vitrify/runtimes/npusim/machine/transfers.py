"""DMA commands: bytes from one memory to another, in one to three dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.memory import INTERNAL, Memory, Touch
from vitrify.runtimes.npusim.machine.registers import Registers


class Side(NamedTuple):
    """Where bytes come from or go to: runs of ``length`` bytes, ``counts`` of them, ``steps`` from start to start."""

    region: int
    start: int
    length: int
    counts: tuple[int, int] = (1, 1)
    steps: tuple[int, int] = (0, 0)

    @property
    def span(self) -> tuple[int, int]:
        """The first byte, and the one behind the last."""
        reach = [(count - 1) * step for count, step in zip(self.counts, self.steps, strict=True)]
        return (self.start + sum(min(far, 0) for far in reach),
                self.start + sum(max(far, 0) for far in reach) + self.length)

    @property
    def total(self) -> int:
        """How many bytes there are."""
        return self.length * self.counts[0] * self.counts[1]

    def places(self) -> Any:
        """Where each byte lies, or a slice of one run."""
        if self.counts == (1, 1):
            return slice(self.start, self.start + self.length)
        outer, inner = np.arange(self.counts[1])[:, None, None], np.arange(self.counts[0])[:, None]
        return (self.start + outer * self.steps[1] + inner * self.steps[0] + np.arange(self.length)).reshape(-1)


def transfer(registers: Registers, memory: Memory) -> list[Touch]:
    """Copy; return the bytes read and written.

    One side may be strided: SKIP0 bytes are left out behind each run of LEN bytes, SKIP1 more behind each SIZE0 of
    them, SIZE1 times in all. Source: the Linux driver ``drivers/accel/ethosu``, which computes the extent so; Vela
    4.5's Regor makes TILE of such transfers.
    """
    source, target = sides(registers)
    read = memory.region(source.region, *source.span, "DMA source")
    written = memory.region(target.region, *target.span, "DMA destination", write=True)
    if source.total != target.total:
        raise ModelError.of("npusim.geometry", f"a DMA transfer of {source.total} bytes into {target.total}",
                            why="the stream is damaged")
    written[target.places()] = np.array(read[source.places()])
    return [Touch(source.region, *source.span, writes=False), Touch(target.region, *target.span, writes=True)]


def sides(registers: Registers) -> tuple[Side, Side]:
    """What a transfer reads, and what it writes.

    Raises:
        ModelError: both sides are strided, for which there is one row of registers only.
    """
    modes = [registers.field(f"DMA0_{name}_REGION", "stride_mode") for name in ("SRC", "DST")]
    if all(modes):
        raise ModelError.of("npusim.not-modelled", "a DMA transfer with strides at both sides",
                            why="no compiler was seen to make one")
    length, counts, steps = registers["DMA0_LEN"], (1, 1), (0, 0)
    if mode := max(modes):
        first = registers["DMA0_SIZE0"]
        step = length + registers["DMA0_SKIP0"]
        counts, steps = (first, 1), (step, 0)
        if mode == 2:
            counts, steps = (first, registers["DMA0_SIZE1"]), (step, step * first + registers["DMA0_SKIP1"])
    total = length * counts[0] * counts[1]
    found = [Side(*_start(registers, name), length, counts, steps) if strided else Side(*_start(registers, name), total)
             for name, strided in zip(("SRC", "DST"), modes, strict=True)]
    if total < 1:
        raise ModelError.of("npusim.geometry", "a DMA transfer of no bytes", why="the stream is damaged")
    return found[0], found[1]


def _start(registers: Registers, name: str) -> tuple[int, int]:
    inside = registers.field(f"DMA0_{name}_REGION", "internal")
    return INTERNAL if inside else registers.field(f"DMA0_{name}_REGION", "region"), registers[f"DMA0_{name}"]
