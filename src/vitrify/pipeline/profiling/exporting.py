"""A profile for other tools: a table, a trace, and data that Google's Model Explorer shows on the nodes of the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from vitrify.core.files import atomic_writer
from vitrify.core.text import json_bytes
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow, MeasuredRow

Export = Callable[[ProfileResult], bytes]
"""Makes the content of a file of a profile."""

_SHARED = ("index", "node", "operator", "placement", "bound", "share", "macs", "bytes", "input_bytes", "output_bytes",
           "weight_bytes", "dtype")
_MEASURED = ("median_ms", "min_ms", "p90_ms", "p99_ms", "deviation_ms", "runs")
_ESTIMATED = ("low_ms", "high_ms", "cycles", "compute_cycles", "near_cycles", "far_cycles", "near_bytes", "far_bytes",
              "utilisation", "partition", "source")


def write_exports(result: ProfileResult, files: Mapping[str, Path | None], page: Export | None = None) -> None:
    """Write what is asked for, each file whole or not at all, and note it in the result; ``page`` makes a report."""
    makers = EXPORTS if page is None else {**EXPORTS, "report": page}
    for kind, path in files.items():
        if path is None:
            continue
        data = makers[kind](result)
        with atomic_writer(path) as stream:
            stream.write(data)
        result.exports[kind] = str(path)


def table(result: ProfileResult) -> bytes:
    """Return a row for each operator and for what is none's; the column of times says whether they were measured."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    measured = result.basis == "measured"
    extra = _MEASURED if measured else _ESTIMATED
    writer.writerow([*_SHARED, "shape", "origin", f"{result.basis}_ms", *extra])
    for row in result.operators:
        more: list[Any] = []
        if isinstance(row, MeasuredRow):
            plain = {} if row.time is None else msgspec.to_builtins(row.time)
            more = [plain.get(name, "") for name in _MEASURED]
        elif isinstance(row, EstimatedRow):
            more = [_cell(getattr(row, name)) for name in _ESTIMATED]
        writer.writerow([*(_cell(getattr(row, name)) for name in _SHARED), "x".join(map(str, row.shape)),
                         "; ".join(row.origin), _cell(row.time_ms), *more])
    for rest in result.overhead:
        cells = {"node": rest.what, "placement": "no operator's", f"{result.basis}_ms": rest.time_ms,
                 "cycles": rest.cycles}
        header = (*_SHARED, "shape", "origin", f"{result.basis}_ms", *extra)
        writer.writerow([_cell(cells.get(name)) for name in header])
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """A cell; text that a spreadsheet would take for a formula is kept from it."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def trace(result: ProfileResult) -> bytes:
    """Return the operators one after another, as Chrome's trace format has them, a track for each place."""
    tracks = {name: number for number, name in enumerate(dict.fromkeys(
        row.placement for row in result.operators if row.time_ms), 1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"{Path(result.model).name}, {result.basis}"}}]
    events += [{"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": name}}
               for name, number in tracks.items()]
    at = 0.0
    for row in result.operators:
        if not row.time_ms:
            continue
        told = {"node": row.node, "bytes": row.bytes, "macs": row.macs, "origin": ", ".join(row.origin[:8]),
                "waits for": row.bound, "basis": result.basis}
        events.append({"ph": "X", "pid": 1, "tid": tracks[row.placement], "name": row.operator, "cat": row.placement,
                       "ts": at, "dur": row.time_ms * 1e3, "args": told})
        at += row.time_ms * 1e3
    lives = result.memory.lives
    starts = _starts(result)
    for index, start in enumerate(starts):
        alive = sum(life.bytes for life in lives if life.first <= index <= life.last)
        events.append({"ph": "C", "pid": 1, "name": "bytes alive", "ts": start, "args": {"bytes": alive}})
    return json_bytes({"traceEvents": events, "displayTimeUnit": "ms",
                       "otherData": {"source": result.source, "basis": result.basis}})


def _starts(result: ProfileResult) -> list[float]:
    found, at = [], 0.0
    for row in result.operators:
        found.append(at)
        at += (row.time_ms or 0.0) * 1e3
    return found


HEAT = ({"stop": 0.0, "bgColor": "#fff7ec"}, {"stop": 0.5, "bgColor": "#fc8d59"},
        {"stop": 1.0, "bgColor": "#b30000", "textColor": "#ffffff"})


def explorer(result: ProfileResult) -> bytes:
    """Return node data for the profiled graph, by the number of the operator in it.

    Source: Model Explorer 0.1.34, node_data_builder.py: ``results`` of each graph by node id, ``gradient`` from 0 to 1.
    Its adapter for TFLite calls operators by their number, and a graph without a name ``serving_default``.
    """
    results = {str(row.index): {"value": row.time_ms} for row in result.operators if row.time_ms is not None}
    name = result.graph or "serving_default"
    return json_bytes({name: {"name": f"{result.basis} ms", "results": results, "gradient": list(HEAT)}})


EXPORTS: dict[str, Export] = {"csv": table, "trace": trace, "model-explorer": explorer}
"""What a profile can be written as."""
