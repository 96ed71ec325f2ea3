"""Puts together what a conversion gave: verdicts read from the file, the log's figures, and where the two differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.backends.base import Compiled, OperatorRow
from vitrify.backends.neutron import findings as said
from vitrify.backends.neutron.installed import Sdk
from vitrify.backends.neutron.log import Log
from vitrify.backends.neutron.result import Placed, place_nodes
from vitrify.ir import Graph, Model, Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds, node_macs, total
from vitrify.targets.estimating import node_seconds
from vitrify.targets.partition import partition
from vitrify.targets.placement import Estimate, Placement, Reason, Verdict
from vitrify.targets.reconciling import disagreement, reconcile
from vitrify.targets.rules import judge, placed_as
from vitrify.targets.rules.placing import estimated
from vitrify.targets.telling import cpu_nodes

if TYPE_CHECKING:
    from vitrify.backends.neutron.compiling import Made

COMPILER = "neutron-converter"
_LOG_TAIL = 8000
_UNSAID = Reason(code="neutron.no-reason", headline="the converter left it on the CPU without a word")


def describe(path: Path, source: Model, made: Made, sdk: Sdk, target: Target) -> Compiled:
    """Return the answer to a conversion, without the place of its output and the time it took."""
    version = sdk.version or made.log.version
    placed = place_nodes(source.main, made.model)
    verdicts, differences = reconcile(judge(source.main, target), [_verdict(n, placed) for n in source.main])
    times = node_seconds(source.main, placed.places, target)
    placement = _placement(source.main, target, verdicts, placed, times)
    notes = (*said.versions(sdk.version, made.log.version, sdk.place), *cpu_nodes(placement),
             *disagreement(differences, f"{COMPILER} {version}".strip()), *said.ratio(made.log, len(source.main)),
             *said.log_disagrees([*made.log.contradictions(), *_against_file(made.log, placed)], path),
             *([] if made.log.has_statistics else [said.no_statistics(path)]),
             *said.spoken(made.log.spoken), *said.unmapped(placed.unmapped, path))
    return Compiled(output=None, target=target.name, compiler=COMPILER, version=version, placement=placement,
                    estimate=_estimate(source.main, made.log, placement, times, placed, target, version), memory=None,
                    operators=tuple(_row(node, placed, times) for node in source.main), findings=notes,
                    options=made.options, seconds=0.0, log=made.text[-_LOG_TAIL:], statistics=made.log.figures())


def _verdict(node: Node, placed: Placed) -> Verdict:
    place = placed.places[node]
    return Verdict(node=node.name, operator=node.op.kind, placement=place, rules=(_UNSAID,) if place == "cpu" else (),
                   origin=tuple(one.name for one in node.origin.sources))


def _placement(graph: Graph, target: Target, verdicts: Sequence[Verdict], placed: Placed,
               times: Mapping[Node, Seconds]) -> Placement:
    whole = placed_as(graph, target, verdicts)
    costs = {node: time.likely * 1e3 for node, time in times.items()}
    parts = partition(graph, placed.places, placed.groups, costs)
    return msgspec.structs.replace(whole, partitions=tuple(parts))


def _against_file(log: Log, placed: Placed) -> list[str]:
    """Where the log's figures are not those of the file."""
    found = []
    if log.graphs is not None and log.graphs != len(placed.graphs):
        found.append(f"it speaks of {log.graphs} Neutron graphs, the file holds {len(placed.graphs)}")
    if log.left is not None and log.left != placed.left:
        found.append(f"it speaks of {log.left} operators not converted, the file holds {placed.left}")
    if log.converted and not placed.graphs:
        found.append(f"it speaks of {log.converted} operators converted, the file holds no Neutron graph")
    return found


def _estimate(graph: Graph, log: Log, placement: Placement, times: Mapping[Node, Seconds], placed: Placed,
              target: Target, version: str) -> Estimate | None:
    """The converter's own figure for the NPU, with what is left to the CPU; where it prints none, that of the facts."""
    if log.latency_ms is None:
        return estimated(graph, target, placement)
    cpu = total(time for node, time in times.items() if placed.places[node] == "cpu")
    low, likely, high = (bound * 1e3 for bound in cpu)
    npu = log.latency_ms
    return Estimate(latency_ms=npu + likely, low_ms=npu + low, high_ms=npu + high, npu_ms=npu, cpu_ms=likely,
                    driver_ms=0.0, npu_cycles=0, source=f"{COMPILER} {version}, its own figure for the NPU",
                    assumptions=("the converter does not say what its figure assumes",))


def _row(node: Node, placed: Placed, times: Mapping[Node, Seconds]) -> OperatorRow:
    time = times.get(node)
    return OperatorRow(node=node.name, operator=node.op.kind, placement=placed.places[node], cycles=None,
                       ms=0.0 if time is None else time.likely * 1e3, macs=node_macs(node), utilisation=0.0,
                       dram_bytes=0)
