"""A file that Vela compiled for an Ethos-U55 or U65, as a runtime: run, traced and profiled by the source's names."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import ModelError, UsageError
from vitrify.data.binding import quantization_of, to_file_inputs, to_source_outputs
from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.ir.quantization import Quantization
from vitrify.runtimes.base import Array, Capabilities, Closing, Observation, Precision, Traced, zeros
from vitrify.runtimes.npusim.assembling import Collector, named
from vitrify.runtimes.npusim.compiled import CpuStep, NpuStep, read_program
from vitrify.runtimes.npusim.machine.machine import Done
from vitrify.runtimes.npusim.simulating import Simulator, outputs_of
from vitrify.runtimes.npusim.traffic import Meter, NpuProfile
from vitrify.tflite.annotations import INTERFACE
from vitrify.tflite.streams import STREAMS, CommandMap, decode_map

_PLAIN: dict[str, Any] = {"dtype": np.float32}
_STEPS = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16))
Watching = Callable[[int, Done], None]


class NpuSim(Closing):
    """Runs a compiled file on the host (see ``runtimes.base.Runtime``).

    It computes what the command streams say, in this process; the operators between them run in LiteRT's reference
    kernels. Inner tensors of the source model can be traced where the compiler keeps them and the file says so itself,
    as files compiled by Vitrify do.

    Raises:
        ModelError: the file is damaged, or compiled for a chip whose streams are not known.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.program = read_program(self.path)
        if not self.program.npu:
            raise ModelError.of("npusim.no-stream", f"{self.path} holds no command stream", where=str(self.path),
                                help="compile it first: vitrify compile MODEL --target imx93")
        self.simulator = Simulator(self.program)
        said = self.program.metadata.get(STREAMS)
        self.commands: CommandMap | None = None if said is None else decode_map(said, str(self.path))
        self._inputs = [self._details(place) for place in self.program.inputs]
        self._outputs = [self._details(place) for place in self.program.outputs]
        self._interface = self._read_interface()
        self._inner = named(self.commands)
        self.excess: dict[str, int] = {}
        """Tensors of the last traced run of which more values were stored than they have."""
        self._streams = {number: count for count, number in enumerate(
            number for number, step in enumerate(self.program.steps) if isinstance(step, NpuStep))}

    @property
    def name(self) -> str:
        """The chip that the streams are for, and what runs them."""
        return f"Vitrify's model of the {self.program.npu[0].accelerator.name}"

    @property
    def capabilities(self) -> Capabilities:
        """Inner tensors where the file says which command makes which."""
        return Capabilities(trace=True, profile=True)

    @property
    def interface(self) -> Interface:
        """What the source model takes and gives."""
        return self._interface

    @property
    def precision(self) -> Precision:
        """An NPU computes in integers."""
        return "integer"

    @property
    def aliases(self) -> dict[str, str]:
        """The file's tensor names of inputs and outputs, to the interface's names."""
        inputs = {self._inputs[b.position]["name"]: b.name for b in self._interface.inputs
                  if 0 <= b.position < len(self._inputs)}
        outputs = {self._outputs[b.parts[0].position]["name"]: b.name for b in self._interface.outputs
                   if len(b.parts) == 1 and self._interface.host is None}
        return inputs | outputs

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors of the source model that the streams make, then those between the steps."""
        return tuple(dict.fromkeys([*self._inner, *self._between()]))

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Give the source model's outputs for its inputs, by name."""
        raw = self.invoke_raw(to_file_inputs(self._interface, inputs, self._inputs))
        return to_source_outputs(self._interface, raw, self._outputs)

    def invoke_raw(self, arrays: Sequence[Array]) -> list[Array]:
        """Run on the file's own input tensors, in its order and types, and return its own output tensors."""
        return outputs_of(self.simulator.run(arrays), self.program)

    def trace_raw(self, arrays: Sequence[Array], tensors: Sequence[str] | None = None) -> dict[str, Array]:
        """Run on the file's own input tensors, and give inner tensors as the source holds them.

        A tensor that the compiler fused into another, or never made whole, is not among them.

        Raises:
            UsageError: a name is unknown.
        """
        return {name: value.raw for name, value in self._traced(arrays, tensors)[1].items()}

    def observe_raw(self, arrays: Sequence[Array], tensors: Sequence[str]) -> tuple[list[Array], dict[str, Array]]:
        """Run once on the file's own input tensors; return its outputs and the named inner tensors that are whole."""
        raw, traced = self._traced(arrays, tensors)
        return raw, {name: value.raw for name, value in traced.items()}

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str] | None = None) -> dict[str, Traced]:
        """Run, and give the values of the named inner tensors, or of all; those that never are whole are left out.

        Raises:
            UsageError: a name is unknown.
        """
        return self._traced(to_file_inputs(self._interface, inputs, self._inputs), tensors)[1]

    def observe(self, inputs: Mapping[str, Array], tensors: Sequence[str] = ()) -> Observation:
        """Run once, and give the outputs together with the named inner tensors."""
        raw, traced = self._traced(to_file_inputs(self._interface, inputs, self._inputs), tensors)
        steps, saturated = self._coarseness(raw)
        return Observation(outputs=to_source_outputs(self._interface, raw, self._outputs), tensors=traced, steps=steps,
                           saturated=saturated)

    def profile(self, inputs: Mapping[str, Array] | None = None, runs: int = 3, warmup: int = 1) -> NpuProfile:
        """Measure the time of a run here, and count what each command moves; without inputs, on zeros."""
        arrays = to_file_inputs(self._interface, inputs or zeros(self._interface), self._inputs)
        meter = Meter(self.commands)
        self.simulator.run(arrays, self._by_stream(meter))
        seconds = []
        for number in range(warmup - 1 + runs):
            start = time.perf_counter()
            self.simulator.run(arrays)
            if number >= warmup - 1:
                seconds.append(time.perf_counter() - start)
        plain = NpuProfile.of(seconds, warmup, f"{self.name}, on this machine: no time of a chip")
        sizes = {"arena": max(step.arena_bytes for step in self.program.npu),
                 "fast arena": max(step.fast_bytes for step in self.program.npu),
                 "constants": sum(step.constants.size for step in self.program.npu)}
        return NpuProfile(**msgspec.structs.asdict(plain) | {
            "commands": tuple(meter.rows), "nodes": meter.nodes(), "memory_bytes": sizes})

    def close(self) -> None:
        """End the processes of the operators on the CPU."""
        self.simulator.close()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.path.name}>"

    def _traced(self, arrays: Sequence[Array],
                tensors: Sequence[str] | None) -> tuple[list[Array], dict[str, Traced]]:
        wanted = self.tensors if tensors is None else tensors
        known, between = set(self.tensors), self._between()
        missing = [name for name in wanted if name not in known]
        if missing:
            raise UsageError.of("runtime.tensor", f"no tensor '{missing[0]}' in {self.path.name}",
                                why="it is not in the source model, or the compiler made none of it" if self.commands
                                else "the file does not say what its commands compute",
                                help="" if self.commands else "compile it with `vitrify compile`, which notes it")
        collector = Collector(self.commands, set(wanted)) if self.commands is not None and wanted else None
        values = self.simulator.run(arrays, None if collector is None else self._by_stream(collector))
        whole = {} if collector is None else collector.values()
        self.excess = {} if collector is None else collector.excess()
        traced = {}
        for name in wanted:
            if name in whole:
                traced[name] = Traced(raw=whole[name], quantization=self._inner[name].quantization)
            elif name in between and between[name] in values:
                traced[name] = Traced(raw=values[between[name]],
                                      quantization=quantization_of(self._details(between[name])))
        return outputs_of(values, self.program), traced

    def _by_stream(self, watch: Watching) -> Watching:
        """Number the NPU operators for what watches; the simulator numbers all steps."""
        return lambda number, done: watch(self._streams[number], done)

    def _between(self) -> dict[str, int]:
        """What steps give, by name, outputs of the file included."""
        places = [place for step in self.program.steps for place in (
            step.outputs if isinstance(step, CpuStep) else [placed.tensor for placed in step.outputs])]
        return {self.program.tensors[place].name: place for place in places if self.program.tensors[place].name}

    def _details(self, place: int) -> dict[str, Any]:
        """Describe a tensor of the file as ``data.binding`` reads it."""
        record = self.program.tensors[place]
        found = record.quantization
        parameters = {} if found is None or found.scale is None or not len(found.scale) else {
            "scales": found.scale, "zero_points": found.zero_point if found.zero_point is not None else np.zeros(1),
            "quantized_dimension": found.quantized_dimension}
        return {"name": record.name or "", "shape": self.program.shape(place), "dtype": self.program.dtype(place),
                "quantization_parameters": parameters}

    def _read_interface(self) -> Interface:
        said = self.program.metadata.get(INTERFACE)
        if said is not None:
            try:
                found = msgspec.json.decode(said, type=Interface)
            except msgspec.MsgspecError as error:
                raise ModelError.of("tflite.metadata", f"the entry '{INTERFACE}' cannot be used: {error}",
                                    where=str(self.path)) from error
            if all(0 <= b.position < len(self._inputs) for b in found.inputs) and (found.host is not None or all(
                    0 <= part.position < len(self._outputs) for b in found.outputs for part in b.parts)):
                return found
        return Interface(
            inputs=tuple(InputBinding(name=d["name"], shape=d["shape"], dtype=_dtype(d), position=n)
                         for n, d in enumerate(self._inputs)),
            outputs=tuple(OutputBinding(name=d["name"], shape=d["shape"], dtype=_dtype(d), parts=(Part(position=n),))
                          for n, d in enumerate(self._outputs)), source_format="tflite")

    def _coarseness(self, raw: Sequence[Array]) -> tuple[dict[str, Array], dict[str, float]]:
        """The size of a step at each element of the outputs, and the share that stands at an end of its range."""
        scales = [_scale(d) for d in self._outputs]
        if self._interface.host is not None or not any(scales):
            return {}, {}
        plain = [_PLAIN] * len(raw)
        sizes = [np.broadcast_to(np.float32(scale), array.shape) for scale, array in zip(scales, raw, strict=True)]
        ends = [_at_end(array) if scale else np.zeros(array.shape, np.float32)
                for scale, array in zip(scales, raw, strict=True)]
        steps = {name: np.abs(size) for name, size in to_source_outputs(self._interface, sizes, plain).items()
                 if np.any(size)}
        at_end = to_source_outputs(self._interface, ends, plain)
        return steps, {name: float(np.mean(at_end[name] != 0)) for name in steps}


def _dtype(details: Mapping[str, Any]) -> str:
    return "float32" if _scale(details) else str(np.dtype(details["dtype"]).name)


def _scale(details: Mapping[str, Any]) -> float:
    found: Quantization | None = quantization_of(details)
    return float(found.scale[0]) if found is not None and details["dtype"] in _STEPS else 0.0


def _at_end(array: Array) -> Array:
    """1 where a step stands at an end of its type, else 0."""
    info = np.iinfo(array.dtype)
    ends: Array = (array == info.min) | (array == info.max)
    return ends.astype(np.float32)
