"""A model from its source file to float and int8, and LiteRT for both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from vitrify.core.findings import Finding
from vitrify.data import Preprocess, Samples, open_samples
from vitrify.data.binding import to_file_inputs, to_source_outputs
from vitrify.importers import load
from vitrify.ir import Interface, Model
from vitrify.passes import optimize
from vitrify.quant import Recipe, quantize
from vitrify.runtimes.litert.calibrate import calibrate_here
from vitrify.tflite import write

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Mapping[str, Array]], dict[str, Array]]


@dataclass
class Pair:
    """The float and the int8 form of one model, ready to run on source arrays."""

    float: Run
    int8: Run
    samples: Samples
    kinds: list[str]
    joints: int
    float_operators: int
    findings: Sequence[Finding]

    def outputs(self, name: str) -> tuple[Array, Array]:
        """An output of both forms on all samples, stacked."""
        both = [(self.float(s)[name], self.int8(s)[name]) for s in self.samples]
        return np.stack([b[0] for b in both]), np.stack([b[1] for b in both])


def pair_of(source: Path, files: Sequence[Path], preprocess: Preprocess, folder: Path,
            shapes: Mapping[str, Sequence[int]] | None = None) -> Pair:
    """Import, optimize, calibrate on ``files`` (at most 16 samples of one file's kind) and quantize."""
    model = load(source, shapes)
    optimize(model)
    write(model, folder / "float.tflite")
    assert model.interface is not None
    samples = _samples(files, model.interface, preprocess)
    statistics = calibrate_here(str(folder / "float.tflite"), samples, Recipe())
    result = quantize(model, statistics)
    write(result.model, folder / "int8.tflite")
    left = [n for n in result.model.main if any(t is not None and t.dtype.is_float for t in (*n.inputs, *n.outputs))]
    return Pair(_runner(folder / "float.tflite", model), _runner(folder / "int8.tflite", result.model), samples,
                [n.op.kind for n in result.model.main], _joints(result.model), len(left), result.findings)


def _joints(model: Model) -> int:
    """The QUANTIZE that stand before or behind a CONCATENATION."""
    joins = [n for n in model.main if n.op.kind == "CONCATENATION"]
    makers = [t.producer for n in joins for t in n.inputs if t is not None and t.producer is not None]
    users = [user for n in joins for user in n.output.users]
    return sum(node.op.kind == "QUANTIZE" for node in (*makers, *users))


def _samples(files: Sequence[Path], interface: Interface, preprocess: Preprocess) -> Samples:
    if len(files) == 1:
        return open_samples(files[0], interface, preprocess)
    chosen = tuple((i, 0) for i in range(len(files)))
    return Samples(inputs=interface.inputs, files=tuple(map(str, files)), chosen=chosen, preprocess=preprocess)


def _runner(path: Path, model: Model) -> Run:
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    interface = model.interface
    assert interface is not None

    def run(sample: Mapping[str, Array]) -> dict[str, Array]:
        for details, array in zip(inputs, to_file_inputs(interface, sample, inputs), strict=True):
            interpreter.set_tensor(details["index"], array)
        interpreter.invoke()
        return to_source_outputs(interface, [interpreter.get_tensor(d["index"]) for d in outputs], outputs)

    return run
