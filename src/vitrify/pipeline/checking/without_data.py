"""The integer form of a float model without data: where nodes run depends on operators and shapes, not on scales."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Reporter
from vitrify.core.words import counted
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.rows import ledger_rows
from vitrify.pipeline.steps import calibrate_model, import_findings, step
from vitrify.results import LedgerRow

if TYPE_CHECKING:
    from vitrify.ir import Ledger, Model
    from vitrify.quant import QuantizeResult, Recipe, Statistics

REFUSED = "quant.no_int8"
_ONE = DataOptions(random=True, samples=1)


def quantize_on_trial(model: Model, ledger: Ledger, target: Path, conversion: ConvertOptions,
                      reporter: Reporter,
                      recipe: Recipe | None = None) -> tuple[list[LedgerRow], list[Finding], list[Finding]]:
    """Quantize an imported float model on one sample of random values and write ``target``; it stays as it is itself.

    Operators without an integer form stay in float, as a recipe may ask for; ``recipe`` takes the place of the quick
    one in 8 bits. Returns the ledger, what is worth knowing, and what was refused.

    Raises:
        VitrifyError: it cannot be quantized at all, or not be written.
    """
    from vitrify import tflite
    from vitrify.passes import to_integer_forms
    from vitrify.quant.copying import copy_model

    model = copy_model(model)
    recipe = recipe or QuantizeOptions(effort="fast").effective()
    with temporary_folder() as folder, shared_child():
        to_integer_forms(model, ledger, steps=recipe.in_steps)
        told = import_findings(model)
        between = Path(folder) / f"{target.stem}_float.tflite"
        tflite.write(model, between)
        model = tflite.read(between)
        with step(reporter, "calibrate") as note:
            statistics, _ = calibrate_model(between, model, _ONE, recipe, None, reporter)
            note.text = "one sample of random values"
        with step(reporter, "quantize") as note:
            made, refused = _keeping(model, statistics, recipe)
            note.text = counted(len(made.model.main), "node")
        tflite.write(made.model, target)
    return [*ledger_rows(ledger), *ledger_rows(made.ledger)], told, refused


def refused_anew(path: Path, conversion: ConvertOptions, reporter: Reporter) -> list[Finding]:
    """Return what keeps a file that is quantized in part from being quantized anew in full; empty when nothing does."""
    try:
        with temporary_folder() as folder:
            model, ledger = float_model(path, structs.replace(conversion, anew=True), reporter)
            _, _, refused = quantize_on_trial(model, ledger, Path(folder) / path.name, conversion, reporter)
    except VitrifyError as error:
        refused = list(error.findings)
    return [structs.replace(finding, severity=Severity.WARNING) for finding in refused]


def _keeping(model: Model, statistics: Statistics, recipe: Recipe) -> tuple[QuantizeResult, list[Finding]]:
    """Quantize; what has no integer form is kept in float, kind by kind."""
    from vitrify.quant import Override, quantize

    try:
        return quantize(model, statistics, recipe), []
    except UnsupportedError as error:
        refused = [structs.replace(finding, severity=Severity.WARNING) for finding in error.findings]
        if any(finding.code != REFUSED for finding in refused):
            raise
    islands = sorted({finding.headline.split(" x ", 1)[-1].split(" ", 1)[0] for finding in refused})
    told = [Override(operator=kind, activations="float") for kind in islands]
    return quantize(model, statistics, structs.replace(recipe, overrides=(*recipe.overrides, *told))), refused
