"""What a quantized model finds beside what the float model finds: the agreement that its task is measured by.

A signal-to-noise ratio says little of a mask: 19 dB may be a fifth of its pixels. The float model's answers stand for
labels, as in `eval` without them.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.ir import Model
from vitrify.pipeline.describing import task_of
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.running.model import decoded, size_of

LEAST: dict[str, tuple[str, float]] = {
    "segmentation": ("mIoU", 90.0), "saliency": ("overlap", 90.0), "depth": ("near", 95.0),
    "reading": ("characters right", 95.0), "speech": ("frames right", 95.0), "landmarks": ("points right", 97.0)}
"""The figure of each task that a few samples tell, in percent, and below which it is a warning.

Classes and boxes take many samples for a figure; their scores are judged one by one where outputs are compared."""


def answers_agree(model: Model, path: Path, made: Path, data: DataOptions, limit: int, name: str) -> list[Finding]:
    """Say how far the answers of a quantized model are those of the float one, where its task is known.

    Args:
        model: the float model.
        path, made: the files of both.
        data: the samples; random ones tell nothing.
        limit: the most samples that are looked at.
        name: what the quantized file will be called.
    Raises:
        VitrifyError: a model cannot be run.
    """
    spec, says_so = task_of(model)
    if spec is None or data.random or spec.kind not in LEAST:
        return []
    try:
        figures, samples = _figures(spec, path, made, data, limit)
    except ModelError:
        if says_so:
            raise
        return []                       # the shapes looked like that task, and the values are something else
    figure, least = LEAST[spec.kind]
    if figure not in figures:
        return []
    good = figures[figure] >= least
    said = ", ".join(f"{other} {value:.1f}" for other, value in figures.items() if other != figure)
    return [Finding(
        code="quantize.answers", severity=Severity.INFO if good else Severity.WARNING, where=name,
        headline=f"as {spec.kind}, {figures[figure]:.1f} % {figure} with the float model's answers"
                 + ("" if good else f", below {least:g} %"),
        why=f"{counted(samples, 'sample')} decoded as '{spec.decoder}'"
            + (f"; {said}" if said else "") + ("" if says_so else "; the outputs' shapes tell the task"),
        help="" if good else "quantize with --effort best or --least-db, and score it with `vitrify eval`; where it is "
                             "another task, --task says which")]


def _figures(spec: Any, path: Path, made: Path, data: DataOptions, limit: int) -> tuple[dict[str, float], int]:
    from vitrify import runtimes
    from vitrify.tasks.metrics.base import measure_of

    measure = measure_of(spec.kind)
    truths: list[Any] = []
    records: list[Any] = []
    with ExitStack() as stack:
        reference, candidate = (stack.enter_context(runtimes.open(file, kernels=kernels))
                                for file, kernels in ((path, "xnnpack"), (made, "optimized")))
        size = size_of(reference.interface)
        for sample in data.open(reference.interface, limit, purpose="comparison").walk(skipped=[]):
            wanted = decoded(reference.run(sample), spec, size, None, path.name)
            given = decoded(candidate.run(sample), spec, size, None, made.name)
            truths.append(measure.truth(wanted, spec))
            records.append(measure.record(given, truths[-1], spec))
    figures = measure.total(records, truths, spec) if records else {}
    return {name: value for name, value in figures.items() if np.isfinite(value)}, len(records)
