"""The parent's side of ONNX Runtime: static shapes and names; the session itself runs in a child."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError, ModelError, UsageError
from vitrify.core.findings import Finding
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES, Worker
from vitrify.importers.onnx.shapes import constant_inputs, static_shapes
from vitrify.importers.onnx.source import SourceGraph, SourceValue
from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.runtimes.base import Array, Capabilities, Closing, Observation, Precision, Profile, Traced, stamp, zeros
from vitrify.runtimes.onnxruntime.spec import Details, Spec

_QUANTIZING = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantize", "QLinear", "MatMulInteger", "ConvInteger")
_BEYOND = re.compile(r"idx=(-?\d+) must be within the inclusive range \[(-?\d+),(-?\d+)\]")
"""How ONNX Runtime tells of an index beyond its table."""
_SESSION = "vitrify.runtimes.onnxruntime.session"


class OnnxRuntime(Closing):
    """Runs an ONNX file in ONNX Runtime (see ``runtimes.base.Runtime``); the file is never modified.

    Open dimensions are fixed as the importer fixes them: by ``shapes``, by the file's metadata, the batch else as 1.
    Inputs named in ``values`` get those constants with every run and are no inputs of the interface.

    Raises:
        VitrifyError: ONNX Runtime refuses the file, or dies of it; dimensions stay open.
    """

    def __init__(self, path: Path | str, *, shapes: Mapping[str, Sequence[int] | int] | None = None,
                 values: Mapping[str, Any] | None = None, threads: int = 1, seconds: float | None = None,
                 memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.path = Path(path)
        self.threads = threads
        self._spec = Spec(str(self.path.resolve()), stamp(self.path), threads)
        self._worker = Worker(f"ONNX Runtime on {self.path.name}", seconds=seconds, memory_bytes=memory_bytes)
        try:
            self._details: Details = self._described()
            graph = SourceGraph("main", inputs=[SourceValue(*value) for value in self._details.inputs])
            self._constants = constant_inputs(graph, values or {})
            graph.inputs = [value for value in graph.inputs if value.name not in self._constants]
            found, _ = static_shapes(graph, shapes or {}, self._details.metadata)
            self._interface = _interface(graph, found, self._details)
        except BaseException:
            self._worker.close()
            raise

    @property
    def name(self) -> str:
        """``ONNX Runtime 1.32.0``."""
        return f"ONNX Runtime {self._details.version}"

    @property
    def capabilities(self) -> Capabilities:
        """Everything but times of single operators."""
        return Capabilities(trace=True, profile=True)

    @property
    def interface(self) -> Interface:
        """What the model takes and gives; an extent of an output that only a run tells is -1."""
        return self._interface

    @property
    def precision(self) -> Precision:
        """``integer`` when the file holds ONNX's quantizing operators."""
        if any(kind.startswith(_QUANTIZING) for kind in self._details.kinds):
            return "integer"
        return "float16" if any(v.dtype == "float16" for v in self._details.inputs) else "float32"

    @property
    def aliases(self) -> dict[str, str]:
        """There are no other names."""
        return {}

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of all values that the main graph computes."""
        return tuple(self._details.tensors)

    @property
    def log(self) -> str:
        """What ONNX Runtime printed during the last call."""
        return self._worker.log

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Give the model's outputs for its inputs, by name."""
        names = [value.name for value in self._details.outputs]
        return dict(zip(names, self._computed(inputs, names), strict=True))

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str] | None = None) -> dict[str, Traced]:
        """Run, and give the values of the named inner tensors, or of all.

        Raises:
            UsageError: a name is unknown.
        """
        wanted = self.tensors if tensors is None else tuple(dict.fromkeys(tensors))
        known = set(self.tensors) | {value.name for value in self._details.outputs}
        missing = [name for name in wanted if name not in known]
        if missing:
            raise UsageError.of("runtime.tensor", f"no value '{missing[0]}' in {self.path.name}",
                                why=f"{len(missing)} of {len(wanted)} names are unknown" if len(missing) > 1 else "")
        values = self._computed(inputs, wanted, wanted)
        return {name: Traced(raw=value) for name, value in zip(wanted, values, strict=True) if value is not None}

    def observe(self, inputs: Mapping[str, Array], tensors: Sequence[str] = ()) -> Observation:
        """Run once, and give the outputs together with the named inner tensors."""
        outputs = [value.name for value in self._details.outputs]
        found = self.trace(inputs, [*outputs, *tensors])
        return Observation(outputs={name: found[name].raw for name in outputs if name in found},
                           tensors={name: found[name] for name in tensors if name in found})

    def profile(self, inputs: Mapping[str, Array] | None = None, runs: int = 20, warmup: int = 3) -> Profile:
        """Measure the time of a run on this machine; without inputs, on zeros."""
        seconds = self._call("timings", self._feeds(inputs or zeros(self._interface)), runs, warmup)
        return Profile.of(seconds, warmup, f"{self.name}, {self.threads} thread(s), this machine")

    def close(self) -> None:
        """End the child process."""
        self._worker.close()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.path.name}>"

    def _feeds(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        problems: list[Finding] = []
        feeds = dict(self._constants)
        for binding in self._interface.inputs:
            array = inputs.get(binding.name)
            if array is None:
                problems.append(Finding(code="data.missing_input", headline=f"no array for input '{binding.name}'",
                                        help=f"the sample has: {', '.join(map(repr, inputs)) or 'nothing'}"))
            elif tuple(array.shape) != binding.shape:
                text = f"input '{binding.name}' takes {list(binding.shape)}, got {list(array.shape)}"
                problems.append(Finding(code="data.shape", headline=text))
            else:
                feeds[binding.name] = np.ascontiguousarray(array, binding.dtype)
        if problems:
            raise DataError(problems)
        return feeds

    def _computed(self, inputs: Mapping[str, Array], *wanted: Sequence[str]) -> Any:
        """Run; an index beyond its table is told with the input that holds it."""
        feeds = self._feeds(inputs)
        try:
            return self._call("run", feeds, *wanted)
        except ModelError as error:
            found = _BEYOND.search(str(error))
            named = [name for name, array in feeds.items() if found and array.dtype.kind in "iu"
                     and np.any(array == int(found[1]))]
            if found is None or not named:
                raise
            raise DataError.of("data.index", f"input '{named[0]}' holds {found[1]}: it is an index of "
                               f"{found[2]}..{found[3]}", where=f"input '{named[0]}'",
                               why=f"a table of {int(found[3]) + 1} rows is looked up at it",
                               help="use the tokenizer, or the list of classes, that the model was made with"
                               ) from error

    def _described(self) -> Details:
        """Ask ONNX Runtime what the file holds; what it refuses is told in the importer's words where it knows any."""
        try:
            described: Details = self._call("details")
        except ModelError:
            from vitrify.importers.onnx.reading.checks import check
            from vitrify.importers.onnx.reading.reader import read

            check(read(self.path).graph)
            raise
        return described

    def _call(self, function: str, *args: Any) -> Any:
        return self._worker.call(f"{_SESSION}:{function}", self._spec, *args)


def _interface(graph: SourceGraph, shapes: Mapping[str, tuple[int, ...]], details: Details) -> Interface:
    inputs = tuple(InputBinding(name=v.name, shape=shapes[v.name], dtype=v.dtype, position=i)
                   for i, v in enumerate(graph.inputs))
    outputs = tuple(OutputBinding(name=v.name, shape=tuple(d if isinstance(d, int) else -1 for d in v.dims),
                                  dtype=v.dtype, parts=(Part(position=i),)) for i, v in enumerate(details.outputs))
    return Interface(inputs=inputs, outputs=outputs, source_format="onnx")
