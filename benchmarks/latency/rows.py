"""The published latencies: which half a row belongs to, which model it means, or why it is not judged."""

from __future__ import annotations

import csv
import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BOARDS = {"i.MX 93": "imx93", "i.MX 95": "imx95", "iMX95": "imx95", "IMX95": "imx95", "i.MX 8M Plus": "imx8mp",
          "MCX": "mcxn947"}
BUILT = ("make", "zoo", "export", "file")


class Row(NamedTuple):
    """One published latency. ``recipe`` says how its model is built again; ``left`` why it is not judged."""

    model: str
    size: str
    precision: str
    board: str
    target: str
    side: str
    threads: int
    ms: float
    notes: str
    source: str
    recipe: Mapping[str, Any]
    left: str

    @property
    def first(self) -> bool:
        """True in the half that parameters may be fitted on."""
        return is_first(self.model)

    @property
    def group(self) -> str:
        """Where it ran: the chip with its NPU or its cores."""
        return f"{self.target} {self.side}"


def is_first(model: str) -> bool:
    """True for the half of the models whose name hashes to an even number: the first 32 bits of its SHA-256."""
    return int(hashlib.sha256(model.encode()).hexdigest()[:8], 16) % 2 == 0


def rows() -> list[Row]:
    """Return every published row."""
    table = tomllib.loads((HERE / "models.toml").read_text(encoding="utf-8"))
    with (HERE / "measured.csv").open(encoding="utf-8", newline="") as stream:
        return [_row(columns, table) for columns in csv.DictReader(stream)]


def judged() -> list[Row]:
    """Return the rows whose model is built again."""
    return [row for row in rows() if not row.left]


def _row(columns: Mapping[str, str], table: Mapping[str, Any]) -> Row:
    recipe = _recipe(columns, table)
    chip = next((chip for text, chip in BOARDS.items() if text in columns["board"]), "")
    left = recipe.get("left") or ("" if chip else "a board that is no target")
    return Row(columns["model"], columns["input_size"], columns["precision"], columns["board"], chip,
               "CPU" if columns["accelerator"].startswith("CPU") else "NPU", _threads(columns["accelerator"]),
               float(columns["ms"] or 0), columns["notes"], columns["source"], recipe, left)


def _recipe(columns: Mapping[str, str], table: Mapping[str, Any]) -> Mapping[str, Any]:
    for row in table["rows"]:
        if all(row[name] in columns[name] for name in row if name not in ("left", *BUILT)):
            return dict(row)
    name = columns["model"]
    if name in table["model"]:
        return dict(table["model"][name])
    return next(dict(other) for other in table["others"] if name.startswith(tuple(other["begins"])))


def _threads(accelerator: str) -> int:
    """Without a word the benchmark program runs one thread."""
    words = accelerator.split()
    return int(words[words.index("CPU") + 1]) if "CPU" in words[:-1] and words[1].isdigit() else 1
