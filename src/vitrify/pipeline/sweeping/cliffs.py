"""Cliffs: steps of a sweep that cost more than their size explains, and the largest size before each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from vitrify.core.words import bytes_text, percent
from vitrify.results import CellRow, CliffRow

STEEP_LATENCY = 1.1
"""Times the latency for each MAC. Of 146 steps of 32 pixels (YOLOv8n in two precisions and three modes, MobileNetV2 on
two chips) ordinary ones gave 0.87 to 1.09, and the known cliff 1.11 to 1.2 where memory is not fast."""

STEEP_MEMORY = 1.5
"""Times what lies outside the chip, for each pixel."""

LEAST_MEMORY = 256 * 1024
"""Bytes that it has to grow by."""

LEAST_COVERAGE = 0.002
"""Share of nodes or MACs that has to leave the NPU."""


def find_cliffs(cells: Sequence[CellRow]) -> list[CliffRow]:
    """Return the cliffs of each setting, in the order of the cells' settings, by size."""
    series: dict[tuple[object, ...], list[CellRow]] = {}
    for cell in cells:
        series.setdefault((cell.precision, cell.memory_mode, cell.arena_bytes), []).append(cell)
    return [cliff for rows in series.values() for cliff in _of_series(rows)]


def _of_series(rows: Sequence[CellRow]) -> Iterator[CliffRow]:
    ordered = [next(group) for _, group in groupby(sorted(rows, key=lambda r: (r.height * r.width, r.height)),
                                                    key=lambda r: r.size)]
    for before, after in pairwise(ordered):
        if before.problem:
            continue
        if after.problem:
            yield _cliff("refused", before, after, None, None, None, f"nothing comes of {after.size}: {after.problem}")
            continue
        yield from filter(None, (_latency(before, after), _coverage(before, after), _memory(before, after),
                                 _on_chip(before, after)))


def _latency(before: CellRow, after: CellRow) -> CliffRow | None:
    if not before.latency_ms or not after.latency_ms:
        return None
    work = _ratio(after.macs, before.macs) or _pixels(before, after)
    factor = after.latency_ms / before.latency_ms / work
    if factor < STEEP_LATENCY:
        return None
    unit = "MAC" if before.macs and after.macs else "pixel"
    return _cliff("latency", before, after, before.latency_ms, after.latency_ms, factor,
                  f"{before.latency_ms:.3g} -> {after.latency_ms:.3g} ms, {factor:.2f} times as long for each {unit}")


def _coverage(before: CellRow, after: CellRow) -> CliffRow | None:
    for name, first, last in (("nodes", before.coverage.nodes, after.coverage.nodes),
                              ("MACs", before.coverage.macs, after.coverage.macs)):
        if first is None or last is None or first - last < LEAST_COVERAGE:
            continue
        new = {code: count - before.rules.get(code, 0) for code, count in after.rules.items()
               if count > before.rules.get(code, 0)}
        why = "; ".join(f"{code} {count} more" for code, count in new.items())
        return _cliff("coverage", before, after, first, last, None,
                      f"{percent(first)} -> {percent(last)} of the {name} on the NPU{f' ({why})' if why else ''}")
    return None


def _memory(before: CellRow, after: CellRow) -> CliffRow | None:
    if not before.far_bytes or not after.far_bytes or after.far_bytes - before.far_bytes < LEAST_MEMORY:
        return None
    factor = after.far_bytes / before.far_bytes / _pixels(before, after)
    if factor < STEEP_MEMORY:
        return None
    return _cliff("memory", before, after, before.far_bytes, after.far_bytes, factor,
                  f"{bytes_text(before.far_bytes)} -> {bytes_text(after.far_bytes)} outside the chip, "
                  f"{factor:.2f} times as much for each pixel")


def _on_chip(before: CellRow, after: CellRow) -> CliffRow | None:
    limit = after.near_limit_bytes
    if limit is None or before.near_bytes is None or after.near_bytes is None:
        return None
    if before.near_bytes > limit or after.near_bytes <= limit:
        return None
    return _cliff("on-chip", before, after, before.near_bytes, after.near_bytes, None,
                  f"{bytes_text(after.near_bytes)} have to fit into {bytes_text(limit)} of on-chip memory")


def _cliff(kind: str, before: CellRow, after: CellRow, first: float | None, last: float | None, factor: float | None,
           headline: str) -> CliffRow:
    return CliffRow(kind=kind, precision=before.precision, memory_mode=before.memory_mode,
                    arena_bytes=before.arena_bytes, size_before=before.size, size_after=after.size, before=first,
                    after=last, factor=None if factor is None else round(factor, 4), headline=headline,
                    recommended=before.size)


def _pixels(before: CellRow, after: CellRow) -> float:
    return _ratio(after.height * after.width, before.height * before.width) or 1.0


def _ratio(last: int, first: int) -> float | None:
    return last / first if first and last else None
