"""The error analysis as commands and builds do it: a float model against its quantized file, operator by operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.core.files import temporary_folder
from vitrify.core.progress import Reporter
from vitrify.core.words import counted, decibels
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.steps import is_tflite, step
from vitrify.results import AnalysisRow

if TYPE_CHECKING:
    from vitrify.ir import Model

ANALYZED = 4
"""Samples, spread over the data, that both run on tensor by tensor; the costs are found on the first."""


def analyze_files(source: Path, candidate: Path, data: DataOptions, conversion: ConvertOptions, reporter: Reporter,
                  names: tuple[str, str] | None = None) -> AnalysisRow:
    """Analyze a quantized file against the float model in any format that it was made from.

    Raises:
        VitrifyError: the two have no operators in common, or one of them does not run.
    """
    from vitrify import tflite
    from vitrify.passes import to_integer_forms

    names = names or (source.name, candidate.name)
    if is_tflite(source) and _alike(tflite.read(source), tflite.read(candidate)):
        return analyze_float(source, candidate, data, reporter, names)
    with temporary_folder() as folder:
        model, ledger = float_model(source, conversion, reporter)
        to_integer_forms(model, ledger)
        between = Path(folder) / f"{source.stem}_float.tflite"
        tflite.write(model, between)
        return analyze_float(between, candidate, data, reporter, names)


def analyze_float(reference: Path, candidate: Path, data: DataOptions, reporter: Reporter,
                  names: tuple[str, str]) -> AnalysisRow:
    """Analyze a quantized file against the float TFLite file that it was made from, as a step of a command."""
    with step(reporter, "analyze") as note:
        found, note.text = analyzed(reference, candidate, data, reporter, names)
    return found


def analyzed(reference: Path, candidate: Path, data: DataOptions, reporter: Reporter,
             names: tuple[str, str]) -> tuple[AnalysisRow, str]:
    """Return the analysis, and what came out in a few words."""
    from vitrify import tflite
    from vitrify.data.binding import identity_interface
    from vitrify.verify.operators import analyze

    model = tflite.read(reference)
    samples = data.open(model.interface or identity_interface(model), ANALYZED, purpose="comparison")
    found = analyze(reference, candidate, samples.walk(skipped=[]), reporter.advance, names)
    return found, _summary(found)


def _summary(found: AnalysisRow) -> str:
    worst = found.worst(1)
    if not worst:
        return "no operators"
    own = worst[0].part_db if worst[0].part_db is not None else worst[0].single.sqnr_db
    return f"{counted(len(found.operators), 'operator')}; most is lost by {worst[0].node}, {decibels(own)} by itself"


def _alike(reference: Model, candidate: Model) -> bool:
    """True when most tensors of the quantized file have their name from this very float file."""
    known = {t.name for node in reference.main for t in node.outputs}
    own = [t.name for node in candidate.main for t in node.outputs]
    return 2 * sum(name in known for name in own) > len(own)
