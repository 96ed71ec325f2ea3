"""A profile beside another one: totals, and operators that are each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.matching import match
from vitrify.pipeline.profiling.profile import Profiled
from vitrify.profile.known import FIGURES, figure
from vitrify.results import ProfileResult
from vitrify.results.profiling import ComparedRow, DeltaRow, EstimatedRow, MeasuredRow, PairRow

if TYPE_CHECKING:
    from vitrify.ir import Graph

UNRELATED = 0.2
"""Models of which a smaller share stands alike are no forms of one model."""

_MOST = 1 << 28

Row = MeasuredRow | EstimatedRow


def is_profile(path: Path) -> bool:
    """True for the JSON of an earlier profile, which begins as no model does."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(64).lstrip()[:1] == b"{"


def read_profile(path: Path) -> Profiled:
    """Read the JSON that ``vitrify profile --json`` printed.

    Raises:
        UsageError: it is another one's, or damaged.
    """
    if path.stat().st_size > _MOST:
        raise UsageError.of("profile.compare", f"{path} has {path.stat().st_size:,} bytes, too many for a profile",
                            help="compare with what `vitrify profile --json` printed, or with a model")
    try:
        result = msgspec.json.decode(path.read_bytes(), type=ProfileResult)
    except msgspec.DecodeError as error:
        raise UsageError.of("profile.compare", f"{path} is no profile: {error}", where=str(path),
                            help="vitrify profile MODEL --json > before.json writes one") from error
    if result.command != "profile":
        raise UsageError.of("profile.compare", f"{path} is the answer of '{result.command}', not of 'profile'",
                            where=str(path), help="vitrify profile MODEL --json > before.json writes one")
    return Profiled(result)


def compare(before: Profiled, after: Profiled) -> tuple[ComparedRow, list[Finding]]:
    """Put ``after`` beside ``before``; what makes the two hard to compare is told."""
    a, b = before.result, after.result
    row = ComparedRow(before=a.model, after=b.model, basis=b.basis)
    findings = _unlike(a, b)
    row.figures = [_delta(name, figure(a, name), figure(b, name)) for name in FIGURES]
    if a.basis != b.basis:
        row.figures = [one for one in row.figures if not one.name.endswith(("_ms", "cycles"))]
        row.related = False
        return row, findings
    row.noise_ms = _noise(a, b)
    if before.graph is not None and after.graph is not None:
        row.operators, row.alike = _by_graph(before.graph, after.graph, a.operators, b.operators)
    else:
        row.operators, row.alike = _by_name(a.operators, b.operators)
    row.related = row.alike >= UNRELATED
    if not row.related:
        row.operators = []
        findings.append(Finding(
            code="profile.unrelated", severity=Severity.WARNING,
            headline=f"{row.alike:.0%} of the operators of {Path(b.model).name} stand in {Path(a.model).name} too: "
                     "they are no forms of one model", why="only totals are compared"))
    row.operators.sort(key=lambda pair: -abs(pair.change_ms or 0.0))
    return row, findings


def _unlike(a: ProfileResult, b: ProfileResult) -> list[Finding]:
    """What was not the same in both profiles."""
    pairs = [("basis", a.basis, b.basis), ("target", a.target, b.target), ("compiler", a.compiler, b.compiler)]
    if a.measurement is not None and b.measurement is not None:
        m, n = a.measurement, b.measurement
        pairs += [("processor", m.processor, n.processor), ("runtime", m.runtime, n.runtime),
                  ("kernels", m.kernels, n.kernels), ("threads", str(m.threads), str(n.threads))]
    differing = [(name, x, y) for name, x, y in pairs if x != y]
    if not differing:
        return []
    told = "; ".join(f"{name}: {x or 'none'}, then {y or 'none'}" for name, x, y in differing)
    mixed = a.basis != b.basis
    return [Finding(code="profile.compare-unlike", severity=Severity.WARNING,
                    headline=f"the two profiles were not made alike: {told}",
                    why="a measurement and an estimate say nothing of each other; times are left out" if mixed else
                        "differences may come from that")]


def _delta(name: str, before: float | None, after: float | None) -> DeltaRow:
    change = None if before is None or after is None or before == 0 else (after - before) / before
    return DeltaRow(name=name, before=before, after=after, change=change)


def _noise(a: ProfileResult, b: ProfileResult) -> float | None:
    """How far measured totals lie apart by chance: what the quietest quarter differs from the fastest run by."""
    if a.measurement is None or b.measurement is None:
        return None
    wholes = (a.measurement.whole, b.measurement.whole)
    return sum((whole.quiet_ms - whole.min_ms) * 2 for whole in wholes)


def _by_graph(a: Graph, b: Graph, before: Sequence[Row], after: Sequence[Row]) -> tuple[list[PairRow], float]:
    matching = match(a, b)
    first, second = dict(zip(a, before, strict=True)), dict(zip(b, after, strict=True))
    pairs = [_pair([first[i.node] for i in group.left], [second[i.node] for i in group.right])
             for group in matching.groups]
    sure = any(group.how in ("content", "origin", "name", "inside") for group in matching.groups)
    return pairs, matching.alike if sure else 0.0


def _by_name(before: Sequence[Row], after: Sequence[Row]) -> tuple[list[PairRow], float]:
    """Pair operators by kind and name, where there are no graphs."""
    waiting: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in before:
        waiting[row.operator, row.node].append(row)
    pairs, met = [], 0
    for row in after:
        others = waiting.get((row.operator, row.node))
        other = [others.pop(0)] if others else []
        met += len(other)
        pairs.append(_pair(other, [row]))
    pairs += [_pair([row], []) for rows in waiting.values() for row in rows]
    return pairs, met / max(min(len(before), len(after)), 1)


def _pair(before: Sequence[Row], after: Sequence[Row]) -> PairRow:
    x, y = _time(before), _time(after)
    return PairRow(before=[row.node for row in before], after=[row.node for row in after],
                   operators=list(dict.fromkeys(row.operator for row in (*after, *before))), before_ms=x, after_ms=y,
                   change_ms=None if x is None and y is None else (y or 0.0) - (x or 0.0))


def _time(rows: Iterable[Row]) -> float | None:
    told = [row.time_ms for row in rows if row.time_ms is not None]
    return sum(told) if told else None
