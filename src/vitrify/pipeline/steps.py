"""The single steps that commands and builds are made of. Each takes values and gives values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.ir import Ledger, Model
from vitrify.pipeline.options import ConvertOptions

INTEGER_KINDS = ("int8", "int8-float-io", "int16x8", "compiled")
"""Kinds of a TFLite file that are not to be rewritten as if they were float."""


class Note:
    """What a step says about itself when it is over."""

    text = "done"


@contextmanager
def step(reporter: Reporter, name: str) -> Iterator[Note]:
    """Tell the reporter that a step begins and how it ended."""
    reporter.stage(name)
    note = Note()
    try:
        yield note
    except VitrifyError:
        note.text = "failed"
        raise
    except KeyboardInterrupt:
        note.text = "interrupted"
        raise
    finally:
        reporter.finish(name, note.text)


def import_model(path: Path, options: ConvertOptions) -> Model:
    """Load a file of any format into the IR.

    Raises:
        VitrifyError: as ``vitrify.importers.load`` says.
    """
    from vitrify import importers

    return importers.load(path, shapes=options.shapes)


def kind_of(model: Model) -> str:
    """Return the kind of a model, in the words of the command line."""
    from vitrify.tflite.kind import classify

    kind = classify(model)
    return str(getattr(kind, "value", kind))


def optimize_model(model: Model, options: ConvertOptions) -> Ledger:
    """Run the clean-up and layout passes, unless the model is an integer one already."""
    if kind_of(model) in INTEGER_KINDS:
        return Ledger()
    from vitrify.passes import optimize

    return optimize(model, input_layout=options.input_layout, output_layout=options.output_layout)


def prepare_file(path: Path) -> list[Finding]:
    """Load a TFLite file in a child process; the findings say what is wrong with it.

    Raises:
        VitrifyError: LiteRT refuses the file, or died of it.
    """
    from vitrify.runtimes.prepare import prepare

    findings = list(prepare(path))
    if any(f.severity is Severity.ERROR for f in findings):
        from vitrify.core.errors import ModelError

        raise ModelError(findings)
    return findings
