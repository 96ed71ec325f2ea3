"""Profiles a file that Vela compiled, by what Vitrify wrote into it: which command is whose, and its cycles.

The file's compiler has estimated all of it already; nothing is compiled anew, and the model that it was made from is
not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.backends.vela.database import Perf
from vitrify.backends.vela.estimating import npu_seconds
from vitrify.core.errors import ModelError, UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.pipeline.measuring.correcting import load_target
from vitrify.pipeline.profiling.base import Profiled, ProfileOptions
from vitrify.pipeline.steps import is_compiled, step
from vitrify.profile.chip import BOUNDS, bound_of, busy, roofline
from vitrify.profile.sizes import describe, share_out
from vitrify.results import Coverage, ProfileResult
from vitrify.results.profiling import CyclesRow, EstimatedRow, LayerRow, MemoryPlan, OverheadRow
from vitrify.results.rows import Estimate
from vitrify.targets.estimating import Seconds, call_seconds, cpu_time, total
from vitrify.tflite.streams import STREAMS, CommandMap, Scheduled, SourceNode, decode_map, metadata_in

if TYPE_CHECKING:
    from vitrify.ir import Node
    from vitrify.runtimes.npusim.compiled import Program
    from vitrify.runtimes.npusim.traffic import NodeTraffic
    from vitrify.targets import Target

NPUSIM = "npusim"
_MS = 1e3


def on_commands(file: Path, options: ProfileOptions, shown: Reporter) -> Profiled | None:
    """Estimate a compiled file by what it says of itself; None for a file that is not compiled.

    Raises:
        ModelError: it is compiled, and does not say what its commands compute.
        UsageError: it is compiled for another chip than the one that is asked for.
    """
    if not is_compiled(file):
        if options.on:
            raise UsageError.of("profile.on", f"--on {options.on} runs compiled files, and {file.name} is none",
                                where="--on", help="compile it first, or leave --on out")
        return None
    said = metadata_in(file).get(STREAMS)
    if said is None:
        raise ModelError.of(
            "profile.compiled", f"{file.name} is compiled, and does not say what its commands compute", where=str(file),
            why="its compiler leaves that out; `vitrify compile` and `build` write it into Vela's files",
            help="profile the integer file that it was made from, with --target; or compile that with "
                 "`vitrify compile`, and profile what it writes")
    commands = decode_map(said, str(file))
    if options.target not in ("", commands.target):
        raise UsageError.of("profile.compiled-for", f"{file.name} is compiled for {commands.target}, "
                            f"not for {options.target}", where="--target",
                            help=f"profile the integer file that it was made from with --target {options.target}")
    if options.modes or options.integers:
        raise UsageError.of("profile.compiled-once", f"{file.name} is compiled already, in one memory mode",
                            help="leave --memory-modes and --int8 out, or give the file that it was made from")
    chip = load_target(commands.target)
    from vitrify.runtimes.npusim.compiled import read_program

    with step(shown, "read") as note:
        program = read_program(file)
        note.text = f"{len(commands.scheduled)} operations by {commands.maker}"
    result = _estimated(file, commands, program, chip)
    result.findings = [Finding(
        code="profile.as-compiled", severity=Severity.INFO, where=file.name,
        headline=f"{commands.maker}'s cycles for {chip.title}, as it wrote the file; nothing was compiled anew",
        help="" if options.on else f"--on {NPUSIM} runs it and counts the bytes that each node moves")]
    if options.on:
        with step(shown, NPUSIM) as note:
            _count(result, file, commands)
            note.text = "bytes counted"
    return Profiled(result)


def _estimated(file: Path, commands: CommandMap, program: Program, chip: Target) -> ProfileResult:
    groups: dict[int, list[Scheduled]] = {}
    for one in commands.scheduled:
        groups.setdefault(one.node if 0 <= one.node < len(commands.nodes) else -1, []).append(one)
    unowned = groups.pop(-1, [])
    npu = [_npu_row(commands.nodes[number], rows, chip) for number, rows in groups.items()]
    cpu = [_cpu_row(node, chip) for node in _cpu_nodes(program)]
    result = ProfileResult(
        form="as compiled", kind="compiled", basis="estimated", target=chip.name, compiler=commands.maker,
        nodes=len(npu) + len(cpu), bytes=file.stat().st_size, graph=file.stem, roofline=roofline(chip),
        operators=[*npu, *(row for row, _ in cpu)],
        memory=MemoryPlan(arena_bytes=max((s.arena_bytes for s in program.npu), default=0), planner=commands.maker,
                          weights_bytes=sum(s.constants.size for s in program.npu)))
    for index, row in enumerate(result.operators):
        row.index = index
    share_out(list(result.operators))
    result.overhead = [OverheadRow(what=f"{one.operator or 'unnamed'} that the compiler made by itself",
                                   cycles=one.cycles, time_ms=_ms(one.cycles, chip), layer=_layer(one))
                       for one in unowned]
    calls = len(program.npu)
    driver = call_seconds(calls, chip)
    result.overhead.append(OverheadRow(what="calls of the NPU's driver", time_ms=driver.likely * _MS, count=calls))
    result.cycles = _cycles(commands, unowned)
    _price(result, commands, [seconds for _, seconds in cpu], driver, chip)
    return result


def _price(result: ProfileResult, commands: CommandMap, cpu: Sequence[Seconds], driver: Seconds, chip: Target) -> None:
    """Add the whole and its bounds, which are those of the compiler's own estimate."""
    npu = npu_seconds([_perf(one) for one in commands.scheduled], chip)
    cores = total(cpu)
    whole = total((npu, cores, driver))
    far = chip.far_bytes_per_s
    result.source = chip.told(f"estimated for {chip.title}: {commands.maker} cycle model, as the file says, "
                              f"{chip.value('clock_hz') / 1e9:g} GHz, {far.value / 1e9:.3g} GB/s ({far.basis})")
    result.estimate = Estimate(
        latency_ms=whole.likely * _MS, low_ms=whole.low * _MS, high_ms=whole.high * _MS, source=result.source,
        npu_ms=npu.likely * _MS, cpu_ms=cores.likely * _MS, driver_ms=driver.likely * _MS,
        npu_cycles=sum(one.cycles for one in commands.scheduled), assumptions=list(chip.doubts()))
    result.total_ms = whole.likely * _MS
    rows = result.operators
    macs, busy_macs = sum(r.macs for r in rows), sum(r.macs for r in rows if r.placement == "npu")
    time, npu_time = (sum(r.time_ms or 0.0 for r in rows if place in ("", r.placement)) for place in ("", "npu"))
    count = sum(r.placement == "npu" for r in rows)
    result.coverage = Coverage(nodes=count / len(rows) if rows else None, macs=busy_macs / macs if macs else None,
                               time=npu_time / time if time else None)


def _npu_row(node: SourceNode, rows: Sequence[Scheduled], chip: Target) -> EstimatedRow:
    made = node.outputs[0] if node.outputs else None
    row = EstimatedRow(index=0, node=node.name, operator=node.operator, placement="npu", origin=list(node.origin),
                       macs=sum(r.macs for r in rows), cycles=sum(r.cycles for r in rows),
                       compute_cycles=sum(r.npu_cycles for r in rows), near_cycles=sum(r.sram_cycles for r in rows),
                       far_cycles=sum(r.far_cycles for r in rows), layers=[_layer(r) for r in rows],
                       shape=list(made.shape) if made else [], dtype=made.dtype if made else "",
                       source="the compiler's cycles")
    row.time_ms = _ms(row.cycles or 0, chip)
    row.bound, row.utilisation = bound_of(row) if row.cycles else "", busy(row, chip)
    return row


def _cpu_row(node: Node, chip: Target) -> tuple[EstimatedRow, Seconds]:
    row = EstimatedRow(index=0, node=node.name, operator=node.op.kind, placement="cpu")
    describe(row, node)
    time = cpu_time(node, chip)
    seconds = time.seconds
    row.time_ms, row.low_ms, row.high_ms = seconds.likely * _MS, seconds.low * _MS, seconds.high * _MS
    row.bound, row.source = BOUNDS[time.bound], time.source
    return row, seconds


def _cpu_nodes(program: Program) -> list[Node]:
    """The operators that were left to the CPU; each stretch of them is a file of its own."""
    from vitrify import tflite
    from vitrify.runtimes.npusim.compiled import CpuStep

    found: list[Node] = []
    with temporary_folder() as folder:
        for number, one in enumerate(program.steps):
            if isinstance(one, CpuStep):
                file = folder / f"{number}.tflite"
                file.write_bytes(one.file)
                found += list(tflite.read(file).main)
    return found


def _cycles(commands: CommandMap, unowned: Sequence[Scheduled]) -> CyclesRow:
    rows = commands.scheduled
    whole, rest = sum(one.cycles for one in rows), sum(one.cycles for one in unowned)
    return CyclesRow(total=whole, operators=whole - rest, overhead=rest, compute=sum(one.npu_cycles for one in rows),
                     near=sum(one.sram_cycles for one in rows), far=sum(one.far_cycles for one in rows),
                     macs=sum(one.macs for one in rows))


def _layer(one: Scheduled) -> LayerRow:
    return LayerRow(name=one.tensor, operator=one.operator, cycles=one.cycles, compute_cycles=one.npu_cycles,
                    near_cycles=one.sram_cycles, far_cycles=one.far_cycles, macs=one.macs)


def _perf(one: Scheduled) -> Perf:
    return Perf("", "", one.operator, one.cycles, one.npu_cycles, one.sram_cycles, one.far_cycles, one.macs, 0)


def _ms(cycles: int, chip: Target) -> float:
    ratio = (chip.known("npu_time_ratio") or 1.0) * chip.correction("npu")
    return cycles * ratio / chip.value("clock_hz") * _MS


def _count(result: ProfileResult, file: Path, commands: CommandMap) -> None:
    """Run the file once in the model of its NPU, and add what each node reads and writes."""
    from vitrify.runtimes.npusim.runtime import NpuSim

    with NpuSim(file) as opened:
        moved = opened.profile(runs=1, warmup=1).nodes
    by_node: dict[tuple[str, str], list[NodeTraffic]] = {}
    for one in moved:
        by_node.setdefault((one.node, one.operator), []).append(one)
    for row in result.operators:
        found = by_node.get((" + ".join(row.origin) or row.node, row.operator)) if row.placement == "npu" else None
        if not found:
            continue
        one = found.pop(0)
        row.weight_bytes = one.read_bytes.get("constants", 0)
        row.input_bytes = sum(one.read_bytes.values()) - row.weight_bytes
        row.output_bytes = sum(one.written_bytes.values())
        row.bytes = row.input_bytes + row.weight_bytes + row.output_bytes
