"""DMA commands: bytes from one memory to another, in one to three dimensions."""

from __future__ import annotations

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.memory import INTERNAL, Memory, Touch
from vitrify.runtimes.npusim.machine.registers import Registers


def transfer(registers: Registers, memory: Memory) -> list[Touch]:
    """Copy; return the bytes read and written.

    A transfer in two dimensions repeats its run of bytes SIZE0 times with SKIP0 bytes from one start to the next at the
    strided side; one in three dimensions repeats that SIZE1 times with SKIP1. Source: the Linux driver
    ``drivers/accel/ethosu``; no compiler was seen to emit more than one dimension for these chips.
    """
    source, target = _side(registers, "SRC"), _side(registers, "DST")
    length = registers["DMA0_LEN"]
    mode = registers.field("DMA0_SRC_REGION", "stride_mode")
    if mode:
        raise ModelError.of("npusim.not-modelled", f"a DMA transfer in {mode + 1} dimensions",
                            why="no compiler was seen to make one for these chips")
    read = memory.region(source[0], source[1], source[1] + length, "DMA source")
    written = memory.region(target[0], target[1], target[1] + length, "DMA destination", write=True)
    written[target[1]:target[1] + length] = np.array(read[source[1]:source[1] + length])
    return [Touch(source[0], source[1], source[1] + length, writes=False),
            Touch(target[0], target[1], target[1] + length, writes=True)]


def _side(registers: Registers, name: str) -> tuple[int, int]:
    inside = registers.field(f"DMA0_{name}_REGION", "internal")
    return INTERNAL if inside else registers.field(f"DMA0_{name}_REGION", "region"), registers[f"DMA0_{name}"]
