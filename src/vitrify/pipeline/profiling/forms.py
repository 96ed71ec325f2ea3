"""The forms of a model that a profile looks at: the user's file, float TFLite, integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.matching import SourceEntry
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.diffing.sides import source_entries
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.keeping import brings_scales, write_integers
from vitrify.pipeline.steps import COMPILABLE, import_findings, is_tflite, kind_of, refuse_compiled, step
from vitrify.pipeline.verifying.verify import softened

if TYPE_CHECKING:
    from vitrify.ir import Ledger, Model


@dataclass
class Form:
    """One form of a model: its file, what that holds, and how it came to be."""

    path: Path
    model: Model
    made: str


@dataclass
class Forms:
    """The forms that there are; ``sources`` are the nodes of the user's file. ``profiled`` is the last of them."""

    sources: list[SourceEntry] = field(default_factory=list)
    floating: Form | None = None
    integers: Form | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def profiled(self) -> Form:
        """The form that is profiled: integers where there are some."""
        found = self.integers or self.floating
        assert found is not None
        return found


def make_forms(file: Path, folder: Path, data: DataOptions, conversion: ConvertOptions, reporter: Reporter, *,
               integers: bool) -> Forms:
    """Make the forms of ``file`` that there are to be, aside in ``folder``; a TFLite file is taken as it is.

    ``integers``: a float model is quantized too, on the samples or else on random values, since the time of integer
    kernels depends on shapes and not on values.

    Raises:
        VitrifyError: it is no model, cannot be imported, or not be quantized.
    """
    from vitrify import tflite

    refuse_compiled(file)
    forms = Forms()
    if is_tflite(file):
        with step(reporter, "read") as note:
            model = tflite.read(file)
            note.text = f"{len(model.main)} nodes in {file.name}"
        forms.sources = _entries(model)
        if kind_of(model) in COMPILABLE:
            forms.integers = _fixed(Form(file, model, "as it is"), folder)
            return forms
        if not integers and not conversion.sizes:
            forms.floating = _fixed(Form(file, model, "as it is"), folder)
            return forms
    else:
        forms.sources = source_entries(file)
        if brings_scales(file):
            target = folder / f"{file.stem}_int8.tflite"
            _, told = write_integers(file, target, conversion, reporter)
            forms.integers, forms.findings = Form(target, tflite.read(target), "with its own scales"), list(told)
            return forms
    _add_float(forms, file, folder, conversion, reporter, data if integers else None)
    return forms


def _fixed(form: Form, folder: Path) -> Form:
    """Return the form with the extents that its file leaves free fixed to those that stand there.

    LiteRT's profiler does not take free ones.
    """
    from vitrify import tflite

    free = [t for graph in form.model.graphs for t in graph.tensors() if any(d < 0 for d in t.shape_signature)]
    if not free:
        return form
    for tensor in free:
        tensor.shape_signature = ()
    target = folder / form.path.name
    tflite.write(form.model, target)
    return Form(target, form.model, "as it is, its free extents fixed")


def _add_float(forms: Forms, file: Path, folder: Path, conversion: ConvertOptions, reporter: Reporter,
               data: DataOptions | None) -> None:
    """Add the float form, and with ``data`` the one in integers that is made of it."""
    from vitrify import tflite

    model, ledger = float_model(file, conversion, reporter)
    target = folder / f"{file.stem}_float.tflite"
    tflite.write(model, target)
    forms.floating = Form(target, tflite.read(target), "converted")
    if data is None:
        forms.findings += import_findings(model)
        return
    try:
        forms.integers = _integers(forms, file, folder, data, conversion, reporter, model, ledger)
    except VitrifyError as error:
        forms.findings += [structs.replace(f, severity=Severity.ERROR) for f in error.findings]


def _integers(forms: Forms, file: Path, folder: Path, data: DataOptions, conversion: ConvertOptions, reporter: Reporter,
              model: Model, ledger: Ledger) -> Form:
    """Quantize the float model, on the samples where there are some.

    Raises:
        VitrifyError: it cannot be.
    """
    from vitrify import tflite
    from vitrify.pipeline.checking.without_data import quantize_on_trial
    from vitrify.pipeline.quantizing.quantize import quantize_to

    target = folder / f"{file.stem}_int8.tflite"
    if data.path is not None or data.feed is not None:
        made = quantize_to(file, target, data, QuantizeOptions(), conversion, reporter)
        forms.findings += [*made.findings, *softened(made.judged)]
        how = "quantized on the samples"
    else:
        _, told, refused = quantize_on_trial(model, ledger, target, conversion, reporter)
        forms.findings += [Finding(
            code="profile.quantized", severity=Severity.INFO, where=str(file),
            headline="the model is float; its integer form, quantized on random values, is profiled",
            why="times depend on operators, types and shapes, not on the values"), *told, *refused]
        how = "quantized on random values"
    return Form(target, tflite.read(target), how)


def sources_of(file: Path) -> list[SourceEntry]:
    """Return the nodes of a model as its author knows them."""
    from vitrify import tflite

    return _entries(tflite.read(file)) if is_tflite(file) else source_entries(file)


def _entries(model: Model) -> list[SourceEntry]:
    """The nodes that a TFLite file was made of: its own, or those of the model that it was converted from."""
    found: dict[str, SourceEntry] = {}
    for node in model.main:
        reads, makes = tuple(t.name for t in node.inputs if t is not None), tuple(t.name for t in node.outputs)
        for source in node.origin.sources:
            known = found.get(source.name)
            before = (known.inputs, known.outputs) if known is not None else ((), ())
            found[source.name] = SourceEntry(source.name, source.operator or node.op.kind, (*before[0], *reads),
                                             (*before[1], *makes))
    return list(found.values())
