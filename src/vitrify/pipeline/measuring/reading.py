"""Reads what TFLite's benchmark program prints: the average latency, and the operators' times in text or CSV.

Source: the program's documentation in TensorFlow's tree, tensorflow/lite/tools/benchmark.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vitrify.core.errors import DataError

MOST_BYTES, MOST_ROWS = 16 << 20, 100_000

_AVERAGE = re.compile(r"Inference \(avg\):\s*([0-9.]+(?:e[+-]?\d+)?)\s*(ms)?")
_THREADS = re.compile(r"(?:Num threads|#threads used for CPU inference|num_threads):?\s*\[?(\d+)", re.IGNORECASE)
_RUNS = "Operator-wise Profiling Info for Regular Benchmark Runs"
_HEADER = re.compile(r"\[?node type\]?", re.IGNORECASE)
_GAP = re.compile(r"\s*\t\s*|\s{2,}")
_NPU = re.compile(r"neutron|ethos|vx ?delegate|vsi|npu", re.IGNORECASE)
_DELEGATE = re.compile(r"external delegate|external_delegate|neutron ?delegate|ethos-?u ?delegate|vx ?delegate",
                       re.IGNORECASE)
_SETTING_UP = ("ModifyGraphWithDelegate", "AllocateTensors")
_INSIDE = ("Delegate/", "LiteRT::")
"""Rows that stand inside another row, or that are the runtime's own."""


class OperatorTime(NamedTuple):
    """The average time of one operator in a run; ``side`` is where it ran."""

    kind: str
    name: str
    ms: float
    side: str


class BoardRun(NamedTuple):
    """What a run on a board took. ``ms`` is None where only operators are told, ``threads`` where nobody says;
    ``side`` is where it ran, empty where that is not told."""

    ms: float | None
    threads: int | None
    operators: tuple[OperatorTime, ...]
    side: str


def read_file(path: Path) -> BoardRun:
    """Return the run that a file tells of.

    Raises:
        DataError: it is not there, or too large, or holds neither a latency nor operators.
    """
    if not path.is_file():
        raise DataError.of("measure.no-file", f"there is no file {path}", where=str(path),
                           help="keep what benchmark_model prints on the board: benchmark_model … | tee log.txt")
    if path.stat().st_size > MOST_BYTES:
        raise DataError.of("measure.too-large", f"{path.name} has {path.stat().st_size:,} bytes, "
                           f"{MOST_BYTES:,} is the most", where=str(path), why="a benchmark prints far less",
                           help="give the output of one run of benchmark_model")
    found = read_run(path.read_text(encoding="utf-8", errors="replace"))
    if found.ms is None and not found.operators:
        raise DataError.of("measure.nothing", f"no latency and no operator's time in {path.name}", where=str(path),
                           why="it has no line 'Inference (avg)' and no table with '[node type]' and '[avg ms]'",
                           help="give what benchmark_model prints, with --enable_op_profiling=true for operators, or "
                                "the CSV that it writes; or type the latency in: --ms N")
    return found


def read_run(text: str) -> BoardRun:
    """Return the run that ``text`` tells of: the regular runs, not what setting up took."""
    averages = list(_AVERAGE.finditer(text))
    ms = None if not averages else float(averages[-1][1]) * (1.0 if averages[-1][2] else 1e-3)
    threads = _THREADS.search(text)
    regular = text[text.rfind(_RUNS):] if _RUNS in text else text
    rows = tuple(_operators(regular.splitlines()))
    side = "npu" if _DELEGATE.search(text) or any(row.side == "npu" for row in rows) else "cpu"
    return BoardRun(ms, int(threads[1]) if threads else None, rows, side)


def _operators(lines: Sequence[str]) -> Iterator[OperatorTime]:
    """The rows of the first table that has operators."""
    for at, line in enumerate(lines):
        if not _HEADER.search(line) or "avg" not in line.lower():
            continue
        comma = line.count(",") > 2
        columns = [_plain(cell) for cell in _cells(line, comma)]
        found = list(_rows(lines[at + 1:at + 1 + MOST_ROWS], columns, comma))
        if found:
            yield from found
            return


def _rows(lines: Sequence[str], columns: Sequence[str], comma: bool) -> Iterator[OperatorTime]:
    wanted = {name: index for index, name in enumerate(columns)}
    kind, average, name = wanted.get("node type"), wanted.get("avg ms"), wanted.get("name")
    if kind is None or average is None:
        return
    for line in lines:
        cells = _cells(line, comma, len(columns))
        if len(cells) <= average:
            if line.strip():
                continue
            return
        operator, time = cells[kind].strip(), _number(cells[average])
        title = cells[name].strip() if name is not None and name < len(cells) else ""
        if time is None or operator in _SETTING_UP or operator.startswith(_INSIDE) or title.startswith(_INSIDE):
            continue
        yield OperatorTime(operator, title, time, "npu" if _NPU.search(operator) else "cpu")


def _cells(line: str, comma: bool, most: int = 0) -> list[str]:
    """Split one line; a name that holds the separator stays whole, since it is the last column."""
    if comma:
        cells = next(csv.reader(io.StringIO(line), skipinitialspace=True), [])
        return [*cells[:most - 1], ",".join(cells[most - 1:])] if most and len(cells) > most else cells
    text = line[line.index("\t"):] if "\t" in line else line
    return _GAP.split(text.strip(), maxsplit=max(most - 1, 0))


def _plain(cell: str) -> str:
    return cell.strip().strip("[]").lower().replace("_", " ")


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
