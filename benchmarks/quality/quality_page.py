"""The section of docs/benchmarks.md that shows what int8 files keep."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models import CALIBRATION, HELD_OUT, ROOT
from sections import put_section

PAGE: Path = ROOT / "docs" / "benchmarks.md"
Results = Mapping[str, Mapping[str, Any]]


def write_page(results: Results, ours: Sequence[str], peers: Sequence[str]) -> None:
    """Write the tables, and print the short one; other sections of the page stay."""
    there = {m: r for m, r in results.items() if r}
    short = summary(there, ours, peers)
    lines = ["# Int8 quality beside other tools", "",
             f"Each tool calibrates on the same {CALIBRATION} samples; its file runs on {HELD_OUT} others, and its "
             "answers are held against ONNX Runtime's float answers through the source model's own outputs (those of "
             "Vitrify joined as `vitrify.run` gives them): SQNR in dB of the worst output. ai-edge-quantizer gets two "
             "float files, Vitrify's and the one of onnx2tf's direct path, and the better result counts. The zoo's "
             "weights are random and scaled like trained ones. `make bench-quality` measures and writes this section.",
             "",
             "## In short", "", *short, "", "## Model by model", "", "SQNR in dB (CPU seconds from ONNX to int8)", "",
             *rows(there, ours, peers)]
    put_section(PAGE, "quality", lines)
    print("\n".join(short))


def best_peer(found: Mapping[str, Any], peers: Sequence[str]) -> Any:
    """The peers' best result for a model, None when none of them has one."""
    good = [found[p] for p in peers if p in found and found[p].decibels]
    return max(good, key=lambda o: o.worst, default=None)


def summary(results: Results, ours: Sequence[str], peers: Sequence[str]) -> list[str]:
    """How much more each effort keeps than each peer, and than the better of them."""
    lines = ["| effort | against | models | median gain, dB | least gain | more than 0.5 dB lower | CPU time, median "
             "of peer : Vitrify |", "|---|---|---:|---:|---:|---|---:|"]
    for tool in ours:
        for name, chosen in (*((p, [p]) for p in peers), ("the best of them", list(peers))):
            pairs = [(m, f[tool], o) for m, f in results.items() if tool in f and f[tool].decibels
                     and (o := best_peer(f, chosen)) is not None]
            if not pairs:
                continue
            gains = {m: mine.worst - theirs.worst for m, mine, theirs in pairs}
            lower = [f"{m} ({g:+.1f})" for m, g in sorted(gains.items(), key=lambda x: x[1]) if g < -0.5]
            times = [theirs.cpu_seconds / mine.cpu_seconds for _, mine, theirs in pairs if mine.cpu_seconds]
            lines.append(f"| {tool} | {name} | {len(pairs)} | {statistics.median(gains.values()):+.2f} | "
                         f"{min(gains.values()):+.1f} | {', '.join(lower) or 'none'} | "
                         f"{statistics.median(times):.1f} |")
    return lines


def rows(results: Results, ours: Sequence[str], peers: Sequence[str]) -> list[str]:
    """A table with a row for each model."""
    tools = [t for t in (*ours, *peers) if any(t in f for f in results.values())]
    lines = [f"| model | {' | '.join(tools)} |", f"|---|{'---:|' * len(tools)}"]
    return [*lines, *(f"| {m} | {' | '.join(cell(f.get(t)) for t in tools)} |" for m, f in results.items())]


def cell(outcome: Any) -> str:
    """One result in a few characters."""
    if outcome is None:
        return ""
    if not outcome.decibels:
        return f"no file ({outcome.cpu_seconds:.0f})"
    return f"{outcome.worst:.1f} ({outcome.cpu_seconds:.1f})"
