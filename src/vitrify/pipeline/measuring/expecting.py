"""What a model was expected to take on a board, by side and kind of operator, before any correction."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from vitrify.ir import Graph
from vitrify.targets.base import Target


class Expected(NamedTuple):
    """Milliseconds by (side, kind), and how many operators; the NPU has one entry, its calls within."""

    ms: dict[tuple[str, str], float]
    counts: dict[tuple[str, str], int]

    @property
    def total(self) -> float:
        """The whole inference."""
        return sum(self.ms.values())

    def side(self, side: str) -> float:
        """What runs on one side."""
        return sum(ms for (where, _), ms in self.ms.items() if where == side)


def expect(path: Path, graph: Graph, target: Target, side: str, threads: int) -> Expected:
    """Estimate an integer file on one side of a chip: ``cpu`` for all on its cores, ``npu`` for both together.

    The target's compiler says what its NPU takes, where it is installed; else the rules do.

    Raises:
        VitrifyError: the compiler refuses the file.
    """
    from vitrify.targets.estimating import cpu_time

    places, npu, calls = (["cpu"] * len(graph), 0.0, 0) if side == "cpu" else _placed(path, graph, target)
    ms: dict[tuple[str, str], float] = {}
    counts: dict[tuple[str, str], int] = {}
    for node, where in zip(graph, places, strict=True):
        if where == "cpu":
            key = ("cpu", node.op.kind)
            ms[key] = ms.get(key, 0.0) + cpu_time(node, target, threads).seconds.likely * 1e3
            counts[key] = counts.get(key, 0) + 1
    if npu:
        ms["npu", ""], counts["npu", ""] = npu, calls
    return Expected(ms, counts)


def _placed(path: Path, graph: Graph, target: Target) -> tuple[list[str], float, int]:
    """Where every node runs, the milliseconds of the NPU with its calls, and how many calls."""
    from vitrify.pipeline.checking.judging import compiler_of
    from vitrify.targets.rules import estimated, place

    driver = compiler_of(target)
    compiled = driver.check(path, target) if driver is not None else None
    placement = compiled.placement if compiled is not None else place(graph, target)
    told = compiled.estimate if compiled is not None else None
    told = told or estimated(graph, target, placement)
    npu = told.npu_ms + told.driver_ms if told is not None else 0.0
    return [verdict.placement for verdict in placement.verdicts], npu, placement.npu_partitions
