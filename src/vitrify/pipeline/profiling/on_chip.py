"""Profiles a form of a model for a chip: by its compiler, or by models of our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.pipeline.profiling.base import Profiled, ProfileOptions, answer, complete_answer
from vitrify.pipeline.profiling.forms import Form, Forms, sources_of
from vitrify.pipeline.rows import coverage_row, estimate_row, placement_row
from vitrify.pipeline.steps import step
from vitrify.profile.memory import plan
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow, ModeRow

if TYPE_CHECKING:
    from vitrify.backends.base import Backend, Compiled
    from vitrify.targets import Target


MOST_LAYERS = 64
"""Where the compiler made more of one operator, a build's record leaves them out: their sums are in the operator."""


def on_chip(forms: Forms, chip: Target, options: ProfileOptions, shown: Reporter) -> Profiled:
    """Estimate the last form; a compiler's refusal is told, and the rules' verdicts stand."""
    from vitrify.pipeline.checking.judging import compiler_of

    form = forms.profiled
    driver = compiler_of(chip) if forms.integers is not None else None
    compiled, told = None, list[Finding]()
    if driver is not None:
        with step(shown, "compile") as note:
            try:
                compiled = driver.check(form.path, chip)
                note.text = str(compiled.placement)
            except VitrifyError as error:
                told = [structs.replace(f, severity=Severity.ERROR) for f in error.findings]
                note.text = "refused"
    result = estimated(forms, chip, compiled)
    result.findings = [*told, *result.findings]
    if options.modes:
        result.memory.modes = _modes(form, chip, driver, shown)
    complete_answer(result, forms, chip)
    return Profiled(result, form.model.main)


def estimated(forms: Forms, chip: Target, compiled: Compiled | None) -> ProfileResult:
    """Begin the answer for a chip with its figures: the compiler's, where it compiled the last form, or our own."""
    from vitrify.pipeline.checking.judging import judge_model
    from vitrify.profile import chip as chips

    form = forms.profiled
    graph = form.model.main
    result = answer(form)
    result.basis, result.target = "estimated", chip.name
    near = chip.known("cache_bytes")
    result.memory = plan(graph, None if near is None else int(near))
    result.roofline = chips.roofline(chip)
    if compiled is not None and [row.operator for row in compiled.operators] == [node.op.kind for node in graph]:
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
    return result


def of_build(source: Path, floating: Path | None, integers: Path, chip: Target,
             compiled: Compiled | None) -> ProfileResult:
    """Profile what a build made of ``source``; ``compiled`` is what the compiler said of it."""
    from vitrify import tflite

    forms = Forms(sources=sources_of(source))
    if floating is not None:
        forms.floating = Form(floating, tflite.read(floating), "converted")
    forms.integers = Form(integers, tflite.read(integers), "as built")
    result = estimated(forms, chip, compiled)
    complete_answer(result, forms, chip)
    result.model, result.findings = str(source), []
    for row in result.operators:
        if isinstance(row, EstimatedRow) and len(row.layers) > MOST_LAYERS:
            row.layers = []
    return result


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
