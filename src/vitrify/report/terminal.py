"""Answers as text for a person, with colour where the terminal has it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import duration
from vitrify.core.text import without_controls
from vitrify.core.words import agreeing, bytes_text, counted, decibels, percent, shape_text
from vitrify.report.analysis_text import show_analysis
from vitrify.report.check_text import show_check
from vitrify.report.diff_text import show_diff
from vitrify.report.doctor_text import show_doctor
from vitrify.report.explain_text import show_explanation, show_targets
from vitrify.report.measure_text import show_measurement
from vitrify.report.profile_text import show_profile
from vitrify.report.reduce_text import show_bisection, show_reduction
from vitrify.report.search_text import show_search
from vitrify.report.sweep_text import show_sweep
from vitrify.report.task_text import show_eval, show_run
from vitrify.report.trace_text import show_tensors, show_trace
from vitrify.results import (
    BisectResult,
    BuildResult,
    CalibrationFacts,
    CheckResult,
    ComparisonRow,
    CompileResult,
    ConvertResult,
    DiffResult,
    DoctorResult,
    ErrorRow,
    Estimate,
    EvalResult,
    ExplainResult,
    InspectResult,
    MeasureResult,
    ProfileResult,
    QuantizationRow,
    QuantizeResult,
    RecipesResult,
    ReduceResult,
    Result,
    RunResult,
    SweepResult,
    TargetsResult,
    TensorRow,
    TraceResult,
    TransposeRow,
    VerdictRow,
    VerifyResult,
)

COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
LONG_LIST = 30
TRANSPOSES_SHOWN = 5
PREPARED = "vitrify.preprocess"
"""The metadata that is shown in words."""
PIPE_WIDTH = 160
"""Columns when nobody says how wide the output is: enough for most names without a break."""


class _Console(Console):
    """A console that names taken from a file cannot steer."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as ever, control characters of the text made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(without_controls(segment.text), segment.style)


def show_result(result: Result, console: Console | None = None) -> None:
    """Print an answer to standard output; the findings come last, where the eye is."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    out = console or _Console(highlight=False, soft_wrap=True, width=width)
    view = VIEWS.get(type(result))
    if isinstance(result, CheckResult):
        show_check(result, out, show_finding, _estimate)
        return
    if view is not None:
        view(result, out)
    for finding in result.findings:
        show_finding(finding, out)


def show_finding(finding: Finding, out: Console) -> None:
    """Print one finding: the headline, then where, why and help."""
    color = COLORS[finding.severity]
    out.print(f"[{color}]{finding.severity.value}\\[{escape(finding.code)}][/]: {escape(finding.headline)}")
    for label, text in (("where", finding.where), ("why", finding.why), ("help", finding.help)):
        if text:
            first, *rest = text.splitlines()
            out.print(f"  [dim]{label:>5}:[/] {escape(first)}")
            for line in rest:
                out.print(f"         {escape(line)}")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _add(table: Table, *cells: object) -> None:
    table.add_row(*(escape(str(cell)) for cell in cells))


def _tensors(title: str, rows: Sequence[TensorRow], out: Console) -> None:
    table = _table(title, "type", "scale", "zero point", "stands for")
    for row in rows:
        interval = "" if row.real_min is None or row.real_max is None else f"{row.real_min:.6g} .. {row.real_max:.6g}"
        _add(table, row.name, f"{row.dtype}{shape_text(row.shape)}", "" if row.scale is None else f"{row.scale:.8g}",
             "" if row.zero_point is None else row.zero_point, interval)
    out.print(table)


def _counts(operators: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in operators.items()) or "none"


def _inspect(result: InspectResult, out: Console) -> None:
    if result.format == "folder":
        for row in result.files:
            mark = "[green]yes[/]" if row.suits_int8_npu else "[dim] no[/]"
            out.print(f"{mark}  [bold]{escape(row.file)}[/]: {escape(row.text)}")
        out.print(escape(result.summary))
        return
    out.print(f"[bold]{escape(result.file)}[/]: {escape(result.summary)}")
    if result.streams:
        from vitrify.report.streams_text import show_streams

        show_streams(result.streams, out)
        return
    _tensors("inputs", result.inputs, out)
    _tensors("outputs", result.outputs, out)
    facts: list[tuple[str, object]] = [
        ("operators", _counts(result.operators)), ("parameters", f"{result.parameters:,}"),
        ("size", bytes_text(result.bytes))]
    if result.format == "tflite":
        facts += [("float operators", _listed(result.float_operators, result.float_nodes)),
                  ("transposes", result.transposes), ("NPU graphs", result.npu_graphs)]
        facts += [("signatures", ", ".join(result.signatures) or "none")]
    if result.macs and not result.npu_graphs:
        facts += [("MACs", f"{result.macs:,}")]
    if result.opset:
        facts += [("opset", ", ".join(f"{name} {version}" for name, version in result.opset.items()))]
    facts += [(name, value) for name, value in (("producer", result.producer),) if value]
    facts += [("prepared as", ", ".join(f"{k} {_plain(v)}" for k, v in result.preprocess.items()))
              ] if result.preprocess else []
    facts += [(f"metadata {name}", text) for name, text in result.metadata.items() if name != PREPARED]
    table = _table("", "")
    table.show_header = False
    for label, value in facts:
        _add(table, label, value)
    out.print(table)
    _quantization(result.quantization, out)


def _quantization(rows: Sequence[QuantizationRow], out: Console) -> None:
    """Inputs, outputs and what is in trouble in full; that the others are as usual."""
    told = [row for row in rows if row.role in ("input", "output") or row.verdict != "usual"]
    if told:
        out.print("[dim]quantization in words[/]")
    for row in told[:LONG_LIST]:
        color = "yellow" if row.verdict != "usual" else "green"
        out.print(f"  [{color}]{row.verdict}[/] {row.role} [bold]{escape(row.tensor)}[/]: {escape(row.text)}")
        for label, line in (("Python", row.python), ("C", row.c), ("cast", "" if "cast" in row.text else row.cast)):
            if line:
                out.print(f"      [dim]{label}:[/] {escape(line)}")
    if len(told) > LONG_LIST:
        out.print(f"  ... and {len(told) - LONG_LIST} more; --json lists all")
    if rest := len(rows) - len(told):
        out.print(f"  {counted(rest, 'tensor')} besides with nothing unusual; --json explains each")


def _plain(value: object) -> str:
    return ",".join(f"{v:.6g}" for v in value) if isinstance(value, list | tuple) else \
        f"{value:.6g}" if isinstance(value, float) else str(value).lower()


def _listed(count: int, names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) + (", ..." if count > 3 else "")
    return f"{count} ({shown})" if count and names else str(count)


def _convert(result: ConvertResult, out: Console) -> None:
    out.print(f"[bold green]wrote[/] {escape(result.output)} ({bytes_text(result.bytes)}) "
              f"in {duration(result.seconds)}, peak {bytes_text(result.peak_bytes)}")
    out.print(f"{sum(result.operators.values())} operators, {result.transposes} transposes, "
              f"{result.float_operators} float operators")
    _transposes(result.transposes_left, out)
    for row in result.ledger:
        if row.note:
            out.print(f"  {escape(row.name)}: {escape(row.note)}")
    _tensors("inputs", result.inputs, out)
    _tensors("outputs", result.outputs, out)


def _transposes(rows: Sequence[TransposeRow], out: Console) -> None:
    """The TRANSPOSEs that are left, those of one reason together, the most bytes first."""
    reasons: dict[str, list[TransposeRow]] = {}
    for row in sorted(rows, key=lambda row: -row.bytes):
        reasons.setdefault(row.reason, []).append(row)
    for reason, alike in list(reasons.items())[:TRANSPOSES_SHOWN]:
        where = f"'{alike[0].node}' between {' and '.join(alike[0].between)}"
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        out.print(escape(f"  transpose {where}{more} ({bytes_text(sum(row.bytes for row in alike))}): {reason}"))
    if len(reasons) > TRANSPOSES_SHOWN:
        out.print(f"  and for {len(reasons) - TRANSPOSES_SHOWN} more reasons; --json lists them all")


def _quantize(result: QuantizeResult, out: Console) -> None:
    _convert(result, out)
    facts = result.calibration
    if facts is not None:
        source = "random values" if facts.random else facts.data
        out.print(f"calibrated on {counted(facts.samples, 'sample')} of {escape(source)} ({escape(facts.calibrator)})"
                  f"{escape(_enough(facts))}")
    _quality(result.quality, out)
    if result.analysis is not None:
        show_analysis(result.analysis, out)


def _recipes(result: RecipesResult, out: Console) -> None:
    if result.name:
        sys.stdout.write("".join(row.toml for row in result.recipes))      # as it is, to be written to a file
        return
    table = _table("recipe", "for")
    for row in result.recipes:
        _add(table, row.name, row.description)
    out.print(table)
    out.print("`vitrify quantize MODEL --preset NAME` takes one, `vitrify recipes NAME` prints it")


def _enough(facts: CalibrationFacts) -> str:
    """How far the ranges still moved."""
    if facts.growth is None or facts.random:
        return ""
    stopped = f"; {facts.available or 'more'} were there, the ranges no longer move" if facts.stopped else ""
    return (f"; after {facts.growth.since} no range moved by more than {facts.growth.share:.1%}, "
            f"{facts.growth.mean:.1%} on average{stopped}")


def _quality(row: ComparisonRow | None, out: Console) -> None:
    if row is not None:
        worst = row.lowest()
        shares = [f"of '{escape(o.tensor)}', {agreeing(o.agreement)}" for o in row.outputs
                  if o.agreement is not None and not o.equal]
        text = f"at the lowest {worst} SQNR, {escape(worst.name)}" if worst is not None else "" if shares else "equal"
        text = "; ".join([*([text] if text else []), *shares])
        verdict = "[green]good[/]" if row.ok else "[bold red]not good[/]"
        out.print(f"INT8 against float on {counted(row.samples, 'sample')}: {verdict}; {text}")


def _verdicts(verdicts: Iterable[VerdictRow], out: Console) -> None:
    on_cpu = [v for v in verdicts if v.placement == "cpu"]
    if not on_cpu:
        out.print("no node is left to the CPU")
        return
    table = _table("on the CPU", "operator", "why")
    for verdict in on_cpu[:LONG_LIST]:
        _add(table, verdict.node, verdict.operator, "; ".join(r.headline for r in verdict.rules) or "no reason given")
    out.print(table)
    if len(on_cpu) > LONG_LIST:
        out.print(f"... and {len(on_cpu) - LONG_LIST} more; --json lists all")


def _estimate(estimate: Estimate, out: Console) -> None:
    if estimate.latency_ms is None:
        return
    span = ("" if estimate.low_ms is None or estimate.high_ms is None
            else f" ({estimate.low_ms:.3g} to {estimate.high_ms:.3g})")
    out.print(f"estimate: {estimate.latency_ms:.3g} ms{span}, by {escape(estimate.source)}; not a measurement")


def _compile(result: CompileResult, out: Console) -> None:
    out.print(f"[bold green]wrote[/] {escape(result.output)} in {duration(result.seconds)}" if result.output
              else "[bold red]not compiled[/]; what the rules say:")
    if result.verification is not None and all(f.code != "compile.not-verified" for f in result.findings):
        _comparison(result.verification, out)
    if result.first_divergence:
        out.print(f"first divergence: {escape(result.first_divergence)}")
    rows = result.placement
    out.print(f"{escape(result.target)}: {rows.npu} nodes on the NPU, {rows.folded} folded into others, "
              f"{rows.cpu} on the CPU ({percent(result.coverage.macs)} of the MACs on the NPU)")
    _verdicts(rows.verdicts, out)
    show_search(result, out)
    _estimate(result.estimate, out)
    if result.memory:
        out.print("memory: " + ", ".join(f"{name.removesuffix('_bytes').replace('_', ' ')} {bytes_text(size)}"
                                         for name, size in result.memory.items()))


def _comparison(row: ComparisonRow, out: Console) -> None:
    out.print(f"[bold]{escape(row.name)}[/] against {escape(row.reference)}, {counted(row.samples, 'sample')}: "
              f"{'[green]good[/]' if row.ok else '[bold red]not good[/]'}")
    table = _table("output", "SQNR", "cosine", "largest error", "steps", "")
    for error in row.outputs:
        _add(table, error.tensor, agreeing(error.agreement, error.equal) or decibels(error.sqnr_db, error.equal),
             _number(error.cosine, 6), _number(error.largest_error, 4), _number(error.max_lsb, 3),
             "" if error.ok else error.reason or "not good")
        for number, group in enumerate(g for g in error.groups if g.judged or not g.ok):
            if not group.ok or (number == 0 and len(error.groups) > 1):      # the worst comes first
                _add(table, f"  {group.name}", decibels(group.sqnr_db), _number(group.cosine, 6),
                     _number(group.largest_error, 4), "", group.reason)
    out.print(table)
    _worst(row.tensors, out)


def _worst(tensors: Sequence[ErrorRow], out: Console) -> None:
    ranked = sorted((t for t in tensors if t.sqnr_db is not None and t.aligned), key=lambda t: t.sqnr_db or math.inf)
    if ranked:
        out.print("lowest inside: " + ", ".join(f"{escape(t.tensor)} {decibels(t.sqnr_db)}" for t in ranked[:3]))


def _verify(result: VerifyResult, out: Console) -> None:
    for stage in result.stages:
        _comparison(stage, out)
    show_tensors(result, out)
    if result.first_divergence:
        out.print(f"first divergence: {escape(result.first_divergence)}")
    if result.analysis is not None:
        show_analysis(result.analysis, out)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _build(result: BuildResult, out: Console) -> None:
    for row in result.quality:
        _comparison(row, out)
    if result.coverage.nodes is not None:
        out.print(f"{escape(result.target)}: on the NPU {percent(result.coverage.nodes)} of the nodes, "
                  f"{percent(result.coverage.macs)} of the MACs")
    _estimate(result.estimate, out)
    if result.reused:
        out.print(f"reused from the last run: {', '.join(result.reused)}")
    for name, file in result.artifacts.items():
        out.print(f"  [dim]{escape(name):>10}[/] {escape(file)}")
    out.print(f"run: {escape(result.run)} ({duration(result.seconds)})")
    if result.verdict:
        out.print(f"[bold {'green' if result.ok else 'red'}]{escape(result.verdict)}[/]")


VIEWS: dict[type[Result], Callable[[Any, Console], None]] = {
    InspectResult: _inspect,
    ConvertResult: _convert,
    QuantizeResult: _quantize,
    RecipesResult: _recipes,
    ExplainResult: show_explanation,
    TargetsResult: show_targets,
    CompileResult: _compile,
    SweepResult: show_sweep,
    VerifyResult: _verify,
    TraceResult: show_trace,
    DiffResult: show_diff,
    BuildResult: _build,
    DoctorResult: show_doctor,
    ProfileResult: show_profile,
    RunResult: show_run,
    EvalResult: show_eval,
    ReduceResult: show_reduction,
    BisectResult: show_bisection,
    MeasureResult: show_measurement,
}
"""How each answer is shown."""
