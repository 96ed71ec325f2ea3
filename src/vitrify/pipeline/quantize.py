"""`quantize`: a model in any format to full-integer TFLite, checked before it appears."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import counted
from vitrify.pipeline.analysis import analyze_float
from vitrify.pipeline.convert import float_model, write_checked
from vitrify.pipeline.endings import RECIPE, TFLITE, refuse_ending
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import called, destination, existing, refuse_overlap, rename
from vitrify.pipeline.keeping import UNUSED, brings_scales, refuse_integers, write_integers
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import ledger_rows, model_facts
from vitrify.pipeline.search import How, checkpoint, quantize_well
from vitrify.pipeline.steps import calibrate_model, import_findings, step
from vitrify.pipeline.verify import compare_files, softened, summary
from vitrify.results import AnalysisRow, CalibrationFacts, ComparisonRow, ConflictRow, LedgerRow, QuantizeResult

if TYPE_CHECKING:
    from vitrify.ir import Model
    from vitrify.quant import Recipe
    from vitrify.verify.compare import Verification

MOST_COMPARED, LEAST_COMPARED = 4, 2
"""Samples, spread over the data, that float and INT8 are judged on; `vitrify verify` looks at all."""

SEARCH = ".search"
"""What the file beside the output has behind its name that keeps what a search has found, until it is over."""

COMPARED_MACS = 1_000_000_000
"""Multiplications that the judging may cost on each side: heavy models are judged on fewer samples."""

KERNELS = ("xnnpack", "optimized")
"""Of the float and the INT8 file: what is quick and near the reference, float sums with the least rounding."""


class Made(msgspec.Struct, kw_only=True):
    """What came of a quantization besides the file; ``judged`` is what float and INT8 side by side showed."""

    ledger: list[LedgerRow]
    findings: list[Finding]
    judged: list[Finding]
    calibration: CalibrationFacts
    quality: ComparisonRow
    recipe: Recipe
    conflicts: list[ConflictRow]
    analysis: AnalysisRow | None = None


def quantize_file(source: Path, output: Path | None, data: DataOptions, quantization: QuantizeOptions,
                  conversion: ConvertOptions, reporter: Reporter | None = None) -> QuantizeResult:
    """Quantize ``source`` and write ``output``; what stood there stays when it fails.

    A file whose answers are not good is written too, so that it can be looked into; the result is not ``ok`` then.

    Raises:
        VitrifyError: the model, the data or the recipe does not do, or the file cannot be written.
    """
    meter, shown = Meter(), reporter or Silent()
    target = destination(existing(source), output, "_int8.tflite")
    if quantization.save_recipe is not None:
        destination(source, quantization.save_recipe, ".toml")
    refuse_overlap({"-o": target, "--save-recipe": quantization.save_recipe},
                   {"MODEL": source, "--recipe": quantization.recipe}, data.path)
    refuse_ending("-o", output, TFLITE)
    refuse_ending("--save-recipe", quantization.save_recipe, RECIPE)
    with exchanged(source, conversion, shown) as (file, told):
        result = _quantize(file, target, data, quantization, conversion, shown, meter)
    result.findings = [*told, *(rename(finding, file, source) for finding in result.findings)]
    return result


def _quantize(source: Path, target: Path, data: DataOptions, quantization: QuantizeOptions, conversion: ConvertOptions,
              shown: Reporter, meter: Meter) -> QuantizeResult:
    if brings_scales(source):
        return _with_own_scales(source, target, data, conversion, shown, meter)
    refuse_integers(source)
    made = quantize_to(source, target, data, quantization, conversion, shown)
    if quantization.save_recipe is not None:
        from vitrify.quant import save_recipe

        save_recipe(made.recipe, quantization.save_recipe)
    from vitrify import tflite

    facts = model_facts(tflite.read(target), str(target), target.stat().st_size)
    findings = [*made.findings, *made.judged, *_kept(made, source, target, data, conversion)]
    return QuantizeResult(
        output=str(target), bytes=facts.bytes, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
        operators=facts.operators, float_operators=facts.float_operators, transposes=facts.transposes,
        transposes_left=facts.transposes_left, inputs=facts.inputs, outputs=facts.outputs, ledger=made.ledger,
        findings=findings,
        ok=all(finding.severity is not Severity.ERROR for finding in findings), quality=made.quality,
        conflicts=made.conflicts, calibration=made.calibration, analysis=made.analysis,
        recipe=str(quantization.recipe or ""))


def _with_own_scales(source: Path, target: Path, data: DataOptions, conversion: ConvertOptions, reporter: Reporter,
                     meter: Meter) -> QuantizeResult:
    """Write a model that is quantized already with the scales that it brings."""
    from vitrify import tflite

    ledger, findings = write_integers(source, target, conversion, reporter)
    facts = model_facts(tflite.read(target), str(target), target.stat().st_size)
    return QuantizeResult(
        output=str(target), bytes=facts.bytes, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
        operators=facts.operators, float_operators=facts.float_operators, transposes=facts.transposes,
        inputs=facts.inputs, outputs=facts.outputs, ledger=ledger,
        findings=[*findings, *([UNUSED] if data.given else [])],
        ok=all(finding.severity is not Severity.ERROR for finding in findings))


def _kept(made: Made, source: Path, target: Path, data: DataOptions, conversion: ConvertOptions) -> list[Finding]:
    """Say that a file is there although its answers are not good."""
    if all(finding.severity is not Severity.ERROR for finding in made.judged):
        return []
    how = "".join(f" --shape {name}{'=' if name else ''}{','.join(map(str, shape))}"
                  for name, shape in conversion.shapes.items())
    how += "".join(f" --dim {name}={extent}" for name, extent in conversion.dims.items())
    return [Finding(code="quantize.kept", severity=Severity.WARNING, where=str(target),
                    headline=f"{target} is written, but its answers are not good",
                    why=f"{counted(made.quality.samples, 'sample')} of the data went through float and INT8",
                    help=f"vitrify verify {source} {target} --data {data.path}{how} says where it begins")]


def quantize_to(source: Path, target: Path, data: DataOptions, quantization: QuantizeOptions,
                conversion: ConvertOptions, reporter: Reporter) -> Made:
    """Do the steps of a quantization and write ``target``.

    Raises:
        VitrifyError: as ``quantize_file``.
    """
    from vitrify import tflite
    from vitrify.data.binding import identity_interface
    from vitrify.passes import to_integer_forms

    data.require("calibration")
    recipe, goal = quantization.effective(), quantization.goal()
    state = target.with_name(target.name + SEARCH)
    kept = checkpoint(state) if goal.is_asked and data.path is not None else None
    with temporary_folder() as folder, shared_child():
        model, ledger = float_model(source, conversion, reporter)
        to_integer_forms(model, ledger, steps=recipe.in_steps)
        told = [*import_findings(model), *data.findings(model.interface or identity_interface(model))]
        between = Path(folder) / f"{source.stem}_float.tflite"
        tflite.write(model, between)
        model = tflite.read(between)
        with called(between, source), step(reporter, "calibrate") as note:
            statistics, facts = calibrate_model(between, model, data, recipe, kept, reporter.advance)
            note.text = f"{counted(facts.samples, 'sample')}, {facts.tensors} tensors"
        with called(between, source), step(reporter, "quantize") as note:
            how = How(goal=goal, state=state, jobs=quantization.jobs)
            result, recipe = quantize_well(model, between, statistics, recipe, data, how, reporter)
            if kept is not None:
                kept.unlink(missing_ok=True)
            note.text = f"{len(result.model.main)} nodes"
        compared: list[Verification] = []
        analyzed: list[AnalysisRow] = []
        limit = samples_judged(model)

        def compare(aside: Path, most: int | None) -> Verification:
            return compare_files(
                [between, aside], model.interface or identity_interface(model), data, ConvertOptions(),
                reporter.advance, limit=most, names=["float", target.name], kernels=KERNELS, tensors=False)

        def look(aside: Path) -> None:
            with called(between, source), step(reporter, "verify") as note:
                first = compare(aside, limit)
                # equal outputs may be those of samples in which there was nothing to find
                blind = any(output.equal for output in first.stages[0].outputs) and facts.samples > limit
                compared.append(compare(aside, None) if blind else first)
                note.text = summary(compared[0])
            if quantization.analyze:
                analyzed.append(analyze_float(between, aside, data, reporter, ("float", target.name)))

        findings = [*told, *result.findings, *write_checked(result.model, target, reporter, look)]
    judged = softened(compared[0].findings) if data.random else compared[0].findings
    return Made(ledger=[*ledger_rows(ledger), *ledger_rows(result.ledger)], findings=findings, judged=judged,
                calibration=facts, quality=compared[0].stages[0], recipe=recipe,
                conflicts=[ConflictRow(**asdict(c)) for c in result.conflicts],
                analysis=analyzed[0] if analyzed else None)


def samples_judged(model: Model) -> int:
    """How many samples float and INT8 are judged on, by what one inference costs."""
    macs = sum(node.op.macs(node) for node in model.main)
    return max(LEAST_COMPARED, min(MOST_COMPARED, COMPARED_MACS // max(macs, 1)))
