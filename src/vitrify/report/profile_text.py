"""A profile as text for a person: the total and by what, the slowest operators, memory, advice, comparison, gates."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.words import bytes_text, counted, percent
from vitrify.results.commands import ProfileResult
from vitrify.results.profiling import (
    ComparedRow,
    EstimatedRow,
    FormRow,
    MappingRow,
    MeasuredRow,
    MemoryPlan,
    OverheadRow,
)

SHOWN = 20
SHOWN_ADVICE = 12
SHOWN_PAIRS = 10
SHOWN_BESIDE = 12


def show_profile(result: ProfileResult, out: Console) -> None:
    """Print a profile."""
    what = f"{result.nodes} operators, {result.kind}, {result.form}"
    total = "no total" if result.total_ms is None else f"{result.total_ms:.4g} ms {result.basis}"
    out.print(f"[bold]{escape(result.model)}[/]: [bold]{total}[/] ({escape(what)})")
    out.print(f"  {escape(result.source)}")
    _how(result, out)
    _operators(result, out)
    _kinds(result, out)
    _memory(result.memory, out)
    _mapping(result.mapping, out)
    _beside(result, out)
    _advice(result, out)
    if result.comparison is not None:
        _comparison(result.comparison, out)
    for gate in result.gates:
        mark = "[yellow]?[/]" if gate.failed is None else "[red]failed[/]" if gate.failed else "[green]held[/]"
        out.print(f"{mark} {escape(gate.expression)}: {escape(gate.text)}")
    for kind, file in result.exports.items():
        out.print(f"{kind}: {escape(file)}")


def _how(result: ProfileResult, out: Console) -> None:
    run, estimate = result.measurement, result.estimate
    if run is not None:
        whole = run.whole
        out.print(f"  {counted(whole.runs, 'run')} after {run.warmup}: quietest quarter {whole.quiet_ms:.4g} ms, "
                  f"median {whole.median_ms:.4g}, 90 % {whole.p90_ms:.4g}, 99 % {whole.p99_ms:.4g}, deviation "
                  f"{whole.deviation_ms:.2g}")
        if run.sum_ratio is not None:
            out.print(f"  the operators make up {percent(run.sum_ratio)} of a run without the profiler")
    if estimate is not None and estimate.latency_ms is not None:
        out.print(f"  between {estimate.low_ms:.4g} and {estimate.high_ms:.4g} ms: NPU {estimate.npu_ms:.4g}, CPU "
                  f"{estimate.cpu_ms:.4g}, driver {estimate.driver_ms:.4g}")
    roof = result.roofline
    if roof is not None:
        out.print(f"  {roof.peak_macs_per_s / 1e9:,.4g} billion MACs and {roof.bytes_per_s / 1e9:.3g} GB/s outside the "
                  f"chip ({roof.basis}): what has fewer than {roof.ridge:.3g} MACs a byte waits for memory")
    if result.cycles is not None:
        cycles = result.cycles
        out.print(f"  {cycles.total:,} cycles of the NPU: {cycles.operators:,} of operators, {cycles.overhead:,} of "
                  f"none, {cycles.passed_through:,} counted for operators left to the CPU")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold", justify="left" if column in ("operator", "", "node") else "right")
    return table


def _operators(result: ProfileResult, out: Console) -> None:
    rows = sorted((row for row in result.operators if row.time_ms), key=lambda row: -(row.time_ms or 0.0))
    if not rows:
        return
    measured = isinstance(rows[0], MeasuredRow)
    table = _table("ms measured" if measured else "ms estimated", "share", "operator", "", "waits for", "MACs", "bytes",
                   *(("±",) if measured else ("cycles", "MACs busy")), "node")
    for row in rows[:SHOWN]:
        table.add_row(f"{row.time_ms:.4g}", percent(row.share or 0.0), row.operator, row.placement, row.bound,
                      f"{row.macs:,}", bytes_text(row.bytes), *_more(row), escape(row.node))
    out.print(table)
    if len(rows) > SHOWN:
        rest = sum(row.time_ms or 0.0 for row in rows[SHOWN:])
        out.print(f"  [dim]and {len(rows) - SHOWN} more, {rest:.4g} ms together; --json and --csv have all[/]")
    _rest(result.overhead, out)


def _more(row: MeasuredRow | EstimatedRow) -> tuple[str, ...]:
    if isinstance(row, MeasuredRow):
        return (f"{row.time.deviation_ms:.2g}" if row.time is not None else "",)
    busy = "" if row.utilisation is None or not row.macs else percent(row.utilisation)
    return ("" if row.cycles is None or row.placement == "cpu" else f"{row.cycles:,}", busy)


def _rest(rows: list[OverheadRow], out: Console) -> None:
    for row in rows:
        if row.time_ms:
            out.print(f"  no operator's: {row.time_ms:.4g} ms, {escape(row.what)}" +
                      (f" ({row.count})" if row.count > 1 else ""))


def _kinds(result: ProfileResult, out: Console) -> None:
    sums: dict[str, float] = {}
    for row in result.operators:
        sums[row.operator] = sums.get(row.operator, 0.0) + (row.time_ms or 0.0)
    told = sorted(((ms, kind) for kind, ms in sums.items() if ms), reverse=True)[:8]
    if told:
        out.print("[bold]by kind[/]: " + ", ".join(f"{kind} {ms:.3g} ms" for ms, kind in told))


def _memory(memory: MemoryPlan, out: Console) -> None:
    if not memory.lives:
        return
    parts = [f"weights {bytes_text(memory.weights_bytes)}", f"alive at once {bytes_text(memory.live_bytes)}"]
    if memory.arena_bytes:
        scratch = f", up to {bytes_text(memory.scratch_bytes)} for one kernel alone" if memory.scratch_bytes else ""
        parts.append(f"arena {bytes_text(memory.arena_bytes)} ({memory.planner}{scratch})")
    if memory.near_limit_bytes and memory.near_used_bytes is not None:
        parts.append(f"on the chip {bytes_text(memory.near_used_bytes)} of {bytes_text(memory.near_limit_bytes)}")
    out.print("[bold]memory[/]: " + escape(", ".join(parts)))
    names = ", ".join(f"'{name}'" for name in memory.alive[:3])
    more = f" and {len(memory.alive) - 3} more" if len(memory.alive) > 3 else ""
    out.print(f"  most while '{escape(memory.peak_node)}' runs: {escape(names)}{more}")
    if memory.near_limit_bytes:
        limit = bytes_text(memory.near_limit_bytes)
        out.print(f"  {len(memory.beyond)} operators read and write more than the {limit} on the chip hold")
    for mode in memory.modes:
        text = mode.problem or f"{mode.latency_ms:.4g} ms, on the chip {bytes_text(mode.near_bytes or 0)}, outside " \
                               f"{bytes_text(mode.far_bytes or 0)}, moved {bytes_text(mode.far_traffic_bytes or 0)}"
        out.print(f"  {mode.mode}{' (usual)' if mode.usual else ''}, {mode.says}: {escape(text)}")


def _mapping(mapping: MappingRow, out: Console) -> None:
    if mapping.nodes:
        told = ", ".join(f"{count} {how}" for how, count in mapping.counts.items())
        out.print(f"[bold]{counted(len(mapping.nodes), 'node')} of the source[/]: {told}; "
                  f"{counted(len(mapping.inserted), 'node')} inserted")


def _beside(result: ProfileResult, out: Console) -> None:
    """The source nodes that take most, in each form beside each other."""
    both = [row for row in result.mapping.nodes if row.float_form is not None and row.integer_form is not None]
    if not both or not result.float_operators:
        return
    both.sort(key=lambda row: -max(_form_ms(row.float_form), _form_ms(row.integer_form)))
    table = _table("node", "operator", "", "float ms", "float bytes", "integer ms", "integer bytes", "in integers")
    for row in both[:SHOWN_BESIDE]:
        a, b = row.float_form, row.integer_form
        table.add_row(escape(row.name), escape(row.operator), row.how, *_form_cells(a), *_form_cells(b),
                      escape(", ".join(b.operators if b is not None else [])))
    out.print("[bold]before and after quantization[/], measured")
    out.print(table)
    run = result.float_measurement
    if run is not None and result.total_ms is not None:
        out.print(f"  together {run.whole.quiet_ms:.4g} ms in float, {result.total_ms:.4g} ms in integers")


def _form_ms(form: FormRow | None) -> float:
    return 0.0 if form is None or form.time_ms is None else form.time_ms


def _form_cells(form: FormRow | None) -> tuple[str, str]:
    if form is None or form.time_ms is None:
        return ("", "" if form is None or form.bytes is None else bytes_text(form.bytes))
    return f"{form.time_ms:.4g}", bytes_text(form.bytes or 0)


def _advice(result: ProfileResult, out: Console) -> None:
    for row in result.advice[:SHOWN_ADVICE]:
        out.print(f"[yellow]{row.kind}[/]: {escape(row.headline)}")
        for label, text in (("why", row.why), ("help", row.help)):
            if text:
                out.print(f"  [dim]{label:>5}:[/] {escape(text)}")


def _comparison(found: ComparedRow, out: Console) -> None:
    out.print(f"[bold]against[/] {escape(found.before)}" + ("" if found.related else ": not a form of the same model"))
    for row in found.figures:
        if row.before is None and row.after is None:
            continue
        change = "" if row.change is None else f" ({row.change:+.1%})"
        out.print(f"  {row.name}: {_number(row.before)} -> {_number(row.after)}{change}")
    for pair in [p for p in found.operators if p.change_ms][:SHOWN_PAIRS]:
        names = ", ".join((pair.after or pair.before)[:2])
        out.print(f"  {pair.change_ms:+.4g} ms {escape('/'.join(pair.operators))} '{escape(names)}'")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 1 else f"{value:.4g}"
