"""Fit the facts of a chip's time to the first half of the published rows, and print them.

    python fit.py GROUP ...         imx93-CPU, imx8mp-CPU, imx95-NPU, imx8mp-NPU, mcxn947-CPU, mcxn947-NPU

What is made small is the median-like mean of the absolute logarithms of estimate over measurement, each cut at 1.5, so
that one odd row weighs no more than another; a little is added for each fact's way from where it started.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
from make import file_of
from rows import Row, judged

from vitrify import tflite
from vitrify.ir import Graph
from vitrify.targets import Target, load
from vitrify.targets.estimating.array import array_parts
from vitrify.targets.estimating.cpu import cpu_parts
from vitrify.targets.estimating.work import Work, work_of
from vitrify.targets.rules import place

CUT, PULL, STEPS = 1.5, 0.02, 2000

FREE: dict[str, dict[str, float]] = {
    "imx93-CPU": {"cpu_macs_per_s": 14e9, "cpu_single_macs_per_s": 1e9, "cpu_output_s": 1e-9, "cpu_element_s": 1e-9,
                  "cpu_slow_element_s": 5e-9, "cpu_node_s": 5e-6, "cpu_parallel_share": 0.8},
    "imx8mp-CPU": {"cpu_macs_per_s": 5e9, "cpu_single_macs_per_s": 0.7e9, "cpu_output_s": 1e-9, "cpu_element_s": 1e-9,
                   "cpu_slow_element_s": 6e-9, "cpu_node_s": 5e-6, "cpu_parallel_share": 0.9},
    "imx95-NPU": {"npu_efficiency": 0.6, "activation_share": 0.5, "npu_node_s": 15e-6, "npu_value_s": 0.5e-9,
                  "driver_call_s": 0.3e-3},
    "imx8mp-NPU": {"npu_efficiency": 0.35, "npu_depthwise_macs_per_s": 20e9, "dram_bytes_per_s": 5e9,
                   "npu_value_s": 0.5e-9, "npu_slow_value_s": 3e-9, "npu_node_s": 10e-6, "driver_call_s": 0.1e-3},
    "mcxn947-CPU": {"cpu_macs_per_s": 40e6},
    "mcxn947-NPU": {"npu_efficiency": 0.6},
}
"""The facts that are fitted, each with where it starts; the others of the target stay."""

SHARES = ("cpu_parallel_share", "npu_efficiency", "activation_share")
SHARE = 0.95
"""A share of something stays below its whole."""
WORSE, WAYS = 0.03, (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Bounds of a fact: where the rows would be off by 3 % more on average, all else being equal."""


class Load(NamedTuple):
    """The work of one model on one chip: on its NPU, on its CPU, and the calls."""

    npu: list[Work]
    cpu: list[Work]
    calls: int


@cache
def graph_of(path: str) -> Graph:
    """Return the graph of a file."""
    return tflite.read(path).main


@cache
def load_of(path: str, target: str, side: str) -> Load:
    """Return what one inference does."""
    graph = graph_of(path)
    if side == "CPU":
        return Load([], [work_of(node) for node in graph], 0)
    placed = place(graph, load(target))
    sides: dict[str, list[Work]] = {"npu": [], "cpu": [], "folded": []}
    for node, verdict in zip(graph, placed.verdicts, strict=True):
        sides[verdict.placement].append(work_of(node))
    return Load(sides["npu"], sides["cpu"], placed.npu_partitions)


def seconds(row: Row, target: Target) -> float:
    """Return what the facts of ``target`` give for a row."""
    work = load_of(str(file_of(row.recipe)), row.target, row.side)
    cpu = sum(sum(cpu_parts(one, target, row.threads).values()) for one in work.cpu)
    npu = 0.0
    for one in work.npu:
        parts = array_parts(one, target)
        npu += parts.pop("start") + max(parts.values())
    return cpu + npu + work.calls * target.value("driver_call_s")


def changed(target: Target, values: Mapping[str, float]) -> Target:
    """Return the target with other values of some facts."""
    some = next(iter(target.facts.values()))
    made = {name: msgspec.structs.replace(target.facts.get(name, some), value=value) for name, value in values.items()}
    return msgspec.structs.replace(target, facts={**target.facts, **made})


def fitted(group: str) -> tuple[dict[str, float], Target]:
    """Return the fitted values of a group's facts, and the target with them."""
    name, side = group.split("-")
    chip, names = load(name), list(FREE[group])
    rows = [row for row in judged() if row.first and row.target == name and row.side == side]
    generator = np.random.default_rng(0)
    start = np.log(list(FREE[group].values()))

    def bad(point: np.ndarray) -> float:
        one = changed(chip, dict(zip(names, np.exp(point), strict=True)))
        return badness(rows, one) + PULL * float(((point - start) ** 2).mean())

    best, least = start.copy(), bad(start)
    for step in range(STEPS):
        point = best.copy()
        point[generator.integers(len(names))] += generator.normal() * 0.5 * 0.9985 ** step
        for index, fact in enumerate(names):
            if fact in SHARES:
                point[index] = min(point[index], math.log(SHARE))
        found = bad(point)
        if found < least:
            best, least = point, found
    values = {name: float(f"{value:.3g}") for name, value in zip(names, np.exp(best), strict=True)}
    return values, changed(chip, values)


def reach(rows: list[Row], target: Target, fact: str) -> tuple[float, float]:
    """Return how far a fact may be from its value before the rows are off by ``WORSE`` more on average."""
    value, ends = target.value(fact), []
    worst = badness(rows, target) + WORSE
    for way in (-1, 1):
        end = value
        for factor in WAYS:
            tried = value * factor ** way
            if (fact in SHARES and tried > 1) or badness(rows, changed(target, {fact: tried})) > worst:
                break
            end = tried
        ends.append(end)
    return ends[0], ends[1]


def badness(rows: list[Row], target: Target) -> float:
    """Return the mean of the absolute logarithms of estimate over measurement, each cut."""
    return sum(min(CUT, abs(math.log(seconds(row, target) * 1e3 / row.ms))) for row in rows) / len(rows)


def spread(rows: list[Row], target: Target, share: float = 0.8) -> float:
    """Return the factor that ``share`` of the rows lie within, above or below their estimate."""
    apart = sorted(abs(math.log(seconds(row, target) * 1e3 / row.ms)) for row in rows)
    return math.exp(apart[min(len(apart) - 1, math.ceil(share * len(apart)) - 1)])


def main() -> int:
    """Fit the groups named on the command line, all without names."""
    for group in sys.argv[1:] or FREE:
        values, target = fitted(group)
        name, side = group.split("-")
        for half in (True, False):
            rows = [row for row in judged() if row.first is half and row.target == name and row.side == side]
            ratios = [seconds(row, target) * 1e3 / row.ms for row in rows]
            apart = sorted(abs(ratio - 1) for ratio in ratios)
            print(f"{group} {'first' if half else 'second'} half: {len(rows)} rows, median "
                  f"{apart[len(apart) // 2]:.0%}, within 2: {sum(0.5 <= r <= 2 for r in ratios) / len(rows):.0%}, "
                  f"80 % within a factor of {spread(rows, target):.2f}")
        rows = [row for row in judged() if row.first and row.target == name and row.side == side]
        for fact, value in values.items():
            low, high = reach(rows, target, fact)
            print(f"  {fact} = {value:.3g} ({low:.3g} to {high:.3g})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
