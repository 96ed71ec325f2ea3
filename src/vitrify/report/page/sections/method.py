"""How the figures of a profile came about: runs and percentiles, or the compiler's cycles, and what is assumed."""

from __future__ import annotations

from vitrify.report.page.markup import Child, table, tag
from vitrify.report.page.section import Section
from vitrify.results import ProfileResult
from vitrify.results.profiling import CyclesRow, MeasuredRun, OverheadRow, TimeRow


def method(profile: ProfileResult) -> Section:
    """Return all that says how far to believe the figures."""
    parts: list[Child] = [tag("p", f"{profile.source}.")]
    if profile.measurement is not None:
        parts += _measured(profile.measurement)
    if profile.cycles is not None:
        parts += [tag("h3", "The compiler's cycles"), table(("", "#cycles"), _cycles(profile.cycles))]
    if profile.overhead:
        parts += [tag("h3", "Time that is no operator's"),
                  table(("", "#how often", "#ms", "#cycles"), map(_overhead, profile.overhead[:200]))]
    if profile.estimate is not None and profile.estimate.assumptions:
        parts += [tag("h3", "What the estimate assumes"),
                  tag("ul", [tag("li", text) for text in profile.estimate.assumptions])]
    return Section.of("method", "How this is known", parts, short="Method")


def _measured(run: MeasuredRun) -> list[Child]:
    facts: list[tuple[Child, ...]] = [(name, value) for name, value in (
        ("runtime", run.runtime), ("kernels", run.kernels), ("threads", run.threads), ("processor", run.processor),
        ("inputs", run.inputs), ("runs before, not timed", run.warmup), ("operators", run.method)) if value != ""]
    if run.sum_ratio is not None:
        facts.append(("sum of all operators over a run without the profiler", f"{run.sum_ratio:.3f}"))
    rows = [("whole runs, without the profiler", *_times(run.whole))]
    if run.profiled is not None:
        rows.append(("with the profiler", *_times(run.profiled)))
    columns = ("ms", "#runs", "#quietest quarter", "#least", "#10 %", "#median", "#mean", "#90 %", "#99 %", "#most",
               "#deviation")
    return [table(("", ""), facts), tag("h3", "Runs"), table(columns, rows)]


def _times(row: TimeRow) -> tuple[str, ...]:
    values = (row.quiet_ms, row.min_ms, row.p10_ms, row.median_ms, row.mean_ms, row.p90_ms, row.p99_ms, row.max_ms,
              row.deviation_ms)
    return (str(row.runs), *(f"{value:.4g}" for value in values))


def _cycles(row: CyclesRow) -> list[tuple[str, str]]:
    return [(name, f"{value:,}") for name, value in (
        ("all", row.total), ("of operators of the model", row.operators), ("of what the compiler made by itself",
                                                                           row.overhead),
        ("counted for operators left to the CPU", row.passed_through), ("computing", row.compute),
        ("near memory", row.near), ("far memory", row.far))]


def _overhead(row: OverheadRow) -> tuple[Child, ...]:
    return (row.what, row.count, f"{row.time_ms:.4g}", "" if row.cycles is None else f"{row.cycles:,}")
