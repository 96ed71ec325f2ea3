"""Models that bring scales of their own: they become integer TFLite without calibration."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import ModelError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Reporter
from vitrify.core.words import shell
from vitrify.ir import Ledger, Model
from vitrify.pipeline.convert import float_model, write_checked
from vitrify.pipeline.files import called
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.rows import ledger_rows
from vitrify.pipeline.steps import COMPILABLE, INTEGER_KINDS, import_findings, is_tflite, kind_of
from vitrify.results import LedgerRow

UNUSED = Finding(code="quant.samples-unused", severity=Severity.INFO,
                 headline="the samples are not used for calibration: the file brings its own scales",
                 why="they are kept as they are; `vitrify verify` compares it with its source on samples")


def brings_scales(path: Path) -> bool:
    """True for an ONNX file whose values are quantized already.

    Raises:
        VitrifyError: the file cannot be read.
    """
    if is_tflite(path):
        return False
    from vitrify.importers.onnx.quantized.scaled import has_own_scales

    return has_own_scales(path)


def refuse_integers(path: Path) -> None:
    """Refuse to quantize a TFLite file that is quantized already, and say what it is.

    Raises:
        ModelError: it is.
    """
    if not is_tflite(path):
        return
    from vitrify import tflite

    found = tflite.contents(tflite.read(path))
    if found.kind.value in INTEGER_KINDS and found.kind.value != "compiled":
        raise ModelError.of(
            "quant.quantized", f"the model is quantized already: {found}", where=str(path),
            why="its values are rounded to steps; to round them anew can only lose",
            help=f"take it as it is: vitrify build {shell(path)} --target NAME; `vitrify convert` cleans it, values "
                 "unchanged; to calibrate anew, give the float model that it was made from")


def integer_model(source: Path, conversion: ConvertOptions, reporter: Reporter) -> tuple[Model, Ledger]:
    """Import and optimize a model that brings its own scales.

    Raises:
        VitrifyError: it cannot be converted, or nothing in it computes with its scales.
    """
    model, ledger = float_model(source, conversion, reporter)
    refuse_float(model, source)
    return model, ledger


def refuse_float(model: Model, source: Path) -> None:
    """Refuse a model in which no operator computes with the scales that the file brings.

    Raises:
        ModelError: there is none.
    """
    kind = kind_of(model)
    if kind not in COMPILABLE:
        raise ModelError.of(
            "quant.scales-unused", f"{source} brings scales, but no operator can compute with them: it is {kind}",
            where=str(source), why="an integer operator needs a scale on both sides: QuantizeLinear after it, "
                                   "DequantizeLinear before it",
            help="give the float model; vitrify quantize FLOAT_MODEL --data FOLDER calibrates it")


def write_integers(source: Path, target: Path, conversion: ConvertOptions,
                   reporter: Reporter) -> tuple[list[LedgerRow], list[Finding]]:
    """Write ``source`` with its own scales to ``target``; returns what was done and what is worth knowing.

    Raises:
        VitrifyError: it cannot be converted, or LiteRT refuses it.
    """
    with temporary_folder(), shared_child(), called(target, source):
        model, ledger = integer_model(source, conversion, reporter)
        findings = [*import_findings(model), *write_checked(model, target, reporter)]
    return ledger_rows(ledger), findings
