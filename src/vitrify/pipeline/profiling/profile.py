"""Profiles one model: makes its forms, measures or estimates, and puts the answer together."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.files import atomic_writer, temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing, rename
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.forms import Form, Forms, make_forms
from vitrify.pipeline.profiling.values import values_for
from vitrify.pipeline.rows import coverage_row, estimate_row, placement_row
from vitrify.pipeline.steps import kind_of, step
from vitrify.profile.advice import advise
from vitrify.profile.host import HostOptions, profile_host
from vitrify.profile.mapping import map_forms
from vitrify.profile.memory import measure_arena, plan
from vitrify.profile.sizes import describe, link
from vitrify.results import ProfileResult
from vitrify.results.profiling import MeasuredRow, MeasuredRun, ModeRow

if TYPE_CHECKING:
    from vitrify.backends.base import Backend
    from vitrify.ir import Graph
    from vitrify.targets import Target


class ProfileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a profile: on this machine or on ``target``, and how it is run. ``modes``: each memory mode of
    the target is tried. ``integers``: on this machine, a float model is measured in integers too. ``save``: where the
    profiled file is written."""

    target: str = ""
    xnnpack: bool = True
    threads: int = 1
    runs: int | None = None
    warmup: int = 5
    modes: bool = False
    integers: bool = False
    save: Path | None = None

    def check(self) -> None:
        """Refuse figures that make no sense.

        Raises:
            UsageError: there is one.
        """
        for name, value, least in (("--runs", self.runs, 1), ("--warmup", self.warmup, 0),
                                   ("--threads", self.threads, 1)):
            if value is not None and not least <= value <= MOST[name]:
                raise UsageError.of("call.invalid", f"{name} {value} is not between {least} and {MOST[name]}",
                                    where=name)


MOST = {"--runs": 100_000, "--warmup": 10_000, "--threads": 256}


@dataclass
class Profiled:
    """An answer, and the graph that it is about, None where it comes from a file of figures."""

    result: ProfileResult
    graph: Graph | None = None


def profile_model(source: Path, options: ProfileOptions, data: DataOptions, conversion: ConvertOptions,
                  reporter: Reporter | None = None) -> Profiled:
    """Profile ``source``.

    Raises:
        VitrifyError: it is no model, or cannot be imported; what cannot be run is told in findings.
    """
    from vitrify.pipeline.measuring.correcting import load_target

    shown = reporter or Silent()
    options.check()
    chip = load_target(options.target) if options.target else None
    existing(source)
    data.check()
    with ExitStack() as stack:
        file, told = stack.enter_context(exchanged(source, conversion, shown))
        folder = Path(stack.enter_context(temporary_folder()))
        forms = make_forms(file, folder, data, conversion, shown, integers=chip is not None or options.integers)
        found = _on_host(forms, options, data, shown) if chip is None else _on_chip(forms, chip, options, shown)
        result = found.result
        result.findings = [*told, *forms.findings, *result.findings]
        for between in (forms.profiled.path, file):
            result.findings = [rename(finding, between, source) for finding in result.findings]
        if options.save is not None:
            _save(forms.profiled.path, options.save)
            result.exports["model"] = str(options.save)
        if forms.profiled.path == file:
            result.bytes = file.stat().st_size
    result.model = str(source)
    result.ok = all(finding.severity is not Severity.ERROR for finding in result.findings)
    return found


def _save(path: Path, target: Path) -> None:
    """Copy the profiled file, whole or not at all."""
    with path.open("rb") as source, atomic_writer(target) as out:
        shutil.copyfileobj(source, out)


def _answer(form: Form, forms: Forms) -> ProfileResult:
    return ProfileResult(form=form.made, kind=kind_of(form.model), nodes=len(form.model.main),
                         graph=form.model.main.name, bytes=form.path.stat().st_size)


def _on_host(forms: Forms, options: ProfileOptions, data: DataOptions, shown: Reporter) -> Profiled:
    form = forms.profiled
    graph = form.model.main
    result = _answer(form, forms)
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
            _complete(result, forms)
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
    _complete(result, forms)
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


def _on_chip(forms: Forms, chip: Target, options: ProfileOptions, shown: Reporter) -> Profiled:
    from vitrify.pipeline.checking.judging import compiler_of, judge_model
    from vitrify.profile import chip as chips

    form = forms.profiled
    graph = form.model.main
    result = _answer(form, forms)
    result.basis, result.target = "estimated", chip.name
    near = chip.known("cache_bytes")
    result.memory = plan(graph, None if near is None else int(near))
    result.roofline = chips.roofline(chip)
    driver = compiler_of(chip) if forms.integers is not None else None
    compiled = None
    if driver is not None:
        with step(shown, "compile") as note:
            try:
                compiled = driver.check(form.path, chip)
                note.text = str(compiled.placement)
            except VitrifyError as error:
                result.findings += [structs.replace(f, severity=Severity.ERROR) for f in error.findings]
                note.text = "refused"
    if compiled is not None and len(compiled.operators) == len(graph):
        found = chips.of_compiled(graph, compiled, chip)
        chips.compiled_memory(result.memory, compiled, chip)
        placement, estimate = compiled.placement, compiled.estimate
        result.findings += compiled.findings
        result.compiler = compiled.maker
    else:
        judged = judge_model(form.model, chip)
        placement, estimate = judged.placement, judged.estimate if forms.integers is not None else None
        found = chips.of_estimate(graph, placement, estimate, chip, priced=forms.integers is not None)
        result.findings += judged.findings
    result.operators, result.overhead, result.cycles = list(found.rows), found.rest, found.cycles
    result.coverage = coverage_row(placement.coverage)
    rows = placement_row(placement)
    result.partitions, result.verdicts = rows.partitions, [v for v in rows.verdicts if v.placement == "cpu"]
    result.estimate = estimate_row(estimate) if estimate is not None else None
    result.total_ms = None if estimate is None else estimate.latency_ms
    result.source = f"estimated for {chip.title}: {estimate.source}" if estimate else f"nothing estimates {chip.title}"
    if estimate is None:
        result.findings.append(Finding(
            code="profile.no-estimate", severity=Severity.WARNING, where=chip.name,
            headline=f"nothing estimates the time on {chip.title}'s NPU",
            why="no compiler of it is installed, and its published figures do not carry a model of our own"
            if forms.integers is not None else "the NPU computes in integers, and the model has no such form"))
    if options.modes:
        result.memory.modes = _modes(form, chip, driver, shown)
    _complete(result, forms, chip)
    return Profiled(result, graph)


def _modes(form: Form, chip: Target, driver: Backend | None, shown: Reporter) -> list[ModeRow]:
    """Compile in each memory mode of the chip.

    Raises:
        UsageError: only Vela is told such.
    """
    if chip.backend != "vela" or driver is None:
        raise UsageError.of("profile.modes", f"{chip.title} has no memory modes to choose from here", where=chip.name,
                            help="leave --memory-modes out")
    from vitrify.backends.vela.modes import MODES, in_mode, legal_modes, usual_mode

    rows = []
    for name in legal_modes(chip):
        row = ModeRow(mode=name, says=MODES[name].says, usual=name == usual_mode(chip))
        with step(shown, name) as note:
            try:
                found = driver.check(form.path, in_mode(chip, name))
            except VitrifyError as error:
                row.problem = note.text = error.findings[0].headline
            else:
                memory = found.memory
                row.latency_ms = None if found.estimate is None else found.estimate.latency_ms
                if memory is not None:
                    near = memory.encoded_weights_bytes if MODES[name].constants == "near" else 0
                    row.near_bytes, row.far_bytes = memory.sram_bytes + near, memory.dram_bytes
                    row.far_traffic_bytes = memory.dram_traffic_bytes
                note.text = "no estimate" if row.latency_ms is None else f"{row.latency_ms:.4g} ms"
        rows.append(row)
    return rows


def _complete(result: ProfileResult, forms: Forms, chip: Target | None = None) -> None:
    """Add what follows from the figures: the edges of the graph, the way of each source node, and the hot spots."""
    link(result.operators, forms.profiled.model.main)
    _map(result, forms)
    result.advice = advise(result, forms.profiled.model, chip)


def _has_host(forms: Forms) -> bool:
    """True where the host computes the model's outputs from those of the integer form."""
    interface = forms.integers.model.interface if forms.integers else None
    return interface is not None and interface.host is not None


def _map(result: ProfileResult, forms: Forms) -> None:
    floating = forms.floating.model.main if forms.floating else None
    integers = forms.integers.model.main if forms.integers else None
    result.mapping = map_forms(forms.sources, floating, integers, result.operators, result.partitions,
                               result.float_operators, on_host=_has_host(forms))
