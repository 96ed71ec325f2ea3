"""A model on a chip, estimated: the compiler's layers on the user's operators, or our own model of the chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from vitrify.ir import Graph, Node
from vitrify.profile.sizes import describe, share_out
from vitrify.results.profiling import CyclesRow, EstimatedRow, LayerRow, LifeRow, MemoryPlan, OverheadRow, RooflineRow
from vitrify.targets.base import Target

if TYPE_CHECKING:
    from vitrify.backends.base import Compiled, Layer, OperatorRow
    from vitrify.targets.placement import Estimate, Placement

BOUNDS = {"products": "compute", "values": "elements", "memory": "memory", "start": "start", "nothing": ""}
"""What our own models say a node waits for, in the words of a profile."""


class ChipProfile(NamedTuple):
    """What was estimated. ``rest`` is what belongs to no operator: the compiler's own layers, and the calls."""

    rows: list[EstimatedRow]
    rest: list[OverheadRow]
    cycles: CyclesRow | None


def of_compiled(graph: Graph, compiled: Compiled, target: Target) -> ChipProfile:
    """Join what the compiler tells onto the nodes of ``graph``, the file that was compiled.

    Each of the compiler's cycles is a node's or stands in ``rest``.
    """
    where = _Partitions(compiled.placement)
    rows = [_compiled_row(index, node, told, where, target)
            for index, (node, told) in enumerate(zip(graph, compiled.operators, strict=True))]
    share_out(list(rows))
    rest = [OverheadRow(what=f"{layer.operator or 'unnamed'} that the compiler made by itself", cycles=layer.cycles,
                        time_ms=_layer_ms(layer, target), layer=layer_row(layer)) for layer in compiled.overhead]
    rest += _calls(compiled.estimate, compiled.placement)
    return ChipProfile(rows, rest, _cycles(compiled))


def of_estimate(graph: Graph, placement: Placement, estimate: Estimate | None, target: Target,
                priced: bool = True) -> ChipProfile:
    """Price each node by our own models of the chip, which are those of integer kernels: others are not ``priced``."""
    from vitrify.targets.estimating import can_estimate, node_times

    places = {node: verdict.placement for node, verdict in zip(graph, placement.verdicts, strict=True)}
    times = node_times(graph, places, target)
    where = _Partitions(placement)
    rows = []
    for index, node in enumerate(graph):
        row = _row(index, node, places[node], where)
        if priced and (places[node] == "cpu" or can_estimate(target)):
            seconds = times[node].seconds
            row.time_ms, row.low_ms, row.high_ms = seconds.likely * 1e3, seconds.low * 1e3, seconds.high * 1e3
            row.bound, row.source = BOUNDS[times[node].bound], times[node].source
            row.utilisation = busy(row, target)
        rows.append(row)
    share_out(list(rows))
    return ChipProfile(rows, _calls(estimate, placement), None)


def _row(index: int, node: Node, place: str, where: _Partitions) -> EstimatedRow:
    row = EstimatedRow(index=index, node=node.name, operator=node.op.kind, placement=place,
                       partition=where.take(node.name, place))
    describe(row, node)
    return row


def _compiled_row(index: int, node: Node, told: OperatorRow, where: _Partitions, target: Target) -> EstimatedRow:
    row = _row(index, node, told.placement, where)
    row.time_ms, row.low_ms, row.high_ms = told.ms, told.low_ms, told.high_ms
    row.cycles = told.cycles
    row.layers = [layer_row(layer) for layer in told.layers if not layer.passed]
    if told.placement == "npu" and told.layers:
        row.utilisation = told.utilisation
        row.compute_cycles, row.near_cycles, row.far_cycles, row.near_bytes, row.far_bytes = (
            sum(getattr(layer, name) for layer in row.layers)
            for name in ("compute_cycles", "near_cycles", "far_cycles", "near_bytes", "far_bytes"))
        row.bound = bound_of(row) if row.cycles else ""
        row.source = "the compiler's cycles"
    elif told.placement == "cpu":
        from vitrify.targets.estimating import cpu_time

        time = cpu_time(node, target)
        row.bound, row.source = BOUNDS[time.bound], time.source
    return row


def bound_of(row: EstimatedRow) -> str:
    """What an operator on the NPU waits for, by the compiler's cycles."""
    compute, near, far = row.compute_cycles or 0, row.near_cycles or 0, row.far_cycles or 0
    if max(near, far) <= compute:
        return "compute" if row.macs else "elements"
    return "memory" if far >= near else "near memory"


def layer_row(layer: Layer) -> LayerRow:
    """Turn a layer into a row."""
    return LayerRow(name=layer.name, operator=layer.operator, cycles=layer.cycles, macs=layer.macs,
                    compute_cycles=layer.compute_cycles, near_cycles=layer.near_cycles, far_cycles=layer.far_cycles,
                    near_bytes=layer.near_bytes, far_bytes=layer.far_bytes)


def _layer_ms(layer: Layer, target: Target) -> float:
    ratio = (target.known("npu_time_ratio") or 1.0) * target.correction("npu")
    return layer.cycles * ratio / target.value("clock_hz") * 1e3


def busy(row: EstimatedRow, target: Target) -> float | None:
    """The share of the NPU's MACs that are busy while it runs an operator, in the estimated time."""
    macs, clock = target.known("macs_per_cycle"), target.known("clock_hz")
    if row.placement != "npu" or not row.time_ms or not row.macs or not macs or not clock:
        return None
    return row.macs / (row.time_ms * 1e-3 * macs * clock)


class _Partitions:
    """The partition of each node, told by name; of nodes that share one, in their order."""

    def __init__(self, placement: Placement) -> None:
        self._left: dict[str, list[tuple[int, str]]] = {}
        for part in placement.partitions:
            for name in part.nodes:
                self._left.setdefault(name, []).append((part.index, part.placement))

    def take(self, name: str, place: str) -> int | None:
        """Return the next partition that has a node of that name and place."""
        left = self._left.get(name, [])
        found = next((one for one in left if place in (one[1], "folded")), None)
        if found is None:
            return None
        left.remove(found)
        return found[0]


def _calls(estimate: Estimate | None, placement: Placement) -> list[OverheadRow]:
    calls = placement.npu_partitions
    if estimate is None or not estimate.driver_ms:
        return []
    return [OverheadRow(what="calls of the NPU's driver", time_ms=estimate.driver_ms, count=calls)]


def _cycles(compiled: Compiled) -> CyclesRow | None:
    totals = compiled.totals
    if not totals:
        return None
    layers = [layer for row in compiled.operators for layer in row.layers]
    return CyclesRow(total=totals["cycles"], compute=totals["compute"], near=totals["near"], far=totals["far"],
                     macs=totals["macs"], operators=sum(layer.cycles for layer in layers if not layer.passed),
                     overhead=sum(layer.cycles for layer in compiled.overhead),
                     passed_through=sum(layer.cycles for layer in layers if layer.passed))


def roofline(target: Target) -> RooflineRow | None:
    """Return the two limits of a target, None where its facts lack one."""
    macs, clock = target.known("macs_per_cycle"), target.known("clock_hz")
    if macs is None or clock is None or f"{target.far_memory}_bytes_per_s" not in target.facts:
        return None
    far, part = target.far_bytes_per_s, target.known("npu_efficiency") or 1.0
    peak = macs * clock
    source = f"{macs:g} MACs at {clock / 1e9:g} GHz; {target.far_memory.upper()} {far.value / 1e9:.3g} GB/s " \
             f"({far.basis}: {far.source})"
    if part < 1:
        source += f"; of the products {part:.0%} were reached at best"
    return RooflineRow(peak_macs_per_s=peak, bytes_per_s=far.value, ridge=peak / far.value, basis=far.basis,
                       source=source)


def compiled_memory(answer: MemoryPlan, compiled: Compiled, target: Target) -> None:
    """Fill in what the compiler says of memory."""
    memory = compiled.memory
    if memory is None:
        return
    answer.near_limit_bytes, answer.near_used_bytes = memory.sram_limit_bytes, memory.sram_bytes
    answer.far_used_bytes = memory.dram_bytes
    answer.arena_bytes, answer.planner = memory.arena_bytes, f"{compiled.maker}, as the compiled file says"
    answer.reserve_bytes = memory.arena_bytes
    answer.reserve_why = "the arena that the compiled file's NPU operators share" + (
        "; operators on the CPU and the interpreter's own data come on top" if answer.arena_bytes else "")
    answer.placed = [LifeRow(tensor=one.name, bytes=one.bytes, first=one.first, last=one.last, offset=one.offset,
                             memory=one.memory, maker=one.usage) for one in compiled.lives if one.bytes]


def unowned_cycles(rows: Sequence[EstimatedRow], cycles: CyclesRow) -> int:
    """Return the cycles that are neither a node's, nor overhead, nor counted for an operator left to the CPU."""
    return cycles.total - sum(row.cycles or 0 for row in rows) - cycles.overhead - cycles.passed_through
