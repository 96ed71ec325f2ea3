"""Convert each model of the zoo, run it in LiteRT beside ONNX Runtime, and write the table docs/zoo.md.

    python check.py [NAME ...] [--table FILE]

Conversions are whole processes of the command line, one after the other. Rows of models that are not named are kept
from the last run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from table import CACHE, EXPORTERS, FAMILIES, ROOT, Entry, entries

from vitrify import runtimes
from vitrify.core.errors import VitrifyError
from vitrify.verify.metrics import Sums

LEAST_DB = 80.0
"""Two float computations of one model: 80 dB are an error of one in ten thousand."""
SAME_ROW = 1e-3
"""In deviations of an output: what differs less is the same detection."""
SECONDS = 600
VITRIFY = Path(sys.executable).parent / "vitrify"
RESULTS = CACHE / "results"

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Row:
    """What came out for one model. ``outcome``: ok, refused, failed or missing; ``worst_db``: of its worst output."""

    name: str
    outcome: str
    reason: str = ""
    worst_db: float | None = None
    operators: int = 0
    transposes: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    kinds: dict[str, int] | None = None


def convert(entry: Entry, output: Path) -> Row:
    """Convert with the command line, as a user does, and count what was written."""
    command = [str(VITRIFY), "convert", str(entry.onnx), "-o", str(output), "--json"]
    before = os.times()
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Row(entry.name, "failed", f"not converted after {SECONDS} s")
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    try:
        answer = json.loads(child.stdout)
    except ValueError:
        return Row(entry.name, "failed", f"status {child.returncode}: {child.stderr.strip()[-300:]}")
    errors = [f for f in answer["findings"] if f["severity"] == "error"]
    if not answer["ok"]:
        outcome = "failed" if any(f["code"].startswith("internal") for f in errors) else "refused"
        return Row(entry.name, outcome, "; ".join(f"{f['headline']} [{f['code']}, {f['where']}]" for f in errors))
    kinds = answer["operators"]
    return Row(entry.name, "ok", "", None, sum(kinds.values()), answer["transposes"], seconds, answer["peak_bytes"],
               kinds)


def samples(entry: Entry) -> list[dict[str, np.ndarray]]:
    """Return the inputs that were kept with the model."""
    with np.load(entry.samples) as file:
        arrays = {i.name: file[i.name] for i in entry.inputs}
    return [{name: a[k] for name, a in arrays.items()} for k in range(len(next(iter(arrays.values()))))]


def in_order(expected: Arrays, got: Arrays, ranked: int) -> Arrays:
    """Return ``got`` with its ranked rows in the order of ``expected``: rows as close as a rounding may change places.

    Rows are those of all outputs with ``ranked`` rows together; each that differs takes the nearest among those.
    """
    names = [n for n, v in expected.items() if v.ndim == 3 and v.shape[1] == ranked]
    if not names:
        return got
    wanted, found = (np.concatenate([np.asarray(of[n][0], np.float64) / (expected[n].std() or 1) for n in names], -1)
                     for of in (expected, got))
    moved = np.nonzero(np.abs(wanted - found).max(-1) > SAME_ROW)[0]
    order, free = np.arange(ranked), list(moved)
    for row in moved:
        order[row] = free.pop(int(np.abs(found[free] - wanted[row]).max(-1).argmin()))
    return {n: v[:, order] if n in names else v for n, v in got.items()}


def compare(entry: Entry, file: Path) -> dict[str, float]:
    """Return the SQNR in dB of each output over all samples."""
    sums: dict[str, Sums] = {}
    with (runtimes.open(entry.onnx, seconds=SECONDS) as source,
          runtimes.open(file, kernels="optimized", seconds=SECONDS) as candidate):
        for sample in samples(entry):
            expected, got = source.run(sample), candidate.run(sample)
            got = in_order(expected, got, entry.ranked) if entry.ranked else got
            for name, value in expected.items():
                if not np.any(value):
                    raise ValueError(f"output '{name}' is all zeros in the source: nothing to compare")
                sums.setdefault(name, Sums()).add(np.asarray(value, np.float64), np.asarray(got[name], np.float64))
    return {name: s.sqnr_db for name, s in sums.items()}


def check(entry: Entry) -> Row:
    """Convert and compare one model."""
    if not entry.onnx.exists():
        return Row(entry.name, "missing", "not exported")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "model.tflite"
        row = convert(entry, output)
        if row.outcome != "ok":
            return row
        try:
            decibels = compare(entry, output)
        except (VitrifyError, ValueError, KeyError) as error:
            return Row(**{**asdict(row), "outcome": "failed", "reason": f"{type(error).__name__}: {error}"})
    worst = min(decibels, key=lambda n: decibels[n])
    bad = not decibels[worst] >= LEAST_DB
    reason = f"output '{worst}' has {decibels[worst]:.1f} dB, below {LEAST_DB:g}" if bad else ""
    return Row(**{**asdict(row), "outcome": "failed" if bad else "ok", "reason": reason,
                  "worst_db": min(decibels[worst], 999.0)})


def stored(rows: Iterable[Entry]) -> list[tuple[Entry, Row]]:
    """Return each model with its last result, where it has one."""
    found = []
    for entry in rows:
        file = RESULTS / f"{entry.name}.json"
        if file.exists():
            found.append((entry, Row(**json.loads(file.read_text()))))
    return found


def table(rows: list[tuple[Entry, Row]]) -> str:
    """Return docs/zoo.md."""
    good = sum(r.outcome == "ok" for _, r in rows)
    lines = [
        "# Model zoo", "",
        "Generated by `make zoo`. Every model is exported from PyTorch to ONNX as its users export it, with nothing "
        "simplified afterwards unless the row says so, converted by `vitrify convert`, and run in LiteRT beside ONNX "
        "Runtime on seeded inputs. Weights are random and scaled like trained ones, so the figures show that a "
        "conversion is faithful, never how well a task is done.", "",
        f"{good} of {len(rows)} models convert and agree to {LEAST_DB:g} dB or better; "
        f"{sum(r.transposes == 0 for _, r in rows)} have no TRANSPOSE left. CPU seconds are those of the whole "
        f"`vitrify convert` process, once, on {processor()}, Python {platform.python_version()}.", ""]
    for family, heading in FAMILIES.items():
        members = [(e, r) for e, r in rows if e.family == family]
        if members:
            lines += [f"## {heading}", "",
                      "| model | exported by | dB | operators | TRANSPOSE | CPU s | peak MB |",
                      "|---|---|---:|---:|---:|---:|---:|", *(line(e, r) for e, r in members), ""]
    lines += ["dB: signal to error of the worst output, in float; 999 where every value is equal. Detections that a "
              "model ranks by score are compared as a set: scores as close as a rounding may change places.", ""]
    lines += [f"* `{k}`: {v}" for k, v in EXPORTERS.items() if any(e.exporter == k for e, _ in rows)]
    return "\n".join(lines) + "\n"


def line(entry: Entry, row: Row) -> str:
    """Return one line of the table; a model that does not pass says why in the place of its figures."""
    title = f"{entry.title}{f' ({entry.note})' if entry.note else ''}"
    if row.outcome != "ok":
        reason = row.reason.replace("|", "\\|").replace("\n", " ")
        return f"| {title} | {entry.exporter} | **{row.outcome}**: {reason[:200]} | | | | |"
    return (f"| {title} | {entry.exporter} | {row.worst_db:.0f} | {row.operators} | {row.transposes} | "
            f"{row.seconds:.1f} | {row.peak_bytes / 1e6:.0f} |")


def processor() -> str:
    """Return what the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()


def main() -> int:
    """Check the models named on the command line, all without names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "zoo.md")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    bad = 0
    for entry in entries(arguments.names):
        row = check(entry)
        (RESULTS / f"{entry.name}.json").write_text(json.dumps(asdict(row)))
        bad += row.outcome != "ok"
        print(f"{entry.name:24} {row.outcome:8} {row.worst_db or 0:6.1f} dB {row.operators:5} operators "
              f"{row.transposes:4} transposes {row.seconds:6.1f} s  {row.reason[:300]}", flush=True)
    arguments.table.write_text(table(stored(entries())))
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
