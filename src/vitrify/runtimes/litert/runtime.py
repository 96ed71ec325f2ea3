"""The parent's side of LiteRT: names and layouts of the source model; the interpreter itself runs in a child."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES, Worker
from vitrify.data.binding import quantization_of, to_file_inputs, to_source_outputs
from vitrify.data.limits import Limit, beyond, index_limits
from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.runtimes.base import Array, Capabilities, Closing, Observation, Precision, Profile, Traced, stamp, zeros
from vitrify.runtimes.litert.spec import Details, Spec

Kernels = Literal["reference", "optimized", "xnnpack", "auto"]
KERNELS: tuple[str, ...] = get_args(Kernels)
"""Bit-exact by definition; the built-in ones; with the delegate that phones and boards use; ``auto``: the reference
for files that hold integers, else XNNPACK, whose float sums round least, and the optimized ones for inner tensors."""

_PLAIN: dict[str, Any] = {"dtype": np.float32}
_QUANTIZED = (np.int8, np.uint8, np.int16)
_SESSION = "vitrify.runtimes.litert.session"


class LiteRT(Closing):
    """Runs a TFLite file in LiteRT (see ``runtimes.base.Runtime``).

    Files that record the source model's interface are run by it; others by the names of their signature, or of their
    tensors. Integer inputs and outputs with a scale are given and taken as real numbers. Variables start afresh with
    each run unless ``keep_state`` is set. Inner tensors are computed by the kernels ``traced_by``, by default the same;
    XNNPACK's cannot. The folder ``owned`` is removed when the runtime is closed.

    Raises:
        VitrifyError: LiteRT refuses the file, or dies of it.
    """

    def __init__(self, path: Path | str, *, kernels: Kernels = "reference", traced_by: Kernels | None = None,
                 threads: int = 1, keep_state: bool = False, shapes: Mapping[str, Sequence[int] | int] | None = None,
                 interface: Interface | None = None, seconds: float | None = None,
                 memory_bytes: int = DEFAULT_MEMORY_BYTES, owned: Path | None = None) -> None:
        if kernels not in KERNELS:
            raise UsageError.of("runtime.kernels", f"there are no kernels '{kernels}'",
                                help=f"use {', '.join(KERNELS)}")
        self.path = Path(path)
        self.kernels: str = "reference" if kernels == "auto" else kernels
        self.traced_by: str | None = traced_by or (None if kernels == "xnnpack" else self.kernels)
        self.threads = threads
        self.keep_state = keep_state
        self._owned = owned
        self._step_sizes: dict[str, Array] | None = None
        self._stamp = stamp(self.path)
        self._shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
        self._worker = Worker(f"LiteRT ({kernels} kernels) on {self.path.name}", seconds=seconds,
                              memory_bytes=memory_bytes)
        try:
            self._details: Details = self._call("details", self._spec(False))
            if shapes:
                self._shapes = _resized(shapes, self._details, self.path)
                self._details = self._call("details", self._spec(False))
            if kernels == "auto" and self.precision != "integer":
                self.kernels, self.traced_by = "xnnpack", traced_by or "optimized"
            recorded, self._limits = recorded_in(self.path) if interface is None else (None, {})
            self._interface = interface or recorded or interface_of(self._details)
        except BaseException:
            self._worker.close()
            raise

    @property
    def name(self) -> str:
        """``LiteRT 2.3.0, reference kernels``: those that run the file, where the reference ones do not know it all."""
        used = self._details.kernels or self.kernels
        return f"LiteRT {self._details.version}, {self.kernels if self.kernels != 'reference' else used} kernels"

    @property
    def capabilities(self) -> Capabilities:
        """Inner tensors are out of reach where a delegate computes them."""
        return Capabilities(trace=self.traced_by is not None, profile=True)

    @property
    def interface(self) -> Interface:
        """What the source model takes and gives."""
        return self._interface

    @property
    def precision(self) -> Precision:
        """``integer`` when tensors or weights are integers with a scale."""
        if any(d["dtype"] in _QUANTIZED and quantization_of(d) is not None for d in self._details.tensors):
            return "integer"
        return "float16" if any(d["dtype"] == np.float16 for d in self._details.tensors) else "float32"

    @property
    def aliases(self) -> dict[str, str]:
        """The file's tensor names of inputs and outputs, to the interface's names."""
        inputs = {self._details.inputs[b.position]["name"]: b.name for b in self._interface.inputs}
        outputs = {self._details.outputs[b.parts[0].position]["name"]: b.name for b in self._interface.outputs
                   if len(b.parts) == 1 and self._interface.host is None}
        return inputs | outputs

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors that the main graph computes, in its order."""
        names = {d["index"]: d["name"] for d in self._details.tensors}
        return tuple(dict.fromkeys(names[i] for i in self._details.computed if names.get(i)))

    @property
    def log(self) -> str:
        """What LiteRT printed during the last call."""
        return self._worker.log

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Give the source model's outputs for its inputs, by name."""
        outputs = self.invoke_raw(self.file_inputs(inputs))
        return to_source_outputs(self._interface, outputs, self._details.outputs)

    def run_many(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], float]:
        """Run stacks [n, ...] of the source model's inputs in one call; seconds are those of the interpreter."""
        from vitrify.data.stacks import to_file_stacks, to_source_stacks

        wrong = beyond(self._limits, inputs) if self._limits else []
        if wrong:
            raise DataError(wrong)
        stacks = to_file_stacks(self._interface, inputs, self._details.inputs)
        outputs, seconds = self._call("invoke_many", self._spec(False), stacks, self.keep_state)
        return to_source_stacks(self._interface, outputs, self._details.outputs), seconds

    def file_inputs(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The file's input tensors.

        Raises:
            DataError: an input does not fit, or is an index beyond its table.
        """
        wrong = beyond(self._limits, inputs)
        if wrong:
            raise DataError(wrong)
        return to_file_inputs(self._interface, inputs, self._details.inputs)

    def invoke_raw(self, arrays: Sequence[Array]) -> list[Array]:
        """Run on the file's own input tensors, in its order and types, and return its own output tensors."""
        spec = self._spec(False)
        found: list[Array] = self._call("invoke", spec, list(arrays), None, self.keep_state)
        return found

    def named_inputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the file's own input tensors for the source model's inputs, by the names of the file's tensors."""
        return {d["name"]: array for d, array in zip(self._details.inputs, self.file_inputs(inputs), strict=True)}

    def trace_raw(self, arrays: Sequence[Array], tensors: Sequence[str]) -> dict[str, Array]:
        """Run on the file's own input tensors, and give the named tensors as the file holds them.

        Raises:
            UsageError: a name is unknown, or the kernels hide inner tensors.
        """
        chosen = self._chosen(tensors)
        values = self._call("invoke", self._spec(True), list(arrays), [d["index"] for d in chosen], self.keep_state)
        return {d["name"]: value for d, value in zip(chosen, values, strict=True)}

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str] | None = None) -> dict[str, Traced]:
        """Run, and give the values of the named inner tensors, or of all that are computed.

        Raises:
            UsageError: a name is unknown, or the kernels hide inner tensors.
        """
        return self._read(inputs, self._chosen(tensors))[1]

    def observe(self, inputs: Mapping[str, Array], tensors: Sequence[str] = ()) -> Observation:
        """Run once, and give the outputs together with the named inner tensors."""
        details = self._details.outputs
        raw, traced = self._read(inputs, self._chosen(tensors))
        saturated: dict[str, float] = {}
        if self._steps():
            ends = [_at_end(array, d) for array, d in zip(raw, details, strict=True)]
            joined = to_source_outputs(self._interface, ends, [_PLAIN] * len(ends))
            saturated = {name: float(np.mean(joined[name] != 0)) for name in self._steps()}
        return Observation(outputs=to_source_outputs(self._interface, raw, details), tensors=traced,
                           steps=self._steps(), saturated=saturated)

    def _read(self, inputs: Mapping[str, Array],
              chosen: Sequence[Mapping[str, Any]]) -> tuple[list[Array], dict[str, Traced]]:
        """Run once; return the file's outputs and the chosen tensors."""
        arrays = self.file_inputs(inputs)
        outputs = [d["index"] for d in self._details.outputs]
        inner = [d["index"] for d in chosen]
        if inner and self.traced_by == self.kernels:
            values = self._call("invoke", self._spec(True), arrays, [*outputs, *inner], self.keep_state)
        else:
            values = self._call("invoke", self._spec(False), arrays, outputs, self.keep_state)
            values += self._call("invoke", self._spec(True), arrays, inner, self.keep_state) if inner else []
        traced = {d["name"]: Traced(raw=value, quantization=quantization_of(d))
                  for d, value in zip(chosen, values[len(outputs):], strict=True) if value is not None}
        return values[:len(outputs)], traced

    def _steps(self) -> dict[str, Array]:
        """The size of one step at each element of the outputs that come from integers.

        A host program computes on what the file gives, so its outputs have no steps.
        """
        if self._interface.host is not None:
            return {}
        if self._step_sizes is None:
            quantized = [quantization_of(d) for d in self._details.outputs]
            sizes = [np.broadcast_to(q.scale.reshape(-1)[0] if q else np.float32(0), d["shape"])
                     for q, d in zip(quantized, self._details.outputs, strict=True)]
            found = to_source_outputs(self._interface, sizes, [_PLAIN] * len(sizes)) if any(quantized) else {}
            self._step_sizes = {name: np.abs(size) for name, size in found.items() if np.any(size)}
        return self._step_sizes

    def _chosen(self, names: Sequence[str] | None) -> list[dict[str, Any]]:
        if not self.capabilities.trace and (names is None or names):
            raise UsageError.of("runtime.trace", f"{self.kernels} kernels hide inner tensors",
                                help="use kernels 'reference' or 'optimized'")
        by_name: dict[str, dict[str, Any]] = {}
        for details in self._details.tensors:
            if details["name"]:
                by_name.setdefault(details["name"], details)
        if names is None:
            names = self.tensors
        missing = [name for name in names if name not in by_name]
        if missing:
            raise UsageError.of("runtime.tensor", f"no tensor '{missing[0]}' in {self.path.name}",
                                why=f"{len(missing)} of {len(names)} names are unknown" if len(missing) > 1 else "")
        return [by_name[name] for name in names]

    def profile(self, inputs: Mapping[str, Array] | None = None, runs: int = 20, warmup: int = 3) -> Profile:
        """Measure the time of a run on this machine; without inputs, on zeros."""
        arrays = to_file_inputs(self._interface, inputs or zeros(self._interface), self._details.inputs)
        seconds = self._call("timings", self._spec(False), arrays, runs, max(1, warmup))
        return Profile.of(seconds, max(1, warmup), f"{self.name}, {self.threads} thread(s), this machine")

    def close(self) -> None:
        """End the child process and remove what the runtime owns."""
        self._worker.close()
        if self._owned is not None:
            shutil.rmtree(self._owned, ignore_errors=True)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.path.name}>"

    def _spec(self, keep_all: bool) -> Spec:
        kernels = self.traced_by if keep_all and self.traced_by else self.kernels
        return Spec(str(self.path.resolve()), self._stamp, kernels, keep_all, self.threads, self._shapes)

    def _call(self, function: str, spec: Spec, *args: Any) -> Any:
        return self._worker.call(f"{_SESSION}:{function}", spec, *args)


def recorded_in(path: Path) -> tuple[Interface | None, dict[str, Limit]]:
    """Return the source model's interface from a file's metadata, None when there is none, and its inputs' limits."""
    from vitrify.data.binding import identity_interface
    from vitrify.tflite import read

    model = read(path)
    return model.interface, index_limits(model, model.interface or identity_interface(model))


def interface_of(details: Details) -> Interface:
    """Describe a file's own inputs and outputs: names of the signature, else of the tensors; real numbers if it can."""
    inputs = [InputBinding(name=d["name"], shape=_shape(d), dtype=_dtype(d), position=i)
              for i, d in enumerate(details.inputs)]
    outputs = [OutputBinding(name=d["name"], shape=_shape(d), dtype=_dtype(d), parts=(Part(position=i),))
               for i, d in enumerate(details.outputs)]
    if details.signature is not None:
        taken, given = details.signature
        inputs = [InputBinding(name=name, shape=inputs[i].shape, dtype=inputs[i].dtype, position=i)
                  for name, i in taken.items()]
        outputs = [OutputBinding(name=name, shape=outputs[i].shape, dtype=outputs[i].dtype, parts=outputs[i].parts)
                   for name, i in given.items()]
    return Interface(inputs=tuple(inputs), outputs=tuple(outputs), source_format="tflite")


def _shape(details: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(extent) for extent in details["shape"])


def _dtype(details: Mapping[str, Any]) -> str:
    return "float32" if quantization_of(details) is not None else np.dtype(details["dtype"]).name


def _resized(shapes: Mapping[str, Sequence[int] | int], details: Details,
             path: Path) -> tuple[tuple[int, tuple[int, ...]], ...]:
    names = {d["name"]: i for i, d in enumerate(details.inputs)} | (details.signature[0] if details.signature else {})
    whole = {name: shape for name, shape in shapes.items() if not isinstance(shape, int)}
    unknown = [name for name in shapes if name not in names or name not in whole]
    if unknown:
        what = "input" if unknown[0] in whole else "dimension"
        raise UsageError.of("runtime.shape", f"{path.name} has no {what} '{unknown[0]}'",
                            help=f"its inputs are {', '.join(map(repr, names))}")
    return tuple((names[name], tuple(map(int, shape))) for name, shape in whole.items())


def _at_end(array: Array, details: Mapping[str, Any]) -> Array:
    """1 where a quantized value stands at an end of its type, else 0."""
    if quantization_of(details) is None:
        return np.zeros(array.shape, np.float32)
    info = np.iinfo(array.dtype)
    ends: Array = (array == info.min) | (array == info.max)
    return ends.astype(np.float32)
