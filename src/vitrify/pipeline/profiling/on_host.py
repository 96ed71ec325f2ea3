"""Profiles a form of a model on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.profiling.base import Profiled, ProfileOptions, answer, complete_answer
from vitrify.pipeline.profiling.forms import Form, Forms
from vitrify.pipeline.profiling.values import values_for
from vitrify.pipeline.steps import step
from vitrify.profile.host import HostOptions, profile_host
from vitrify.profile.memory import measure_arena, plan
from vitrify.profile.sizes import describe
from vitrify.results import ProfileResult
from vitrify.results.profiling import MeasuredRow, MeasuredRun

if TYPE_CHECKING:
    from vitrify.ir import Graph


def on_host(forms: Forms, options: ProfileOptions, data: DataOptions, shown: Reporter) -> Profiled:
    """Measure the last form; what LiteRT does not run is told, and the rest shown."""
    form = forms.profiled
    graph = form.model.main
    result = answer(form)
    result.basis = "measured"
    result.memory = plan(graph)
    how = HostOptions(options.xnnpack, options.threads, options.runs, options.warmup)
    with step(shown, "measure") as note:
        try:
            values = values_for(form.path, data)
            found = profile_host(form.path, graph, values.arrays, how, shown)
        except VitrifyError as error:
            result.operators = list(_unmeasured(graph))
            result.source = "nothing was measured"
            result.findings += _not_run(error)
            note.text = "it does not run here"
            complete_answer(result, forms)
            return Profiled(result, graph)
        found.run.inputs = values.words
        note.text = f"{found.run.whole.quiet_ms:.3g} ms"
    with step(shown, "memory") as note:
        measure_arena(form.path, result.memory)
        result.memory.reserve_bytes = result.memory.arena_bytes or None
        result.memory.reserve_why = "what LiteRT's own kernels take on this machine; weights and the interpreter's " \
                                    "own data come on top"
        note.text = f"{result.memory.arena_bytes:,} bytes"
    result.operators, result.overhead, result.measurement = list(found.rows), found.overhead, found.run
    if forms.integers is not None and forms.floating is not None:
        _beside(result, forms.floating, how, data, shown)
    result.total_ms = found.run.whole.quiet_ms
    result.source = _measured_by(found.run)
    result.findings += [*values.findings, *found.findings, *_apart(found.run),
                        *_unsteady(found.run)]
    complete_answer(result, forms)
    return Profiled(result, graph)


def _beside(result: ProfileResult, form: Form, how: HostOptions, data: DataOptions, shown: Reporter) -> None:
    """Measure the float form too, for the columns before quantization."""
    with step(shown, "measure float") as note:
        try:
            found = profile_host(form.path, form.model.main, values_for(form.path, data).arrays, how, shown)
        except VitrifyError as error:
            result.findings += [structs.replace(f, severity=Severity.WARNING) for f in error.findings]
            note.text = "it does not run here"
            return
        note.text = f"{found.run.whole.quiet_ms:.3g} ms"
    result.float_operators, result.float_measurement = list(found.rows), found.run


def _measured_by(run: MeasuredRun) -> str:
    return f"measured on this machine ({run.processor}): {run.runtime}, {run.kernels} kernels, {run.threads} " \
           f"thread{'s' * (run.threads > 1)}, {run.inputs}"


def _unmeasured(graph: Graph) -> list[MeasuredRow]:
    rows = []
    for index, node in enumerate(graph):
        row = MeasuredRow(index=index, node=node.name, operator=node.op.kind, placement="cpu")
        describe(row, node)
        rows.append(row)
    return rows


def _not_run(error: VitrifyError) -> list[Finding]:
    return [structs.replace(first, severity=Severity.ERROR, help=first.help or
                            "sizes and lifetimes are shown; --target NAME estimates the time on a chip")
            for first in error.findings]


UNSTEADY = 1.3
"""Where nine of ten runs take up to this many times the quiet ones, something else is at work."""


APART = 0.1
"""How far the sum of all operators may be from a run without the profiler before that is told."""


def _apart(run: MeasuredRun) -> list[Finding]:
    ratio = run.sum_ratio
    if ratio is None or abs(ratio - 1) <= APART:
        return []
    return [Finding(code="profile.apart", severity=Severity.WARNING,
                    headline=f"the times of the operators make up {ratio:.0%} of a run without the profiler",
                    why="the profiler's own work is in the times of operators of about a microsecond" if ratio > 1 else
                        "LiteRT's own work around the operators is a large part of a run this short, or something "
                        "else works on this machine",
                    help="compare operators with each other, and take the total from the runs without it")]


def _unsteady(run: MeasuredRun) -> list[Finding]:
    whole = run.whole
    if not whole.quiet_ms or whole.p90_ms < whole.quiet_ms * UNSTEADY:
        return []
    return [Finding(code="profile.unsteady", severity=Severity.WARNING,
                    headline=f"the runs differ: {whole.quiet_ms:.3g} ms in the quietest quarter, {whole.p90_ms:.3g} ms "
                             "in the slowest tenth",
                    why="something else works on this machine, or its clock changes",
                    help="figures are those of the quietest quarter of runs; more of them (--runs) or an idle machine "
                         "make them steadier")]
