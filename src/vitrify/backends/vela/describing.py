"""Puts together what a compilation gave: verdicts, cost and memory, in the names of the source model."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from vitrify.backends import base
from vitrify.backends.base import OperatorRow
from vitrify.backends.vela import findings as said
from vitrify.backends.vela.compiled import CompiledFile, read_compiled
from vitrify.backends.vela.database import Database, Perf, Row, number, read_database, read_summary, unseen
from vitrify.backends.vela.estimating import estimate, npu_seconds
from vitrify.backends.vela.faults import known_faults
from vitrify.backends.vela.layers import layers_of, lives_of, totals_of
from vitrify.backends.vela.messages import read_messages
from vitrify.backends.vela.placing import Placed, place_nodes
from vitrify.backends.vela.traps import traps
from vitrify.core.findings import Finding
from vitrify.ir import Graph, Model
from vitrify.targets.base import Target
from vitrify.targets.estimating import Seconds, cpu_seconds, node_macs
from vitrify.targets.partition import partition
from vitrify.targets.placement import Coverage, Estimate, Memory, Partition, Placement
from vitrify.targets.reconciling import disagreement, reconcile
from vitrify.targets.rules import judge
from vitrify.targets.telling import cpu_nodes

_LOG_TAIL = 8000


class Compiled(base.Compiled, frozen=True, kw_only=True):
    """What a compilation with Vela gave: it always tells times and memory."""

    estimate: Estimate
    memory: Memory


class Left(NamedTuple):
    """What the child left: the compiled model's path and the texts beside it."""

    model: Path
    database: str
    summary: str
    log: str
    options: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def describe(model: Model, left: Left, target: Target, ignored: tuple[str, ...]) -> Compiled:
    """Return the answer to a compilation of ``model``, without the place of its output and the time it took."""
    version = importlib.metadata.version("ethos-u-vela")
    compiled = read_compiled(left.model)
    summary = read_summary(left.summary)
    database = read_database(left.database)
    placed = place_nodes(model.main, compiled, database, read_messages(left.log), ignored)
    calls = len(compiled.npu)
    lost = unseen(summary, database)
    unowned = [*_unowned(database, placed), *lost]
    latency = estimate(placed, unowned, calls, target, version)
    placement = _placement(model.main, placed, unowned, target)
    verdicts, differences = reconcile(judge(model.main, target), placement.verdicts)
    placement = msgspec.structs.replace(placement, verdicts=tuple(verdicts))
    against = [one for one in differences if one.compiled.operator not in ignored]
    notes = (*left.findings, *cpu_nodes(placement), *disagreement(against, f"Vela {version}"),
             *known_faults(placed, version), *said.calls(calls, target),
             *said.no_cycles(lost, len(model.graphs)), *traps(placed, target))
    return Compiled(output=None, target=target.name, compiler="Vela", version=version, placement=placement,
                    estimate=latency, memory=_memory(summary, compiled, left.model, target),
                    operators=tuple(_row(one, target) for one in placed), findings=tuple(notes),
                    options=left.options, seconds=0.0, log=left.log[-_LOG_TAIL:],
                    overhead=layers_of(unowned), totals=totals_of(summary), lives=lives_of(database))


def _unowned(database: Database, placed: Sequence[Placed]) -> list[Perf]:
    """Return what the compiler scheduled for none of the main graph's nodes."""
    owned = {row.id for one in placed for row in one.perf}
    return [row for rows in database.perf.values() for row in rows if row.id not in owned]


def _placement(graph: Graph, placed: Sequence[Placed], unowned: Sequence[Perf], target: Target) -> Placement:
    places = {one.node: one.place for one in placed}
    streams = {one.node: one.stream for one in placed if one.stream is not None}
    costs = {one.node: _milliseconds(one, target) for one in placed}
    parts = _spread(npu_seconds(unowned, target).likely * 1e3, partition(graph, places, streams, costs))
    return Placement(target=target.name, coverage=_coverage(placed, parts),
                     verdicts=tuple(one.verdict for one in placed), partitions=tuple(parts))


def _spread(time_ms: float, parts: Sequence[Partition]) -> list[Partition]:
    """Share the time of no node out to the NPU's partitions, by the time they have already."""
    on_npu = [part for part in parts if part.placement == "npu"]
    known = sum(part.time_ms for part in on_npu)
    return [part if part.placement == "cpu" else msgspec.structs.replace(part, time_ms=part.time_ms + time_ms * (
        part.time_ms / known if known else 1 / len(on_npu))) for part in parts]


def _coverage(placed: Sequence[Placed], parts: Sequence[Partition]) -> Coverage:
    macs = {one.node: node_macs(one.node) for one in placed}
    off_cpu = [one for one in placed if one.place != "cpu"]
    time_ms = sum(part.time_ms for part in parts)
    npu_ms = sum(part.time_ms for part in parts if part.placement == "npu")
    return Coverage(nodes=_share(len(off_cpu), len(placed)),
                    macs=_share(sum(macs[one.node] for one in off_cpu), sum(macs.values())),
                    time=_share(npu_ms, time_ms))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _milliseconds(one: Placed, target: Target) -> float:
    return _seconds(one, target).likely * 1e3


def _seconds(one: Placed, target: Target) -> Seconds:
    return cpu_seconds(one.node, target) if one.place == "cpu" else npu_seconds(one.perf, target)


def _row(one: Placed, target: Target) -> OperatorRow:
    macs = sum(row.macs for row in one.perf) if one.place == "npu" else node_macs(one.node)
    capacity = one.cycles * target.value("macs_per_cycle")
    time = _seconds(one, target)
    return OperatorRow(node=one.node.name, operator=one.node.op.kind, placement=one.place, cycles=one.cycles,
                       ms=time.likely * 1e3, low_ms=time.low * 1e3, high_ms=time.high * 1e3, layers=layers_of(one.perf),
                       macs=macs, utilisation=_share(macs, capacity),
                       dram_bytes=sum(row.far_bytes for row in one.perf))


def _memory(summary: Row, compiled: CompiledFile, path: Path, target: Target) -> Memory:
    def kibibytes(name: str) -> int:
        try:
            return round(float(summary.get(name, "0")) * 1024)
        except ValueError:
            return 0

    return Memory(sram_bytes=kibibytes("sram_memory_used"), sram_limit_bytes=int(target.value("cache_bytes")),
                  dram_bytes=kibibytes("dram_memory_used"), arena_bytes=compiled.arena_bytes,
                  flash_bytes=path.stat().st_size, dram_traffic_bytes=number(summary.get("dram_total_bytes", "")),
                  sram_traffic_bytes=number(summary.get("sram_total_bytes", "")),
                  weights_bytes=number(summary.get("total_original_weights", "")),
                  encoded_weights_bytes=number(summary.get("total_npu_encoded_weights", "")))
