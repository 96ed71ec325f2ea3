"""Compiles a model with Vela in a child process and says what came of it, in the user's names."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from vitrify.backends.vela import findings as said
from vitrify.backends.vela.compiled import CompiledFile, npu_graphs, read_compiled
from vitrify.backends.vela.database import Database, Perf, Row, number, read_database, read_summary, unseen
from vitrify.backends.vela.estimating import estimate, npu_seconds
from vitrify.backends.vela.messages import read_messages
from vitrify.backends.vela.placing import Placed, place_nodes
from vitrify.backends.vela.settings import CONFIG, MODEL, OUTPUT, Optimise, arguments, configuration, system_name
from vitrify.core.errors import InternalError, ModelError, TargetError, UsageError, VitrifyError
from vitrify.core.files import atomic_writer
from vitrify.core.findings import Finding
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES, Worker
from vitrify.ir import Graph, Model
from vitrify.targets.base import Target, load
from vitrify.targets.cost import cpu_seconds, node_macs
from vitrify.targets.partition import partition
from vitrify.targets.placement import Coverage, Estimate, Memory, Partition, Place, Placement

DEFAULT_SECONDS = 600.0
"""Convolutional models compile in seconds, transformers in half a minute; beyond this it hangs."""

_RUN = "vitrify.backends.running:run_module"
_COMPILER = "ethosu.vela"
_LOG_TAIL = 8000
_COPY_BYTES = 1 << 20


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the source model with its estimated cost.

    ``cycles`` counts everything on the NPU that the node became; 0 when it was fused or folded. ``ms`` of a CPU node is
    the likely value of a wide interval. ``utilisation`` is the share of the NPU's MACs that are busy, 0..1.
    """

    node: str
    operator: str
    placement: Place
    cycles: int
    ms: float
    macs: int
    utilisation: float
    dram_bytes: int


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """What a compilation gave. ``output`` is None when nothing was asked to be kept; times in it are estimates."""

    output: str | None
    target: str
    placement: Placement
    estimate: Estimate
    memory: Memory
    operators: tuple[OperatorRow, ...]
    findings: tuple[Finding, ...]
    vela_version: str
    options: tuple[str, ...]
    seconds: float
    log: str


class _Result(NamedTuple):
    """What the child left: the compiled model's path and the texts beside it."""

    model: Path
    database: str
    summary: str
    log: str
    options: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def compile_model(path: Path | str, target: Target | str, output: Path | str, *, optimise: Optimise | None = None,
                  ignore: Sequence[str] = (), seconds: float = DEFAULT_SECONDS,
                  memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Compiled:
    """Compile the int8 model at ``path`` for ``target`` and write it to ``output``, whole or not at all.

    Args:
        path: a .tflite file; it is only read.
        target: the chip, or its name.
        output: where the compiled model goes.
        optimise: for speed, or for small on-chip memory; both give the same results. None: for speed, and for memory
            where the compiler dies over speed.
        ignore: builtin operators to leave on the CPU.
        seconds: the time limit of the compiler.
        memory_bytes: its memory limit.

    Raises:
        ModelError: the file is no TFLite model, is damaged, or is compiled already.
        TargetError: the compiler refuses the model or puts nothing on the NPU; says why.
        VitrifyError: the compiler died, hung or ran out of memory (``process.*``).
        UsageError: the file cannot be read, or ``output`` not written.
    """
    def keep(compiled: Path) -> None:
        _copy(compiled, Path(output))

    return _compile(Path(path), target, keep, optimise, tuple(ignore), seconds, memory_bytes, str(output))


def check_model(path: Path | str, target: Target | str, *, optimise: Optimise | None = None,
                seconds: float = DEFAULT_SECONDS, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Compiled:
    """Say what ``compile_model`` would give, and keep nothing.

    A model of which nothing runs on the NPU is no error here: the answer has a finding that says so.

    Raises:
        ModelError, TargetError, VitrifyError: as ``compile_model``.
    """
    return _compile(Path(path), target, None, optimise, (), seconds, memory_bytes, None)


def _compile(path: Path, target: Target | str, keep: Callable[[Path], None] | None, optimise: Optimise | None,
             ignore: tuple[str, ...], seconds: float, memory_bytes: int, output: str | None) -> Compiled:
    started = time.monotonic()
    chip = load(target) if isinstance(target, str) else target
    model = _read(path)
    with _working_folder(chip, path) as folder:
        left = _run_trying(path, model.main, chip, optimise, ignore, folder, seconds, memory_bytes)
        answer = _describe(model, left, chip, ignore)
        if answer.placement.npu_partitions == 0:
            nothing = said.nothing_placed(path, chip, model.main)
            answer = msgspec.structs.replace(answer, findings=(nothing, *answer.findings))
            if keep is not None:
                raise TargetError(answer.findings)
        if keep is not None:
            keep(left.model)
    return msgspec.structs.replace(answer, output=output, seconds=time.monotonic() - started)


def _read(path: Path) -> Model:
    """Read the source model; a compiled one is told apart, also where it makes no graph."""
    from vitrify import tflite

    try:
        model = tflite.read(path)
    except ModelError as error:
        if any(finding.code == "tflite.order" for finding in error.findings):
            _refuse_compiled(path)
        raise
    _refuse_compiled(path)
    return model


def _refuse_compiled(path: Path) -> None:
    if graphs := npu_graphs(path):
        raise ModelError(said.already_compiled(path, len(graphs)))


@contextmanager
def _working_folder(target: Target, path: Path) -> Iterator[Path]:
    """Yield a new folder that holds the configuration and a link to the model, and remove it afterwards.

    Raises:
        UsageError: there is no room for it.
    """
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vitrify-vela-")))
            (folder / MODEL).symlink_to(os.path.abspath(path))
            (folder / CONFIG).write_text(configuration(target), encoding="utf-8")
        except OSError as error:
            raise UsageError(said.no_room(error.strerror or str(error))) from error
        yield folder


def _run_trying(path: Path, graph: Graph, target: Target, optimise: Optimise | None, ignore: tuple[str, ...],
                folder: Path, seconds: float, memory_bytes: int) -> _Result:
    """Run the compiler for speed, and once more for memory when it dies over that and nothing else was asked for."""
    options = arguments(target, optimise=optimise or "Performance", ignore=ignore)
    try:
        return _run(path, graph, target, options, folder, seconds, memory_bytes)
    except TargetError as error:
        if optimise is not None or all(finding.code != "process.died" for finding in error.findings):
            raise
        first = error.findings[0]
    result = _run(path, graph, target, arguments(target, optimise="Size", ignore=ignore), folder, seconds, memory_bytes)
    return result._replace(findings=(said.second_try(first),))


def _run(path: Path, graph: Graph, target: Target, options: list[str], folder: Path, seconds: float,
         memory_bytes: int) -> _Result:
    """Run the compiler in ``folder`` and return what it left there."""
    with Worker(f"Vela on {path.name}", memory_bytes=memory_bytes) as worker:
        try:
            status, message = worker.call(_RUN, _COMPILER, str(folder), options, seconds=seconds)
        except InternalError:
            raise
        except VitrifyError as error:
            raise TargetError(said.died(error.findings, path)) from error
        log = worker.log
    stem = Path(MODEL).stem
    model = folder / OUTPUT / f"{stem}_vela.tflite"
    if status != 0 or not model.exists():
        raise TargetError(said.refused(path, target, graph, status, message, log))
    return _Result(model, _text(folder / OUTPUT / f"{stem}_debug.xml"),
                   _text(folder / OUTPUT / f"{stem}_summary_{system_name(target)}.csv"), log, tuple(options))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _copy(source: Path, output: Path) -> None:
    with source.open("rb") as stream, atomic_writer(output) as out:
        while block := stream.read(_COPY_BYTES):
            out.write(block)


def _describe(model: Model, left: _Result, target: Target, ignored: tuple[str, ...]) -> Compiled:
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
    notes = (*left.findings, *said.cpu_nodes(placement), *said.known_faults(placed, version),
             *said.calls(calls, target), *said.no_cycles(lost, len(model.graphs)))
    return Compiled(output=None, target=target.name, placement=placement, estimate=latency,
                    memory=_memory(summary, compiled, left.model, target),
                    operators=tuple(_row(one, target) for one in placed), findings=tuple(notes), vela_version=version,
                    options=left.options, seconds=0.0, log=left.log[-_LOG_TAIL:])


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
    if one.place == "cpu":
        return cpu_seconds(one.node, target).likely * 1e3
    return npu_seconds(one.perf, target).likely * 1e3


def _row(one: Placed, target: Target) -> OperatorRow:
    macs = sum(row.macs for row in one.perf) if one.place == "npu" else node_macs(one.node)
    capacity = one.cycles * target.value("macs_per_cycle")
    return OperatorRow(node=one.node.name, operator=one.node.op.kind, placement=one.place, cycles=one.cycles,
                       ms=_milliseconds(one, target), macs=macs, utilisation=_share(macs, capacity),
                       dram_bytes=sum(row.dram_bytes for row in one.perf))


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
