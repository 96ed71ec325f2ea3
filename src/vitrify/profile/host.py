"""A model on this machine: LiteRT's own profiler, operator by operator, beside runs without it."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import Worker
from vitrify.core.progress import Reporter
from vitrify.ir import Graph, Node
from vitrify.profile.figures import quiet, time_row
from vitrify.profile.sizes import describe, share_out
from vitrify.profile.xnnpack import align, stretches
from vitrify.results.profiling import MeasuredRow, MeasuredRun, OverheadRow
from vitrify.runtimes.litert.spec import Event, Recorded, Spec

Array = np.ndarray[Any, np.dtype[Any]]

OPERATOR, DELEGATED, PLAIN = 2, 8, 1
"""Kinds of LiteRT's events (see ``runtimes.litert.native``)."""

RUNS = 30
"""Runs at least, where nobody says how many."""

_NATIVE = "vitrify.runtimes.litert.native"
_HALF = 0.5
"""Microseconds that are lost on average where a time is rounded down to whole ones, as XNNPACK's are."""

_AROUND = {"LiteRT::Run[buffer registration]": "LiteRT registers the buffers",
           "LiteRT::Run[Buffer sync]": "LiteRT hands the buffers back"}
_SURE = 0.9
"""Where fewer of XNNPACK's operators have a name that fits their node, the times of its nodes are said to be unsure."""


class HostOptions(NamedTuple):
    """How a model is run: with XNNPACK or with LiteRT's own kernels, how often, and how long at most.

    Without ``runs`` it is as often as the figures take to agree.
    """

    xnnpack: bool = True
    threads: int = 1
    runs: int | None = None
    warmup: int = 5
    most_seconds: float = 60.0


class HostProfile(NamedTuple):
    """What was measured."""

    rows: list[MeasuredRow]
    overhead: list[OverheadRow]
    run: MeasuredRun
    findings: list[Finding]


def profile_host(path: Path, graph: Graph, values: Mapping[str, Array], options: HostOptions,
                 reporter: Reporter) -> HostProfile:
    """Measure the file at ``path``, which holds ``graph``, on ``values`` by the names of its inputs.

    Where LiteRT gives no times of operators, the whole is measured, and a finding says why.

    Raises:
        VitrifyError: LiteRT cannot run the model.
    """
    kernels = "xnnpack" if options.xnnpack else "builtin"
    with Worker(f"LiteRT's profiler on {path.name}") as worker:
        try:
            recorded: Recorded = worker.call(
                f"{_NATIVE}:record", str(path.resolve()), kernels, options.threads, dict(values),
                options.runs or RUNS, options.warmup, options.most_seconds, options.runs is None,
                on_progress=reporter.advance)
        except VitrifyError as error:
            return _whole_only(path, graph, values, options, error)
    return _of(recorded, graph, options)


def _of(recorded: Recorded, graph: Graph, options: HostOptions) -> HostProfile:
    own, inside = _columns(recorded.events)
    owners, findings = _owners(graph, own, inside, recorded.events)
    times = recorded.table.astype(np.float64)
    delegated = [column for part in inside for column in part]
    times[:, delegated] += _HALF
    plain = time_row(recorded.plain)
    best = quiet(np.add(recorded.plain, recorded.timed)) if recorded.timed else np.zeros(0, np.int64)
    rows = [_row(index, node, own.get(index), owners.get(index, []), times, best, recorded.events)
            for index, node in enumerate(graph)]
    _say_fused(rows, list(graph))
    share_out(list(rows))
    columns = [*own.values(), *delegated]
    if len(best):             # both kinds of run at the same moments: what disturbs one disturbs the other
        plain.quiet_ms = float(np.asarray(recorded.plain)[best].mean()) * 1e3
    ratio = float(times[best][:, columns].sum(axis=1).mean()) / 1e3 / plain.quiet_ms if len(best) else None
    run = MeasuredRun(
        runtime=f"LiteRT {recorded.version}", kernels="XNNPACK" if options.xnnpack else "LiteRT's own",
        threads=options.threads, warmup=options.warmup, whole=plain, profiled=time_row(recorded.timed),
        sum_ratio=ratio,
        processor=processor(),
        method="LiteRT's profiler (its C interface), one run with it after each without; XNNPACK's times come in "
               "whole microseconds rounded down, to each of which half a one is added" if options.xnnpack else
               "LiteRT's profiler (its C interface), one run with it after each without")
    return HostProfile(rows, _overhead(recorded, times[best]), run, findings)


def _columns(events: Sequence[Event]) -> tuple[dict[int, int], list[list[int]]]:
    """The column of each node that has an event of its own, and those of each run of the delegate."""
    own: dict[int, int] = {}
    inside: list[list[int]] = []
    for column, event in enumerate(events):
        if event.type == OPERATOR and event.subgraph == 0:
            own[event.number] = column
        elif event.type == DELEGATED:
            if event.number == 0 or not inside:
                inside.append([])
            inside[-1].append(column)
    return own, inside


def _owners(graph: Graph, own: Mapping[int, int], inside: Sequence[Sequence[int]],
            events: Sequence[Event]) -> tuple[dict[int, list[int]], list[Finding]]:
    """Give the delegate's columns to nodes."""
    if not inside:
        return {}, []
    nodes = list(graph)
    parts = stretches(graph, [index not in own for index in range(len(nodes))])
    if len(parts) != len(inside):               # several are one for us, or the other way round
        parts, inside = [sorted(i for part in parts for i in part)], [[c for part in inside for c in part]]
    found: dict[int, list[int]] = defaultdict(list)
    unsure, count = 0.0, 0
    for part, columns in zip(parts, inside, strict=True):
        aligned = align([nodes[index] for index in part], [events[column].tag for column in columns])
        for column, owner in zip(columns, aligned.owners, strict=bool(part)):
            found[part[owner]].append(column)
        unsure += (1 - aligned.sure) * len(columns)
        count += len(columns)
    sure = 1 - unsure / max(count, 1)
    if sure >= _SURE:
        return found, []
    return found, [Finding(
        code="profile.unsure-nodes", severity=Severity.WARNING,
        headline=f"{sure:.0%} of XNNPACK's {count} operators fit the nodes that they stand beside",
        why="XNNPACK names its operators by kind only, and they are matched by their order",
        help="--no-xnnpack times each node by itself")]


def _row(index: int, node: Node, column: int | None, columns: Sequence[int], times: Array, best: Array,
         events: Sequence[Event]) -> MeasuredRow:
    row = MeasuredRow(index=index, node=node.name, operator=node.op.kind,
                      placement="cpu" if column is not None else "xnnpack" if columns else "fused")
    describe(row, node)
    used = [column] if column is not None else list(columns)
    if used and len(times):
        each = times[:, used].sum(axis=1)
        row.time_ms, row.time = float(each[best].mean()) / 1e3, time_row(each / 1e6)
        row.kernels = [events[c].tag for c in columns]
    return row


_FORWARD = frozenset({"PAD", "QUANTIZE", "DEQUANTIZE", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "TRANSPOSE"})
"""Nodes without time of their own that go into the node that reads them; others go into the one that they read."""


def _say_fused(rows: Sequence[MeasuredRow], nodes: Sequence[Node]) -> None:
    place = {node: index for index, node in enumerate(nodes)}
    for row, node in zip(rows, nodes, strict=True):
        if row.placement != "fused":
            continue
        before = [t.producer for t in node.inputs if t is not None and t.producer is not None]
        after = [user for t in node.outputs for user in t.users]
        order, forward = (*before, *after), node.op.kind in _FORWARD
        near = sorted(range(len(order)), key=lambda i: ((order[i] in after) is not forward,
                                                         abs(place[order[i]] - row.index)))
        row.into = next((rows[place[order[i]]].node for i in near if rows[place[order[i]]].placement != "fused"), "")


def _overhead(recorded: Recorded, times: Array) -> list[OverheadRow]:
    """What LiteRT spends around the operators."""
    if not len(times):
        return []
    around = [OverheadRow(what=_AROUND[e.tag], time_ms=float(times[:, c].mean()) / 1e3)
              for c, e in enumerate(recorded.events) if e.type == PLAIN and e.tag in _AROUND]
    whole = [c for c, e in enumerate(recorded.events) if e.type == PLAIN and e.tag == "Invoke"]
    inner = [c for c, e in enumerate(recorded.events) if e.type == DELEGATED or
             (e.type == OPERATOR and e.subgraph == 0)]
    if whole:
        between = times[:, whole[0]] - times[:, inner].sum(axis=1)
        around.append(OverheadRow(what="between the operators", time_ms=max(float(between.mean()), 0.0) / 1e3))
    return around


def _whole_only(path: Path, graph: Graph, values: Mapping[str, Array], options: HostOptions,
                error: VitrifyError) -> HostProfile:
    """Measure the whole model through LiteRT's Python interface."""
    from msgspec import structs

    from vitrify.runtimes.base import stamp

    spec = Spec(str(path.resolve()), stamp(path), "xnnpack" if options.xnnpack else "optimized", False, options.threads)
    with Worker(f"LiteRT on {path.name}") as worker:
        details = worker.call("vitrify.runtimes.litert.session:details", spec)
        arrays = [values[d["name"]] for d in details.inputs]
        seconds = worker.call("vitrify.runtimes.litert.session:timings", spec, arrays, options.runs or RUNS,
                              options.warmup)
    rows = []
    for index, node in enumerate(graph):
        row = MeasuredRow(index=index, node=node.name, operator=node.op.kind, placement="cpu")
        describe(row, node)
        rows.append(row)
    run = MeasuredRun(runtime=f"LiteRT {details.version}", kernels="XNNPACK" if options.xnnpack else "LiteRT's own",
                      threads=options.threads, warmup=options.warmup, whole=time_row(seconds), processor=processor(),
                      method="the whole model only")
    first = error.findings[0]
    told = [structs.replace(first, severity=Severity.WARNING, help=first.help or "the whole model is timed")]
    return HostProfile(rows, [], run, told)


def processor() -> str:
    """Return what this machine calls its processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()
