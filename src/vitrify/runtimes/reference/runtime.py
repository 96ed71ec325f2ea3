"""A TFLite file run tensor by tensor in numpy, by the source model's names; no outside code takes part."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.data.binding import identity_interface, to_file_inputs, to_source_outputs
from vitrify.data.limits import beyond, index_limits
from vitrify.ir import Model, Tensor
from vitrify.ir.interface import Interface
from vitrify.ops.interpreter import Interpreter
from vitrify.runtimes.base import Array, Capabilities, Closing, Observation, Precision, Profile, Traced, zeros

_STEPS = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16))
_PLAIN: dict[str, Any] = {"dtype": np.float32}


class Reference(Closing):
    """Runs a TFLite file, or a model in memory, in numpy (see ``runtimes.base.Runtime``).

    Variables start afresh with each run unless ``keep_state`` is set.

    Raises:
        VitrifyError: the file cannot be read.
    """

    def __init__(self, source: Path | str | Model, *, keep_state: bool = False) -> None:
        self.model = source if isinstance(source, Model) else _read(source)
        self.keep_state = keep_state
        self._interpreter = Interpreter(self.model)
        self._interface = self.model.interface or identity_interface(self.model)
        self._limits = index_limits(self.model, self._interface)
        graph = self.model.main
        self._inputs = [_details(tensor) for tensor in graph.inputs]
        self._outputs = [_details(tensor) for tensor in graph.outputs]
        self._computed = {t.name: t for node in graph for t in node.outputs if t.name and t.dtype.numpy is not None}

    @property
    def name(self) -> str:
        """``Vitrify, numpy references``."""
        return "Vitrify, numpy references"

    @property
    def capabilities(self) -> Capabilities:
        """Everything but times of single operators."""
        return Capabilities(trace=True, profile=True)

    @property
    def interface(self) -> Interface:
        """What the source model takes and gives."""
        return self._interface

    @property
    def precision(self) -> Precision:
        """``integer`` when tensors or weights are integers with a scale."""
        tensors = self.model.main.tensors()
        if any(t.quantization is not None and t.dtype.numpy in _STEPS for t in tensors):
            return "integer"
        return "float16" if any(t.dtype.numpy == np.float16 for t in tensors) else "float32"

    @property
    def aliases(self) -> dict[str, str]:
        """The file's tensor names of inputs and outputs, to the interface's names."""
        graph = self.model.main
        inputs = {graph.inputs[b.position].name: b.name for b in self._interface.inputs}
        outputs = {graph.outputs[b.parts[0].position].name: b.name for b in self._interface.outputs
                   if len(b.parts) == 1 and self._interface.host is None}
        return inputs | outputs

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors that the main graph computes, in its order."""
        return tuple(self._computed)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Give the source model's outputs for its inputs, by name."""
        return self.observe(inputs).outputs

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str] | None = None) -> dict[str, Traced]:
        """Run, and give the values of the named inner tensors, or of all that are computed.

        Raises:
            UsageError: a name is unknown.
        """
        return self.observe(inputs, self.tensors if tensors is None else tensors).tensors

    def observe(self, inputs: Mapping[str, Array], tensors: Sequence[str] = ()) -> Observation:
        """Run once, and give the outputs together with the named inner tensors."""
        missing = [name for name in tensors if name not in self._computed]
        if missing:
            raise UsageError.of("runtime.tensor", f"no tensor '{missing[0]}' is computed by the model",
                                why=f"{len(missing)} of {len(tensors)} names are unknown" if len(missing) > 1 else "")
        wrong = beyond(self._limits, inputs)
        if wrong:
            raise DataError(wrong)
        values = self._values(to_file_inputs(self._interface, inputs, self._inputs))
        raw = [values[t] if t in values else np.asarray(t.data) for t in self.model.main.outputs]
        traced = {name: Traced(raw=values[self._computed[name]], quantization=self._computed[name].quantization)
                  for name in tensors}
        steps, saturated = self._coarseness(raw)
        return Observation(outputs=to_source_outputs(self._interface, raw, self._outputs), tensors=traced, steps=steps,
                           saturated=saturated)

    def profile(self, inputs: Mapping[str, Array] | None = None, runs: int = 20, warmup: int = 3) -> Profile:
        """Measure the time of a run; without inputs, on zeros."""
        arrays = to_file_inputs(self._interface, inputs or zeros(self._interface), self._inputs)
        seconds = []
        for number in range(warmup + runs):
            start = time.perf_counter()
            self._values(arrays)
            if number >= warmup:
                seconds.append(time.perf_counter() - start)
        return Profile.of(seconds, warmup, f"{self.name}, this machine")

    def close(self) -> None:
        """Forget the variables; there is nothing else to end."""
        self._interpreter.reset()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.model.source or self.model.main.name}>"

    def _values(self, arrays: Sequence[Array]) -> dict[Tensor, Array]:
        if not self.keep_state:
            self._interpreter.reset()
        return self._interpreter.trace(arrays)

    def _coarseness(self, raw: Sequence[Array]) -> tuple[dict[str, Array], dict[str, float]]:
        """Return the size of a step at each element of the outputs, and the share that stands at an end of its range.

        A host program computes on what the file gives, so its outputs have no steps.
        """
        graph = self.model.main
        scales = [t.quantization.scale[0] if t.quantization is not None and t.dtype.numpy in _STEPS else np.float32(0)
                  for t in graph.outputs]
        if self._interface.host is not None or not any(scales):
            return {}, {}
        sizes = [np.broadcast_to(scale, array.shape) for scale, array in zip(scales, raw, strict=True)]
        ends = [_at_end(array) if scale else np.zeros(array.shape, np.float32)
                for scale, array in zip(scales, raw, strict=True)]
        plain = [_PLAIN] * len(raw)
        steps = {name: np.abs(size) for name, size in to_source_outputs(self._interface, sizes, plain).items()
                 if np.any(size)}
        at_end = to_source_outputs(self._interface, ends, plain)
        return steps, {name: float(np.mean(at_end[name] != 0)) for name in steps}


def _read(path: Path | str) -> Model:
    from vitrify.tflite import read

    return read(path)


def _details(tensor: Tensor) -> dict[str, Any]:
    """Describe an input or output as ``data.binding`` reads it."""
    found = tensor.quantization
    parameters = {} if found is None else {"scales": found.scale, "zero_points": found.zero_point,
                                           "quantized_dimension": found.axis or 0}
    return {"name": tensor.name, "shape": tensor.shape, "dtype": tensor.dtype.numpy,
            "quantization_parameters": parameters}


def _at_end(array: Array) -> Array:
    """1 where a step stands at an end of its type, else 0."""
    info = np.iinfo(array.dtype)
    ends: Array = (array == info.min) | (array == info.max)
    return ends.astype(np.float32)
