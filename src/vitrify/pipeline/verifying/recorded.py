"""`verify` with what was recorded on a board: the other forms run on the recorded inputs, or on the samples given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.steps import is_tflite, runs_on_npusim, step
from vitrify.pipeline.verifying.tensors import SAMPLES, Form, locate_forms, tell
from vitrify.results import ComparisonRow, VerifyResult
from vitrify.verify.recorded import Recorded, is_recorded

if TYPE_CHECKING:
    from vitrify.runtimes.litert.runtime import Kernels

Array = np.ndarray[Any, np.dtype[Any]]


def verify_recorded(models: Sequence[Path], kernels: Sequence[Kernels | None], data: DataOptions,
                    conversion: ConvertOptions, shown: Reporter, meter: Meter) -> VerifyResult:
    """Compare forms of which some were recorded.

    Raises:
        DataError: what was recorded does not fit the TFLite file before it.
        UsageError: there is no such file before it.
    """
    names = _names(models, kernels)
    result = VerifyResult()
    samples: list[Mapping[str, Array]] = []
    for number, model in enumerate(models):
        if is_recorded(model):
            with step(shown, "recorded") as note:
                samples = _one(names, models, number, data, samples, result)
                note.text = f"{len(samples)} runs"
    rest = [Form(*one) for one in zip(names, models, kernels, strict=True) if not is_recorded(one[1])]
    if len(rest) > 1:
        located, closer = locate_forms(rest, samples, conversion.sizes, conversion.values, shown)
        fault, faults = tell(located)
        result.first_divergence = fault or result.first_divergence
        result.tensors = [row for one in located for row in one.rows] + result.tensors
        result.findings = [*closer, *faults, *result.findings]
    result.samples, result.seconds = len(samples), meter.seconds
    result.ok = all(row.ok for row in result.stages) and all(f.severity is not Severity.ERROR for f in result.findings)
    return result


def _one(names: Sequence[str], models: Sequence[Path], number: int, data: DataOptions,
         samples: list[Mapping[str, Array]], result: VerifyResult) -> list[Mapping[str, Array]]:
    """Compare what was recorded in one file with the TFLite file before it."""
    from vitrify import tflite
    from vitrify.data.binding import identity_interface
    from vitrify.runtimes.litert import LiteRT
    from vitrify.verify.locating import locate_integers

    base = next((place for place in range(number - 1, -1, -1) if is_tflite(models[place])
                 and not runs_on_npusim(models[place])), None)
    if base is None:
        raise UsageError.of("recorded.alone", f"{models[number]} stands before any TFLite file",
                            why="what its tensors are, and their scales, is known from the file that ran on the board",
                            help=f"vitrify verify model.onnx model_int8.tflite {models[number].name}")
    model = tflite.read(models[base])
    computed = [t for node in model.main for t in node.outputs]
    with LiteRT(models[base], kernels="reference", interface=model.interface or identity_interface(model)) as runtime:
        there = Recorded(models[number], runtime, computed, model.main.outputs, model.main.inputs)
        if there.strange:
            result.findings.append(Finding(
                code="recorded.names", severity=Severity.WARNING, where=str(models[number]),
                headline=f"{len(there.strange)} recorded arrays are no tensors of {models[base].name}: "
                         + ", ".join(f"'{name}'" for name in there.strange[:6])))
        if there.inputs:
            inputs, samples = there.inputs, list(there.samples(runtime.interface))
        else:
            data.require("comparison")
            samples = samples or list(islice(data.open(runtime.interface, None, purpose="comparison").walk(skipped=[]),
                                             there.runs + 1))
            if len(samples) != there.runs:
                raise DataError.of("recorded.runs", f"{there.runs} runs were recorded, there are "
                                   f"{len(samples)}{'' if len(samples) < there.runs else ' or more'} samples",
                                   where=str(models[number]), help="record the inputs too, under the names of the "
                                   "file's inputs: then no samples are needed")
            inputs = [runtime.file_inputs(sample) for sample in samples]
        known = {tensor.name for tensor in computed}
        given = [{name: runs[run] for name, runs in there.tensors.items() if name in known}
                 for run in range(min(there.runs, SAMPLES))]
    located = locate_integers(names[number], models[base], inputs[:SAMPLES], given)
    fault, faults = tell([located])
    outputs = {t.name for t in model.main.outputs}
    rows = [_error(row) for row in located.rows if row.tensor in outputs]
    result.stages.append(ComparisonRow(name=names[number], reference=names[base], samples=len(given),
                                       ok=located.fault is None, outputs=rows,
                                       tensors=[_error(row) for row in located.rows if row.tensor not in outputs]))
    result.tensors += located.rows
    result.findings += faults
    result.first_divergence = result.first_divergence or fault
    return samples


def _error(row: Any) -> Any:
    from vitrify.results import ErrorRow

    figure = row.accumulated
    return ErrorRow(tensor=row.tensor, sqnr_db=figure.sqnr_db, cosine=figure.cosine, max_lsb=figure.max_lsb,
                    largest_error=figure.largest_error, equal=figure.equal, ok=row.verdict != "fault",
                    operator=row.operator, reason=row.why if row.verdict == "fault" else "", saturated=row.saturated,
                    not_finite=row.not_finite)


def _names(models: Sequence[Path], kernels: Sequence[str | None]) -> list[str]:
    from vitrify.pipeline.verifying.verify import distinct

    return distinct([f"{model.name}@{named}" if named else model.name
                     for model, named in zip(models, kernels, strict=True)])
