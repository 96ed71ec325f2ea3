"""`verify`'s second look: tensor by tensor, each operator on the values of the form that it is held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.pipeline.steps import is_tflite, runs_on_npusim, step
from vitrify.results.tracing import TracedRow

if TYPE_CHECKING:
    from vitrify.ir import Graph
    from vitrify.runtimes.litert.runtime import Kernels
    from vitrify.verify.locating import Located

Array = np.ndarray[Any, np.dtype[Any]]
Sample = Mapping[str, Array]
SAMPLES = 2
"""Samples on which every operator runs by itself."""
KERNELS: tuple[Kernels, ...] = ("reference", "optimized", "xnnpack")


class Form(NamedTuple):
    """One form: what it is called, its file, and with which kernels of LiteRT it runs."""

    name: str
    path: Path
    kernels: Kernels | None = None


def with_kernels(path: Path) -> tuple[Path, Kernels | None]:
    """Take kernels off a name such as ``model.tflite@xnnpack``."""
    stem, at, said = path.name.rpartition("@")
    kernels = next((one for one in KERNELS if one == said), None)
    return (path.with_name(stem), kernels) if at and kernels and not path.exists() else (path, None)


def locate_forms(forms: Sequence[Form], samples: Iterable[Sample], shapes: Mapping[str, Any], values: Mapping[str, Any],
                 shown: Reporter) -> tuple[list[Located], list[Finding]]:
    """Look at every form after the first; what cannot be looked at so closely is told and left out."""
    from vitrify import runtimes, tflite

    found: list[Located] = []
    told: list[Finding] = []
    few = list(islice(samples, SAMPLES))
    first = forms[0]
    with step(shown, "operators") as note:
        with runtimes.open(first.path, shapes=shapes, kernels=first.kernels or "optimized",
                           values=None if is_tflite(first.path) else values) as reference:
            graph = tflite.read(first.path).main if is_tflite(first.path) else None
            for number, form in enumerate(forms[1:], 1):
                try:
                    one = _locate(form, forms[:number], reference, graph, few)
                except VitrifyError as error:
                    told.append(_not_looked_at(form, error.findings[0].headline))
                    continue
                if one is None:
                    told.append(_not_looked_at(form, "its operators cannot be run one by one"))
                else:
                    found.append(one)
                shown.advance(number, len(forms) - 1)
        note.text = "; ".join(_words(one) for one in found)
    return found, told


def _locate(form: Form, before: Sequence[Form], reference: Any, graph: Graph | None,
            samples: Sequence[Sample]) -> Located | None:
    from vitrify.verify.locating import locate

    base = _same_integers(form, before)
    if base is not None:
        return _integers(form, base, samples, reference)
    if not is_tflite(form.path) or runs_on_npusim(form.path):
        return None
    return locate(form.name, reference, graph, form.path, samples, form.kernels)


def _same_integers(form: Form, before: Sequence[Form]) -> Form | None:
    """The nearest form before that computes the same integers; what is compiled is made of the one before it."""
    from vitrify import tflite

    earlier = [one for one in reversed(before) if is_tflite(one.path) and not runs_on_npusim(one.path)]
    if not is_tflite(form.path):
        return None
    if runs_on_npusim(form.path):
        return earlier[0] if earlier else None
    own = _scales(tflite.read(form.path).main)
    return next((one for one in earlier if own and _scales(tflite.read(one.path).main) == own), None)


def _scales(graph: Graph) -> dict[str, tuple[tuple[int, ...], object]]:
    """The computed tensors that are integers with a scale; empty where not most are."""
    made: dict[str, tuple[tuple[int, ...], object]] = {
        t.name: (t.shape, t.quantization) for node in graph for t in node.outputs
        if t.quantization is not None}
    return made if len(made) > 0.5 * sum(len(node.outputs) for node in graph) else {}


def _integers(form: Form, base: Form, samples: Sequence[Sample], reference: Any) -> Located:
    from vitrify import tflite
    from vitrify.data.binding import identity_interface
    from vitrify.runtimes.litert import LiteRT
    from vitrify.verify.locating import locate_integers
    from vitrify.verify.locating.inputs import renamed_inputs

    model = tflite.read(base.path)
    computed = {t.name for node in model.main for t in node.outputs}
    kernels: Kernels = base.kernels or "reference"
    with LiteRT(base.path, kernels="reference", interface=model.interface or identity_interface(model)) as runtime:
        inputs = [runtime.file_inputs(renamed_inputs(sample, reference, runtime)) for sample in samples]
    if runs_on_npusim(form.path):
        from vitrify.runtimes.npusim import NpuSim

        outputs = [t.name for t in model.main.outputs]
        with NpuSim(form.path) as simulated:
            names = [name for name in simulated.tensors if name in computed and name not in outputs]
            given = []
            for one in inputs:
                raw, traced = simulated.observe_raw(one, names)
                given.append({**traced, **dict(zip(outputs, raw, strict=True))})
        shared = set.intersection(*(set(one) for one in given))
        return locate_integers(form.name, base.path, inputs, [{n: one[n] for n in shared} for one in given],
                               kernels="reference")
    if form.kernels == "xnnpack":
        return locate_integers(form.name, base.path, inputs, None, kernels=kernels, other=form.path,
                               other_kernels="xnnpack")
    other = tflite.read(form.path)
    with LiteRT(form.path, kernels=form.kernels or "optimized",
                interface=other.interface or identity_interface(other)) as candidate:
        names = [name for name in candidate.tensors if name in computed]
        given = [candidate.trace_raw(one, names) for one in inputs]
    return locate_integers(form.name, base.path, inputs, given, kernels=kernels)


def _not_looked_at(form: Form, why: str) -> Finding:
    return Finding(code="verify.operators", severity=Severity.INFO, where=form.name,
                   headline=f"only whole runs of {form.name} are compared: {why}")


def _words(found: Located) -> str:
    bad = found.fault or found.excess
    return f"{found.stage} " + ("only roundings" if bad is None else f"{bad.verdict} at '{bad.tensor}'")


def tell(located: Sequence[Located]) -> tuple[str | None, list[Finding]]:
    """Say where the first form goes wrong, and a finding for each one that does."""
    first: str | None = None
    findings = []
    for one in located:
        row = one.fault
        if row is None:
            if one.excess is not None:
                first = first or f"{one.stage}: {describe(one.excess)}"
                findings.append(_excess(one.excess))
            continue
        said = f"{one.stage}: {describe(row)}"
        first = first or said
        more = sum(other.verdict == "fault" for other in one.rows) - 1
        findings.append(Finding(
            code="verify.fault", where=f"{one.stage}, tensor '{row.tensor}'",
            headline=f"{row.operator} '{row.node}' gives values that no rounding explains: {_measure(row)}",
            why="its inputs were those of the form it is held against, so what stands before it is innocent"
                + (f"; {more} more operators are wrong by themselves" if more else ""),
            help=f"look at it: vitrify trace … \"{row.tensor}\"; the operator's weights, bias, padding and scales "
                 "in this form are not what the form before has"))
    return first, findings


def _excess(row: TracedRow) -> Finding:
    return Finding(code="verify.excess", severity=Severity.WARNING, where=f"{row.stage}, tensor '{row.tensor}'",
                   headline=f"{row.operator} '{row.node}' adds more noise than rounding explains: {_measure(row)}",
                   why="its inputs were those of the form it is held against",
                   help="a coarse scale, or a kernel that rounds otherwise; what it costs is for the outputs to say")


def describe(row: TracedRow) -> str:
    """Name a tensor and what is wrong with it."""
    hidden = "" if not row.covers else ", or before it " + ", ".join(f"'{name}'" for name in row.covers[-4:])
    return f"tensor '{row.tensor}' ({row.operator} '{row.node}'){hidden}, {_measure(row)}"


def _measure(row: TracedRow) -> str:
    own = row.own
    said = []
    if own is not None and row.expected_db is not None:
        value = "no signal" if own.sqnr_db is None else f"{own.sqnr_db:.1f} dB"
        said.append(f"SQNR {value} by itself, rounding leaves {row.expected_db:.1f} dB")
    elif own is not None and own.max_lsb is not None:
        said.append(f"off by up to {own.max_lsb:.4g} steps by itself" if not row.why else "")
    return "; ".join(part for part in (*said, row.why) if part)
