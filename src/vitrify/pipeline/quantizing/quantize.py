"""`quantize`: a model in any format to full-integer TFLite, checked before it appears."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import counted, shell
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.endings import RECIPE, TFLITE, refuse_ending
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import destination, existing, refuse_overlap, rename
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.keeping import UNUSED, brings_scales, refuse_integers, write_integers
from vitrify.pipeline.quantizing.making import Job, Made, make
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import ledger_rows, model_facts
from vitrify.pipeline.steps import import_findings
from vitrify.results import QuantizeResult

SEARCH = ".search"
"""What the file beside the output has behind its name that keeps what a search has found, until it is over."""


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
    if not conversion.anew:
        refuse_integers(source)
    made = quantize_to(source, target, data, quantization, conversion, shown)
    if quantization.save_recipe is not None:
        from vitrify.quant import save_recipe

        save_recipe(made.recipe, quantization.save_recipe)
    kept = _kept(made, source, target, data, conversion)
    return made.result(target, meter, recipe=str(quantization.recipe or ""), told=kept)


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
                    help=f"vitrify verify {shell(source)} {shell(target)} --data {shell(data.path)}{how} "
                         "says where it begins")]


def quantize_to(source: Path, target: Path, data: DataOptions, quantization: QuantizeOptions,
                conversion: ConvertOptions, reporter: Reporter) -> Made:
    """Do the steps of a quantization and write ``target``.

    Raises:
        VitrifyError: as ``quantize_file``.
    """
    from vitrify import tflite
    from vitrify.passes import to_integer_forms
    from vitrify.pipeline.quantizing.search.kept import resumable

    data.require("calibration")
    recipe, goal = quantization.effective(), quantization.goal()
    with temporary_folder() as folder, shared_child():
        model, ledger = float_model(source, conversion, reporter)
        to_integer_forms(model, ledger, steps=recipe.in_steps)
        told = import_findings(model)
        between = Path(folder) / f"{source.stem}_float.tflite"
        tflite.write(model, between)
        state = target.with_name(target.name + SEARCH)
        job = Job(data=data, recipe=recipe, goal=goal, jobs=quantization.jobs, analyze=quantization.analyze,
                  state=state, source=source)
        with resumable(state):
            made = make(tflite.read(between), between, target, job, reporter)
    return structs.replace(made, ledger=[*ledger_rows(ledger), *made.ledger], findings=[*told, *made.findings])
