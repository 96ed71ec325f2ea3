"""An Ethos-U that executes a command stream, one command after the other: what it computes, not how long it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.runtimes.npusim.machine.activation import finish
from vitrify.runtimes.npusim.machine.convolving import convolving
from vitrify.runtimes.npusim.machine.elementwise import elementwise
from vitrify.runtimes.npusim.machine.features import FeatureMap, feature_map
from vitrify.runtimes.npusim.machine.memory import Bytes, Memory, Touch
from vitrify.runtimes.npusim.machine.pooling import pooling
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.transfers import transfer
from vitrify.runtimes.npusim.machine.windows import output_shape, window
from vitrify.runtimes.npusim.machine.work import Work
from vitrify.runtimes.npusim.stream.payload import Accelerator
from vitrify.runtimes.npusim.stream.words import Command
from vitrify.runtimes.npusim.weights import WeightStore

_TABLES_KB = 2
_KERNELS = ("CONV", "DEPTHWISE", "POOL", "ELEMENTWISE")
_NO_EFFECT = frozenset({"DMA_WAIT", "KERNEL_WAIT", "IRQ", "PMU_MASK"})
"""They order what runs at the same time; here one command runs after the other."""


class Done(NamedTuple):
    """A command that computed or copied something: the bytes it read and wrote, the map it made, its products."""

    command: Command
    touched: Sequence[Touch]
    output: FeatureMap | None = None
    values: Any = None
    macs: int = 0


Watch = Callable[[Done], None]


class Machine:
    """One accelerator with its memories. All NPU operators of a model share the arena, in which values stay."""

    def __init__(self, accelerator: Accelerator, constants: Bytes, arena: Bytes, fast: Bytes,
                 weights: WeightStore | None = None) -> None:
        self.accelerator = accelerator
        self.weights = WeightStore(0) if weights is None else weights
        internal = accelerator.shram_kb // accelerator.cores * 1024
        self.memory = Memory(constants, arena, fast, internal)
        self.counts: Counter[str] = Counter()
        self._tables = internal - _TABLES_KB * 1024

    def run(self, commands: Sequence[Command], watch: Watch | None = None) -> None:
        """Execute ``commands``; ``watch`` sees each one that computed or copied something.

        Raises:
            ModelError: a command is not possible; says which, and where it is in the stream.
        """
        registers = Registers()
        for command in commands:
            name = command.spec.name
            if not command.spec.acts:
                registers.set(command)
                continue
            self.counts[name] += 1
            if name == "STOP":
                return
            if name in _NO_EFFECT:
                continue
            try:
                done = self._execute(command, registers)
            except VitrifyError as error:
                raise _placed(error, command) from None
            if watch is not None:
                watch(done)

    def _execute(self, command: Command, registers: Registers) -> Done:
        if command.spec.name == "DMA_START":
            return Done(command, transfer(registers, self.memory))
        output = feature_map(registers, "OFM", output_shape(registers))
        output.check(self.memory)
        work = self._kernel(command, registers)
        stored = np.empty(output.layout.shape, output.dtype)
        for place in work.parts(output.layout.shape):
            stored[place] = finish(work.made(place), output, registers, self.memory, self._tables)
        output.write(self.memory, stored)
        return Done(command, [*work.touched, output.touch(writes=True)], output, stored,
                    stored.size * _products(command.spec.name, registers))

    def _kernel(self, command: Command, registers: Registers) -> Work:
        name, mode = command.spec.name, command.field()
        if name == "ELEMENTWISE":
            return elementwise(mode, registers, self.memory, output_shape(registers))
        if name == "POOL":
            return pooling(mode, registers, self.memory)
        return convolving(name == "DEPTHWISE", registers, self.memory, self.accelerator, self.weights)


def _products(name: str, registers: Registers) -> int:
    """Multiplications per value of the output."""
    if name not in ("CONV", "DEPTHWISE"):
        return 0
    high, wide = window(registers).extent
    return high * wide * (registers["IFM_DEPTH_M1"] + 1 if name == "CONV" else 1)


_HELP = "compile the model again; vitrify inspect FILE --commands shows the stream up to there"


def _placed(error: VitrifyError, command: Command) -> VitrifyError:
    """Say which command it was, and what to do."""
    import msgspec

    where = f"{command.spec.name} at byte {command.offset} of the command stream"
    return type(error)([msgspec.structs.replace(finding, where=where, help=finding.help or _HELP)
                        for finding in error.findings])
