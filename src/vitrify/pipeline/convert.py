"""`convert`: a model in any format to float TFLite, checked before it appears."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.ir import Ledger, Model
from vitrify.pipeline.describing import describe
from vitrify.pipeline.endings import TFLITE, refuse_ending
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import destination, existing, refuse_overlap, rename, staged
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import ledger_rows, model_facts
from vitrify.pipeline.steps import (
    INTEGER_KINDS,
    import_findings,
    import_model,
    optimize_model,
    prepare_file,
    refuse_compiled,
    state_findings,
    step,
    undo_integers,
)
from vitrify.results import ConvertResult

__all__ = ["ConvertOptions", "convert_file", "float_model", "write_checked"]


def convert_file(source: Path, output: Path | None, options: ConvertOptions,
                 reporter: Reporter | None = None) -> ConvertResult:
    """Convert ``source`` and write ``output``; what stood there stays when the conversion fails.

    Raises:
        VitrifyError: the model cannot be read or converted, or the file not written.
    """
    meter, shown = Meter(), reporter or Silent()
    target = destination(existing(source), output, "_float.tflite")
    refuse_overlap({"-o": target}, {"MODEL": source})
    refuse_ending("-o", output, TFLITE)
    with exchanged(source, options, shown) as (file, told):
        model, ledger = float_model(file, options, shown)
        findings = [*told, *import_findings(model), *state_findings(model), *write_checked(model, target, shown)]
    facts = model_facts(model, str(target), target.stat().st_size)
    if facts.kind in INTEGER_KINDS:
        findings.append(Finding(code="convert.integer", severity=Severity.WARNING, where=str(source),
                                headline=f"the model is {facts.kind} already; it was cleaned up, not made float"))
    return ConvertResult(
        output=str(target), bytes=facts.bytes, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
        operators=facts.operators, float_operators=facts.float_operators, transposes=facts.transposes,
        transposes_left=facts.transposes_left, inputs=facts.inputs, outputs=facts.outputs,
        ledger=ledger_rows(ledger), findings=findings)


def float_model(source: Path, options: ConvertOptions, reporter: Reporter) -> tuple[Model, Ledger]:
    """Import and optimize a model.

    Raises:
        VitrifyError: it cannot be read, or something in it is not supported.
    """
    refuse_compiled(source)
    with step(reporter, "import") as note:
        model = import_model(source, options)
        note.text = f"{sum(map(len, model.graphs))} nodes from {source.name}"
    if options.anew:
        undo_integers(model)
    with step(reporter, "optimize") as note:
        ledger = optimize_model(model, options)
        note.text = f"{sum(map(len, model.graphs))} nodes"
    describe(model, options.task)
    return model, ledger


def module_model(module: object, example_inputs: Any, options: ConvertOptions) -> Model:
    """Import and optimize a PyTorch module that is in memory.

    Raises:
        VitrifyError: it is no module, cannot be exported, or something in it is not supported.
    """
    from vitrify.importers.torch import load_module

    model = load_module(module, example_inputs, options.sizes, options.values)
    optimize_model(model, options)
    return model


def write_checked(model: Model, target: Path, reporter: Reporter,
                  trial: Callable[[Path], None] | None = None) -> list[Finding]:
    """Write a model; it takes its name only when LiteRT has loaded it, or run it in ``trial``.

    Raises:
        VitrifyError: it cannot be written, or LiteRT refuses it.
    """
    from vitrify import tflite

    with staged(target) as aside:
        with step(reporter, "write") as note:
            tflite.write(model, aside)
            note.text = f"{aside.stat().st_size / 1e6:.2f} MB"
        if trial is None:
            return _prepared(aside, target, reporter)
        try:
            trial(aside)
        except VitrifyError:
            _prepared(aside, target, reporter)       # knows the node that LiteRT stumbles on; else the error stands
            raise
    return []


def _prepared(aside: Path, target: Path, reporter: Reporter) -> list[Finding]:
    with step(reporter, "prepare") as note:
        findings = [rename(finding, aside, target) for finding in prepare_file(aside, invoke=False)]
        note.text = "LiteRT takes the file"
    return findings
