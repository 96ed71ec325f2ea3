"""One run of a compiled file on the host: NPU operators here, the CPU's by LiteRT's reference kernels, in one arena."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.core.files import make_temporary_folder
from vitrify.runtimes.base import Array
from vitrify.runtimes.npusim.compiled import CpuStep, NpuStep, Placed, Program
from vitrify.runtimes.npusim.machine.machine import Done, Machine
from vitrify.runtimes.npusim.machine.memory import ARENA
from vitrify.runtimes.npusim.weights import WeightStore

StepWatch = Callable[[int, Done], None]
_DECODED = 4
"""How many times the bytes of constants and arenas the decoded weights may take that are kept between runs."""


class Simulator:
    """Runs a program; the processes of its CPU steps live until ``close``."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.counts: Counter[str] = Counter()
        self._weights = WeightStore(_DECODED * sum(step.constants.size + step.arena_bytes + step.fast_bytes
                                                   for step in program.npu))
        self._folder: Path | None = None
        self._cpu: dict[int, Any] = {}

    def run(self, inputs: Sequence[Array], watch: StepWatch | None = None) -> dict[int, Array]:
        """Return every tensor that steps give, by its number; ``inputs`` are the file's own, in its order.

        Raises:
            VitrifyError: a step is not possible.
        """
        program = self.program
        values: dict[int, Array] = dict(zip(program.inputs, map(np.ascontiguousarray, inputs), strict=True))
        arena = np.zeros(max((step.arena_bytes for step in program.npu), default=0), np.uint8)
        fast = np.zeros(max((step.fast_bytes for step in program.npu), default=0), np.uint8)
        for number, step in enumerate(program.steps):
            if isinstance(step, CpuStep):
                given = self._runtime(number, step).invoke_raw([values[place] for place in step.inputs])
                values.update(zip(step.outputs, given, strict=True))
            else:
                self._npu(number, step, values, arena, fast, watch)
        return values

    def _npu(self, number: int, step: NpuStep, values: dict[int, Array], arena: Array, fast: Array,
             watch: StepWatch | None) -> None:
        for placed in step.inputs:
            raw = np.ascontiguousarray(self._given(values, placed.tensor)).view(np.uint8).reshape(-1)
            _bounded(arena, placed, raw.size)[:] = raw
        machine = Machine(step.accelerator, step.constants, arena, fast, self._weights)
        machine.run(step.commands, None if watch is None else lambda done: watch(number, done))
        for placed in step.outputs:
            shape, dtype = self.program.shape(placed.tensor), self.program.dtype(placed.tensor)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            values[placed.tensor] = _bounded(arena, placed, size).copy().view(dtype).reshape(shape)
        self.counts.update(machine.counts)

    def _given(self, values: Mapping[int, Array], tensor: int) -> Array:
        """A value that exists, or the first one of a state: zero in its own scale, as TFLite resets variables."""
        record = self.program.tensors[tensor]
        if tensor in values or not record.is_variable:
            return values[tensor]
        zero = None if record.quantization is None else record.quantization.zero_point
        return np.full(self.program.shape(tensor), 0 if zero is None or not len(zero) else int(zero[0]),
                       self.program.dtype(tensor))

    def _runtime(self, number: int, step: CpuStep) -> Any:
        if number not in self._cpu:
            from vitrify.runtimes.litert import LiteRT

            self._folder = self._folder or make_temporary_folder()
            path = self._folder / f"step{number}.tflite"
            path.write_bytes(step.file)
            self._cpu[number] = LiteRT(path, keep_state=True)
        return self._cpu[number]

    def close(self) -> None:
        """End the processes of CPU steps, and remove their files."""
        import shutil

        for runtime in self._cpu.values():
            runtime.close()
        self._cpu.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _bounded(arena: Array, placed: Placed, size: int) -> Array:
    if placed.offset + size > arena.size:
        raise ModelError.of("npusim.out-of-bounds", f"a tensor of {size} bytes at {placed.offset} of an arena of "
                            f"{arena.size}", where=f"region {ARENA}", why="the compiled file is damaged")
    return arena[placed.offset:placed.offset + size]


def outputs_of(values: Mapping[int, Array], program: Program) -> list[Array]:
    """The file's own outputs, in its order."""
    return [values[place] for place in program.outputs]
