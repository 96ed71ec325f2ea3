"""Hot spots: where time and memory go, why, and what to change in the model; only what is verified is advised.

Each kind of hot spot is a function decorated with ``@spot``; nothing else lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from vitrify.core.words import bytes_text, percent
from vitrify.ir import Model, Node
from vitrify.profile.remedies import by_rules, node_words
from vitrify.results import ProfileResult
from vitrify.results.profiling import AdviceRow, EstimatedRow, MeasuredRow
from vitrify.targets.base import Target

Row = MeasuredRow | EstimatedRow

SLOWEST = 5
LARGEST = 3
WORTH = 0.02
"""A share of the time below which a spot of a kind other than the slowest is not told."""

IDLE = 0.25
"""The share of the MACs that are busy below which an operator with many of them is told."""

SHOWN = 6


@dataclass
class Case:
    """What hot spots are looked for in."""

    result: ProfileResult
    model: Model
    target: Target | None
    rows: dict[Node, Row] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The time of all operators."""
        return sum(row.time_ms or 0.0 for row in self.rows.values())


Spot = Callable[[Case], Iterator[AdviceRow]]
_SPOTS: list[Spot] = []


def spot(function: Spot) -> Spot:
    """Register a kind of hot spot; they are told in the order in which they stand here."""
    _SPOTS.append(function)
    return function


def advise(result: ProfileResult, model: Model, target: Target | None) -> list[AdviceRow]:
    """Return the hot spots of a profile."""
    case = Case(result, model, target, dict(zip(model.main, result.operators, strict=True)))
    return [row for one in _SPOTS for row in one(case)]


def _summed(rows: Sequence[Row]) -> float:
    return sum(row.time_ms or 0.0 for row in rows)


def _help(rows: Sequence[Row], case: Case) -> str:
    """What is verified to help the first of them for which something is."""
    words = (node_words(row, case.result.findings, case.target)[0] for row in rows)
    return next(filter(None, words), "")


def _names(nodes: Sequence[Row]) -> str:
    shown = ", ".join(f"'{row.node}'" for row in nodes[:SHOWN])
    return shown + (f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else "")


@spot
def slowest(case: Case) -> Iterator[AdviceRow]:
    """Tell the operators that take most; those of one kind and size together."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in case.rows.values():
        if row.time_ms:
            groups.setdefault((row.operator, row.placement, row.macs, *row.shape), []).append(row)
    for rows in sorted(groups.values(), key=lambda rows: -_summed(rows))[:SLOWEST]:
        first = max(rows, key=lambda row: row.time_ms or 0.0)
        why, help, rule, source = _cause(first, case)
        spent = _summed(rows)
        what = f"{first.operator} '{first.node}' takes" if len(rows) == 1 else \
            f"{len(rows)} {first.operator} of one size take, as '{first.node}',"
        each = "" if len(rows) == 1 else f", {first.time_ms:.3g} ms the slowest"
        yield AdviceRow(kind="slow", nodes=[row.node for row in rows], time_ms=spent, share=spent / case.total,
                        bytes=sum(row.bytes for row in rows), why=why, help=help, rule=rule, source=source,
                        headline=f"{what} {percent(spent / case.total)} of the operators' time, {spent:.3g} ms "
                                 f"{case.result.basis}{each}")


def _cause(row: Row, case: Case) -> tuple[str, str, str, str]:
    """Why an operator takes what it does, what helps, and on which rule and source that rests."""
    if row.placement == "cpu" and case.target is not None:
        return by_rules(row.node, case.result.verdicts, case.target)
    parts = []
    if isinstance(row, EstimatedRow) and row.cycles:
        waits = {"compute": "its multiplications", "elements": "work on values one by one", "memory": "memory outside "
                 "the chip", "near memory": "memory on the chip"}.get(row.bound, "")
        parts.append(f"{row.cycles:,} cycles" + (f", it waits for {waits}" if waits else ""))
        if row.macs and row.utilisation is not None:
            parts.append(f"{percent(row.utilisation)} of the MACs are busy")
        if row.far_bytes:
            parts.append(f"{bytes_text(row.far_bytes)} from and to memory outside the chip")
    elif row.macs:
        speed = row.macs / max((row.time_ms or 0.0) * 1e-3, 1e-12)
        parts.append(f"{row.macs:,} multiplications, {speed / 1e9:.3g} billion a second")
    else:
        parts.append(f"no multiplications; it reads and writes {bytes_text(row.bytes)}")
    help, source = node_words(row, case.result.findings, case.target)
    return "; ".join(parts), help, "", source


@spot
def transposes(case: Case) -> Iterator[AdviceRow]:
    """Tell what movement of values costs, and why it is there."""
    from vitrify.passes.layout.left import left_transposes

    found = [one for one in left_transposes(case.model) if one.node in case.rows]
    rows = [case.rows[one.node] for one in found]
    spent = _summed(rows)
    if not rows or (case.total and spent < WORTH * case.total):
        return
    worst = max(found, key=lambda one: case.rows[one.node].time_ms or 0.0)
    yield AdviceRow(
        kind="transpose", nodes=[row.node for row in rows], time_ms=spent, bytes=sum(row.bytes for row in rows),
        share=spent / case.total if case.total else None,
        headline=f"{len(rows)} TRANSPOSE move {bytes_text(sum(row.bytes for row in rows))}" +
                 (f" and take {spent:.3g} ms" if spent else ""),
        why=f"the slowest, between {worst.before} and {worst.after}: {worst.reason}",
        help=_help(rows, case))


@spot
def requantizations(case: Case) -> Iterator[AdviceRow]:
    """Tell what changes of scale cost, and who asks for them."""
    nodes = [node for node in case.model.main if node.op.kind in ("QUANTIZE", "DEQUANTIZE") and node.inputs[:1]]
    rows = [case.rows[node] for node in nodes]
    spent = _summed(rows)
    if not rows or (case.total and spent < WORTH * case.total):
        return
    causes: dict[str, int] = {}
    for node in nodes:
        for text in {_asks(node)}:
            causes[text] = causes.get(text, 0) + 1
    told = ", ".join(f"{count} {text}" for text, count in sorted(causes.items(), key=lambda one: -one[1])[:4])
    yield AdviceRow(
        kind="requantize", nodes=[row.node for row in rows], time_ms=spent, bytes=sum(row.bytes for row in rows),
        share=spent / case.total if case.total else None,
        headline=f"{len(rows)} changes of scale or type" + (f" take {spent:.3g} ms" if spent else ""), why=told,
        help=_help(rows, case))


def _asks(node: Node) -> str:
    given, made = node.input(0), node.output
    users = sorted({user.op.kind for user in made.users}) or ["the model's output"]
    if given.dtype is not made.dtype:
        return f"from {given.dtype.label} to {made.dtype.label} before {'/'.join(users[:2])}"
    return f"to another scale before {'/'.join(users[:2])}"


@spot
def islands(case: Case) -> Iterator[AdviceRow]:
    """Tell stretches on the CPU between stretches on the NPU, and what crosses."""
    parts = case.result.partitions
    if not any(part.placement == "npu" for part in parts) or case.target is None:
        return
    for index, part in enumerate(parts):
        if part.placement != "cpu" or not part.nodes:
            continue
        inner = any(p.placement == "npu" for p in parts[:index]) and any(p.placement == "npu" for p in parts[index:])
        why, help, rule, source = by_rules(part.nodes[0], case.result.verdicts, case.target)
        crossing = part.bytes_in + part.bytes_out
        where = "between NPU stretches, so it costs a call too" if inner else "at an end of the model"
        yield AdviceRow(
            kind="island", nodes=list(part.nodes), time_ms=part.time_ms, bytes=crossing, rule=rule, source=source,
            share=part.time_ms / case.total if case.total and part.time_ms else None, why=why, help=help,
            headline=f"{len(part.nodes)} operators on the CPU from '{part.nodes[0]}' on, {where}: "
                     f"{bytes_text(crossing)} cross" + ("" if part.time_ms is None else f", {part.time_ms:.3g} ms"))


@spot
def memory_bound(case: Case) -> Iterator[AdviceRow]:
    """Tell what waits for memory outside the chip rather than for multiplications."""
    rows = [row for row in case.rows.values() if row.bound == "memory" and row.placement == "npu"]
    spent = _summed(rows)
    roof = case.result.roofline
    if not rows or roof is None or spent < WORTH * case.total:
        return
    rows.sort(key=lambda row: -(row.time_ms or 0.0))
    weights = sum(row.weight_bytes for row in rows)
    values = sum(row.input_bytes + row.output_bytes for row in rows)
    yield AdviceRow(
        kind="memory-bound", nodes=[row.node for row in rows], time_ms=spent, share=spent / case.total,
        bytes=weights + values, source=roof.source,
        headline=f"{percent(spent / case.total)} of the time is spent waiting for memory outside the chip, by "
                 f"{len(rows)} operators: {_names(rows)}",
        why=f"below {roof.ridge:.3g} multiplications a byte the chip waits at {roof.bytes_per_s / 1e9:.3g} GB/s "
            f"({roof.basis}); these read {bytes_text(weights)} of weights and move {bytes_text(values)} of values",
        help="fewer weights where they are most of it, fewer or smaller values where those are; `vitrify sweep` shows "
             "how the size of the input and the memory mode change it")


@spot
def idle_macs(case: Case) -> Iterator[AdviceRow]:
    """Tell operators whose multiplications leave most of the array idle, by the time that costs."""
    rows = [row for row in case.rows.values() if isinstance(row, EstimatedRow) and row.macs and
            row.utilisation is not None and row.utilisation < IDLE and row.bound == "compute"]
    spent = _summed(rows)
    if not rows or spent < WORTH * case.total:
        return
    rows.sort(key=lambda row: -(row.time_ms or 0.0))
    kinds: dict[str, int] = {}
    for row in rows:
        kinds[row.operator] = kinds.get(row.operator, 0) + 1
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda one: -one[1]))
    help, source = node_words(rows[0], case.result.findings, case.target)
    yield AdviceRow(
        kind="idle-macs", nodes=[row.node for row in rows], time_ms=spent, share=spent / case.total, help=help,
        source=source, why=f"they are {told}; the slowest keeps {percent(rows[0].utilisation or 0.0)} of the MACs busy",
        headline=f"{percent(spent / case.total)} of the time goes to operators that keep less than {percent(IDLE)} of "
                 "the MACs busy")


@spot
def large_tensors(case: Case) -> Iterator[AdviceRow]:
    """Tell the largest values, and whether they fit on the chip."""
    memory = case.result.memory
    limit = memory.near_limit_bytes
    lives = sorted(memory.lives, key=lambda life: -life.bytes)
    if not lives:
        return
    over = [life for life in lives if limit is not None and life.bytes > limit]
    told = ", ".join(f"'{life.tensor}' {bytes_text(life.bytes)}" for life in (over or lives)[:LARGEST])
    if limit is None:
        yield AdviceRow(kind="large-tensor", nodes=[life.maker for life in lives[:LARGEST] if life.maker],
                        bytes=lives[0].bytes, headline=f"the largest values: {told}",
                        why=f"most is alive while '{memory.peak_node}' runs: {bytes_text(memory.live_bytes)}")
        return
    if over:
        yield AdviceRow(
            kind="large-tensor", nodes=[life.maker for life in over if life.maker], bytes=sum(x.bytes for x in over),
            headline=f"{len(over)} values do not fit into the {bytes_text(limit)} on the chip: {told}",
            why="such a value is written to memory outside and read back, unless the compiler computes it in stripes",
            help="a smaller input, or an earlier reduction of its height and width, makes them smaller; `vitrify "
                 "sweep` finds the largest size that fits")
