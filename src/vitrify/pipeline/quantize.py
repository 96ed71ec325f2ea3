"""`quantize`: a model in any format to full-integer TFLite, checked before it appears."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import counted
from vitrify.pipeline.convert import float_model, write_checked
from vitrify.pipeline.files import destination, existing
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import ledger_rows, model_facts
from vitrify.pipeline.steps import calibrate_model, import_findings, step
from vitrify.pipeline.verify import compare_files, softened, summary
from vitrify.pipeline.widening import quantize_enough
from vitrify.results import CalibrationFacts, ComparisonRow, LedgerRow, QuantizeResult

if TYPE_CHECKING:
    from vitrify.quant import Recipe
    from vitrify.verify.compare import Verification

COMPARED = 1
"""Samples that float and INT8 are compared on: enough to see damage; `vitrify verify` and `build` look closer."""

KERNELS = ("xnnpack", "optimized")
"""Of the float and the INT8 file: what is quick and near the reference, float sums with the least rounding."""


class Made(msgspec.Struct, kw_only=True):
    """What came of a quantization besides the file."""

    ledger: list[LedgerRow]
    findings: list[Finding]
    calibration: CalibrationFacts
    quality: ComparisonRow
    recipe: Recipe


def quantize_file(source: Path, output: Path | None, data: DataOptions, quantization: QuantizeOptions,
                  conversion: ConvertOptions, reporter: Reporter | None = None) -> QuantizeResult:
    """Quantize ``source`` and write ``output``; what stood there stays when it fails.

    Raises:
        VitrifyError: the model, the data or the recipe does not do, or the file cannot be written.
    """
    meter, shown = Meter(), reporter or Silent()
    target = destination(existing(source), output, "_int8.tflite")
    made = quantize_to(source, target, data, quantization, conversion, shown)
    if quantization.save_recipe is not None:
        from vitrify.quant import save_recipe

        save_recipe(made.recipe, quantization.save_recipe)
    from vitrify import tflite

    facts = model_facts(tflite.read(target), str(target), target.stat().st_size)
    return QuantizeResult(
        output=str(target), bytes=facts.bytes, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
        operators=facts.operators, float_operators=facts.float_operators, transposes=facts.transposes,
        inputs=facts.inputs, outputs=facts.outputs, ledger=made.ledger, findings=made.findings,
        ok=all(finding.severity is not Severity.ERROR for finding in made.findings), quality=made.quality,
        calibration=made.calibration, recipe=str(quantization.recipe or ""))


def quantize_to(source: Path, target: Path, data: DataOptions, quantization: QuantizeOptions,
                conversion: ConvertOptions, reporter: Reporter) -> Made:
    """Do the steps of a quantization and write ``target``.

    Raises:
        VitrifyError: as ``quantize_file``.
    """
    from vitrify import tflite
    from vitrify.data.binding import identity_interface

    data.require("calibration")
    recipe = quantization.effective()
    with tempfile.TemporaryDirectory(prefix="vitrify-") as folder, shared_child():
        model, ledger = float_model(source, conversion, reporter)
        told = import_findings(model)
        between = Path(folder) / f"{source.stem}_float.tflite"
        tflite.write(model, between)
        model = tflite.read(between)
        with step(reporter, "calibrate") as note:
            statistics, facts = calibrate_model(between, model, data, recipe, None, reporter.advance)
            note.text = f"{counted(facts.samples, 'sample')}, {facts.tensors} tensors"
        with step(reporter, "quantize") as note:
            result, recipe = quantize_enough(model, between, statistics, recipe, data)
            note.text = f"{len(result.model.main)} nodes"
        compared: list[Verification] = []

        def look(aside: Path) -> None:
            with step(reporter, "verify") as note:
                compared.append(compare_files(
                    [between, aside], model.interface or identity_interface(model), data, ConvertOptions(),
                    reporter.advance, limit=COMPARED, names=["float", target.name], kernels=KERNELS, tensors=False))
                note.text = summary(compared[0])

        findings = [*told, *result.findings, *write_checked(result.model, target, reporter, look)]
    compared_findings = softened(compared[0].findings) if data.random else compared[0].findings
    return Made(ledger=[*ledger_rows(ledger), *ledger_rows(result.ledger)], findings=[*findings, *compared_findings],
                calibration=facts, quality=compared[0].stages[0], recipe=recipe)
