"""From a float model to an int8 file and the verdict on it: what `quantize`, `check` and Python code share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.core.words import counted
from vitrify.ir import Model
from vitrify.pipeline.convert import write_checked
from vitrify.pipeline.files import called
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.quantizing.analysis import analyze_float
from vitrify.pipeline.quantizing.answers import answers_agree
from vitrify.pipeline.quantizing.forecasting import beforehand
from vitrify.pipeline.quantizing.search import Goal, How, checkpoint, forget, quantize_well
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import ledger_rows, model_facts
from vitrify.pipeline.steps import calibrate_model, step
from vitrify.pipeline.verifying.verify import compare_files, softened, summary
from vitrify.results import AnalysisRow, CalibrationFacts, ComparisonRow, ConflictRow, LedgerRow, QuantizeResult

if TYPE_CHECKING:
    from vitrify.quant import Recipe
    from vitrify.verify.compare import Verification

MOST_COMPARED, LEAST_COMPARED = 4, 2
"""Samples, spread over the data, that float and INT8 are judged on; `vitrify verify` looks at all."""

COMPARED_MACS = 1_000_000_000
"""Multiplications that the judging may cost on each side: heavy models are judged on fewer samples."""

KERNELS = ("xnnpack", "optimized")
"""Of the float and the INT8 file: what is quick and near the reference, float sums with the least rounding."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done: ``state`` keeps a search that is stopped, ``source`` is what messages name."""

    data: DataOptions
    recipe: Recipe
    goal: Goal
    jobs: int = 1
    analyze: bool = False
    state: Path | None = None
    source: Path


class Made(msgspec.Struct, kw_only=True):
    """What came of a quantization besides the file; ``judged`` is what float and INT8 side by side showed."""

    model: Model
    ledger: list[LedgerRow]
    findings: list[Finding]
    judged: list[Finding]
    calibration: CalibrationFacts
    quality: ComparisonRow
    recipe: Recipe
    conflicts: list[ConflictRow]
    analysis: AnalysisRow | None = None

    def result(self, file: Path, meter: Meter, *, recipe: str = "", told: Sequence[Finding] = ()) -> QuantizeResult:
        """The answer of the command; what was ``told`` besides stands last."""
        from vitrify import tflite

        facts = model_facts(tflite.read(file), str(file), file.stat().st_size)
        findings = [*self.findings, *self.judged, *told]
        return QuantizeResult(
            output=str(file), bytes=facts.bytes, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
            operators=facts.operators, float_operators=facts.float_operators, transposes=facts.transposes,
            transposes_left=facts.transposes_left, inputs=facts.inputs, outputs=facts.outputs, ledger=self.ledger,
            findings=findings, ok=all(finding.severity is not Severity.ERROR for finding in findings),
            quality=self.quality, conflicts=self.conflicts, calibration=self.calibration, analysis=self.analysis,
            recipe=recipe)


def make(model: Model, path: Path, target: Path, job: Job, reporter: Reporter) -> Made:
    """Calibrate, quantize, judge and write a model.

    Args:
        model: the float model, in the forms for integers.
        path: its file.
        target: the file to write, whole or not at all.
        job: what is to be done.
        reporter: is told of the steps.

    Raises:
        VitrifyError: the model or the data does not do, or the file cannot be written.
    """
    from vitrify.data.binding import identity_interface

    data, recipe = job.data, job.recipe
    kept = checkpoint(job.state) if job.goal.is_asked and job.state is not None and data.path is not None else None
    interface = model.interface or identity_interface(model)
    told = data.findings(interface) if data.feed is None else []
    with called(path, job.source), step(reporter, "calibrate") as note:
        statistics, facts = calibrate_model(path, model, data, recipe, kept, reporter)
        note.text = f"{counted(facts.samples, 'sample')}, {facts.tensors} tensors"
    told += data.findings(interface) if data.feed is not None else []
    with called(path, job.source):
        told += beforehand(model, path, statistics, recipe, data)
    with called(path, job.source), step(reporter, "quantize") as note:
        how = How(goal=job.goal, state=job.state, jobs=job.jobs)
        try:
            result, recipe = quantize_well(model, path, statistics, recipe, data, how, reporter)
        except UsageError:
            forget(job.state)           # it will be refused again; only what was stopped can go on
            raise
        forget(job.state)
        note.text = f"{len(result.model.main)} nodes"
    compared: list[Verification] = []
    analyzed: list[AnalysisRow] = []

    def look(aside: Path) -> None:
        with called(path, job.source), step(reporter, "verify") as note:
            compared.append(_judged(model, path, aside, target.name, data, facts.samples, reporter))
            compared[0].findings += answers_agree(model, path, aside, data, samples_judged(model), target.name)
            note.text = summary(compared[0])
        if job.analyze:
            analyzed.append(analyze_float(path, aside, data, reporter, ("float", target.name)))

    findings = [*told, *result.findings, *write_checked(result.model, target, reporter, look)]
    return Made(model=result.model, ledger=ledger_rows(result.ledger), findings=findings,
                judged=softened(compared[0].findings) if data.random else compared[0].findings,
                calibration=facts, quality=compared[0].stages[0], recipe=recipe,
                conflicts=[ConflictRow(**asdict(c)) for c in result.conflicts],
                analysis=analyzed[0] if analyzed else None)


def _judged(model: Model, path: Path, made: Path, name: str, data: DataOptions, samples: int,
            reporter: Reporter) -> Verification:
    """Compare float and INT8 on a few samples, and on all where the few tell too little."""
    from vitrify.data.binding import identity_interface

    def compare(most: int | None) -> Verification:
        return compare_files(
            [path, made], model.interface or identity_interface(model), data, ConvertOptions(), reporter.advance,
            limit=most, names=["float", name], kernels=KERNELS, tensors=False)

    limit = samples_judged(model)
    first = compare(limit)
    # equal outputs may be those of samples in which there was nothing to find, and shares take many
    blind = any(output.equal or output.agreement is not None for output in first.stages[0].outputs)
    return compare(None) if blind and samples > limit else first


def samples_judged(model: Model) -> int:
    """How many samples float and INT8 are judged on, by what one inference costs."""
    macs = sum(node.op.macs(node) for node in model.main)
    return max(LEAST_COMPARED, min(MOST_COMPARED, COMPARED_MACS // max(macs, 1)))
