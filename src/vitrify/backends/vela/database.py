"""Reads what Vela leaves behind: the debug database (tables of text in an XML file) and the one-row summary."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from typing import NamedTuple

Row = dict[str, str]

_TABLE = re.compile(r'<table name="(\w+)">\s*<!\[CDATA\[\n(.*?)\]\]>\s*</table>\n', re.DOTALL)


_FAR = ("Dram", "OffChipFlash")
"""The memories outside the chip, one of which a system has."""


_NEAR = ("Sram", "OnChipFlash")
"""The memories on the chip."""


class Perf(NamedTuple):
    """One scheduled operator: cycles in all, of computing, and of each memory (they overlap)."""

    id: str
    source: str
    operator: str
    cycles: int
    npu_cycles: int
    sram_cycles: int
    far_cycles: int
    macs: int
    far_bytes: int
    near_bytes: int = 0
    name: str = ""

    @property
    def on_cpu(self) -> bool:
        """True for an operator that was only passed through."""
        return self.operator == "Passthrough"

    def cycles_with_far(self, slower: float) -> float:
        """Return the cycles when far memory is ``slower`` times slower, the schedule being the same."""
        bound = max(self.npu_cycles, self.sram_cycles, self.far_cycles)
        return self.cycles + max(self.npu_cycles, self.sram_cycles, self.far_cycles * slower) - bound


class Database(NamedTuple):
    """The parts of the debug database that placement and cost need.

    keys: source id -> index of the operator in the source graph.
    perf: source id -> its scheduled operators; "" holds those that the compiler made by itself.
    streams: source id -> the number of the command stream (one per NPU operator of the result) that runs it.
    tensors: the rows of the tensors that were placed.
    """

    keys: dict[str, int]
    perf: dict[str, list[Perf]]
    streams: dict[str, int]
    tensors: tuple[Row, ...] = ()


def read_database(text: str) -> Database:
    """Return the database in ``text``; what is missing there is empty here."""
    tables = tables_in(text)
    keys = {row["id"]: number(row["ext_key"]) for row in tables.get("source", []) if row.get("ext_key", "") != ""}
    source_of = {row["id"]: row.get("source_id", "") for row in tables.get("optimised", [])}
    traffic = {row["id"]: (_bytes(row, _FAR), _bytes(row, _NEAR))
               for row in tables.get("perf_debug", []) if "id" in row}
    perf: dict[str, list[Perf]] = defaultdict(list)
    for row in tables.get("perf", []):
        source = row.get("source_id", "")
        perf[source if source in keys else ""].append(_perf(row, traffic.get(row["id"], (0, 0))))
    return Database(keys, dict(perf), _streams(tables, source_of, perf), tuple(tables.get("tensors", [])))


def tables_in(text: str) -> dict[str, list[Row]]:
    """Return every table of the database by its name."""
    return {name: _rows(body) for name, body in _TABLE.findall(text)}


def _streams(tables: dict[str, list[Row]], source_of: dict[str, str], perf: dict[str, list[Perf]]) -> dict[str, int]:
    """Say which command stream runs each source operator, by the queue and by what is fused into queued operators."""
    found: dict[str, int] = {}
    scheduled: dict[str, int] = {}
    for row in tables.get("queue", []):
        stream = number(row.get("cmdstream_id", ""))
        found.setdefault(source_of.get(row.get("optimised_id", ""), ""), stream)
        scheduled[row.get("scheduled_id", "")] = stream
    head_of = {row["id"]: row["group_id"] for row in tables.get("group", [])}
    for source, rows in perf.items():
        for row_ in rows:
            head = head_of.get(row_.id)
            if head is not None and not row_.on_cpu:
                found.setdefault(source, scheduled.get(head, 0))
    found.pop("", None)
    return found


def _perf(row: Row, moved: tuple[int, int]) -> Perf:
    return Perf(row["id"], row.get("source_id", ""), row.get("operator", ""), number(row.get("op_cycles", "")),
                number(row.get("npu_cycles", "")), number(row.get("Sram_ac", "")),
                sum(number(row.get(f"{memory}_ac", "")) for memory in _FAR),
                number(row.get("mac_count", "")), *moved, row.get("name", ""))


def _bytes(row: Row, memories: tuple[str, ...]) -> int:
    return sum(number(value) for name, value in row.items()
               if name.startswith(memories) and name.endswith(("_read", "_write")))


def _rows(body: str) -> list[Row]:
    """Parse one table. Names are the user's and may hold the separator: a row too long has its name put together."""
    lines = csv.reader(io.StringIO(body))
    header = next(lines, [])
    at = header.index("name") if "name" in header else len(header)
    rows = []
    for cells in lines:
        extra = len(cells) - len(header)
        if extra > 0:
            cells[at:at + extra + 1] = [",".join(cells[at:at + extra + 1])]
        if len(cells) == len(header):
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def number(text: str) -> int:
    """Return a whole number out of a cell; 0 for an empty cell or anything else."""
    try:
        return int(float(text))
    except ValueError:
        return 0


def read_summary(text: str) -> Row:
    """Return the row of the summary file; empty when there is none."""
    return next(iter(csv.DictReader(io.StringIO(text))), {})


def unseen(summary: Row, database: Database) -> list[Perf]:
    """Return one row for the cycles that the summary has and the database has not; none when they agree.

    In a model of several graphs the compiler keeps the figures per operator of the last one only.
    """
    rows = [row for listed in database.perf.values() for row in listed]
    total = number(summary.get("cycles_total", ""))
    rest = total - sum(row.cycles for row in rows)
    if rest <= total // 100 + len(rows):      # every operator on the CPU counts as one cycle in the total
        return []
    return [Perf("", "", "", rest, number(summary.get("cycles_npu", "")) - sum(row.npu_cycles for row in rows),
                 number(summary.get("cycles_sram_access", "")) - sum(row.sram_cycles for row in rows),
                 number(summary.get("cycles_dram_access", "")) - sum(row.far_cycles for row in rows),
                 number(summary.get("nn_macs", "")) - sum(row.macs for row in rows), 0)]
