"""Estimate every published row whose model is known, and write docs/estimates.md with its picture.

    python judge.py [--table FILE]
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import older
from make import differences, file_of
from page import page
from plot import plot
from rows import ROOT, Row, rows

from vitrify import tflite
from vitrify.backends.vela import check_model
from vitrify.ir import Graph
from vitrify.targets import load
from vitrify.targets.estimating import Seconds, cpu_seconds, total
from vitrify.targets.rules import estimated, place


class Judged(NamedTuple):
    """A published row with its estimate, both in milliseconds; ``today`` is that of today's compiler's placement."""

    row: Row
    estimate: Seconds
    today: float
    apart: dict[str, float]

    @property
    def ratio(self) -> float:
        """Estimate over measurement."""
        return self.estimate.likely / self.row.ms

    @property
    def inside(self) -> bool:
        """True where the measurement lies in the interval."""
        return self.estimate.low <= self.row.ms <= self.estimate.high


@cache
def graph_of(file: Path) -> Graph:
    """Return the graph of a file."""
    return tflite.read(file).main


@cache
def estimate(file: Path, target: str, side: str, threads: int) -> tuple[Seconds, float]:
    """Return the milliseconds of one inference, and those by today's placement."""
    graph, chip = graph_of(file), load(target)
    if side == "CPU":
        found = total(cpu_seconds(node, chip, threads) for node in graph).times(1e3)
        return found, found.likely
    if chip.family == "ethos_u":
        compiled = check_model(file, chip)
        told, today = older.estimate(graph, compiled, chip), compiled.estimate.latency_ms
    else:
        own = estimated(graph, chip, place(graph, chip))
        assert own is not None, target
        told, today = own, own.latency_ms
    return Seconds(told.low_ms, told.latency_ms, told.high_ms), today


def judge(row: Row) -> Judged:
    """Return one row with its estimate."""
    file = file_of(row.recipe)
    found, today = estimate(file, row.target, row.side, row.threads)
    return Judged(row, found, today, differences(row.recipe, graph_of(file)))


def main() -> int:
    """Judge all and write the page; its picture goes beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "estimates.md")
    given = parser.parse_args()
    every = rows()
    found = [judge(row) for row in every if not row.left]
    for one in found:
        print(f"{one.row.group:12} {'first ' if one.row.first else 'second'} {one.row.model:40.40} {one.row.threads} "
              f"{one.row.ms:9.3f} {one.estimate.likely:9.3f} {one.ratio:.2f}", flush=True)
    picture = given.table.with_suffix(".svg")
    given.table.write_text(page(found, [row for row in every if row.left], picture.name), encoding="utf-8")
    picture.write_text(plot(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
