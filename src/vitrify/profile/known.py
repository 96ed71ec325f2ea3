"""The figures of a profile that comparisons and gates know by name."""

from __future__ import annotations

from collections.abc import Callable

from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow


def _cpu_nodes(result: ProfileResult) -> float | None:
    if result.basis != "estimated":
        return None
    return sum(row.placement == "cpu" for row in result.operators)


def _far_bytes(result: ProfileResult) -> float | None:
    told = [row.far_bytes for row in result.operators if isinstance(row, EstimatedRow) and row.far_bytes is not None]
    return sum(told) if told else None


def _npu_parts(result: ProfileResult) -> float | None:
    if result.basis != "estimated":
        return None
    return sum(part.placement == "npu" for part in result.partitions)


FIGURES: dict[str, Callable[[ProfileResult], float | None]] = {
    "latency_ms": lambda r: r.total_ms,
    "latency_high_ms": lambda r: None if r.estimate is None else r.estimate.high_ms,
    "npu_ms": lambda r: None if r.estimate is None else r.estimate.npu_ms,
    "cpu_ms": lambda r: None if r.estimate is None else r.estimate.cpu_ms,
    "driver_ms": lambda r: None if r.estimate is None else r.estimate.driver_ms,
    "npu_cycles": lambda r: None if r.cycles is None else r.cycles.total,
    "npu_coverage": lambda r: r.coverage.nodes,
    "npu_coverage_macs": lambda r: r.coverage.macs,
    "npu_coverage_time": lambda r: r.coverage.time,
    "npu_calls": _npu_parts,
    "cpu_nodes": _cpu_nodes,
    "nodes": lambda r: r.nodes,
    "macs": lambda r: sum(row.macs for row in r.operators),
    "file_bytes": lambda r: r.bytes,
    "weights_bytes": lambda r: r.memory.weights_bytes,
    "arena_bytes": lambda r: r.memory.arena_bytes or None,
    "live_bytes": lambda r: r.memory.live_bytes,
    "near_bytes": lambda r: r.memory.near_used_bytes,
    "far_traffic_bytes": _far_bytes,
}
"""What a profile is judged and compared by; None where it does not tell."""


def figure(result: ProfileResult, name: str) -> float | None:
    """Return one figure, None where the profile does not tell it."""
    found = FIGURES[name](result)
    return None if found is None else float(found)
