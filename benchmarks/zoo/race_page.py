"""The section of docs/benchmarks.md that shows the race."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from sections import put_section
from table import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
OURS = "vitrify"
SHOWN = {"vitrify": "Vitrify", "onnx2tf": "onnx2tf, direct", "onnx2tf_tensorflow": "onnx2tf, TensorFlow",
         "litert_torch": "litert-torch"}


def write_page(outcomes: Sequence[Any]) -> None:
    """Write the tables; other sections of the page stay."""
    models = list(dict.fromkeys(o.model for o in outcomes))
    by_key = {(o.tool, o.model): o for o in outcomes}
    peers = [t for t in SHOWN if t != OURS and any(o.tool == t for o in outcomes)]
    lines = ["# Conversion beside other tools", "",
             "ONNX (for litert-torch: the PyTorch module) to float TFLite, the whole process from its start: CPU "
             "seconds of all its threads and children, and the peak of resident memory. litert-torch builds the module "
             "in the same process, as its users do. `make zoo bench` measures and writes this page; a peer's figure is "
             "measured once and kept, Vitrify's is the median of its runs.", "",
             f"Measured on {os.cpu_count()} cores of {processor()}, Python {platform.python_version()}, Linux. A file "
             "counts only when LiteRT loads and allocates it.", "", "## In short", "",
             *summary(models, peers, by_key), "",
             "## Model by model", "", *rows(models, peers, by_key), "", *failures(outcomes)]
    put_section(PAGE, "race", lines)


def processor() -> str:
    """Return the processor's name."""
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def summary(models: Iterable[str], peers: Iterable[str], by_key: dict[tuple[str, str], Any]) -> list[str]:
    """Return a table with a row for each peer."""
    lines = ["| peer | models both convert | median of CPU seconds, peer : Vitrify | least | memory, median | least | "
             "more transposes in Vitrify's |", "|---|---|---|---|---|---|---|"]
    for peer in peers:
        pairs = [(by_key[OURS, m], by_key[peer, m]) for m in models if (peer, m) in by_key]
        good = [(ours, theirs) for ours, theirs in pairs if not ours.reason and not theirs.reason]
        if good:
            speed = [theirs.cpu_seconds / ours.cpu_seconds for ours, theirs in good]
            memory = [theirs.peak_mb / ours.peak_mb for ours, theirs in good]
            more = [ours.model for ours, theirs in good if ours.transposes > theirs.transposes]
            lines.append(f"| {SHOWN[peer]} | {len(good)} of {len(pairs)} "
                         f"| {statistics.median(speed):.1f} | {min(speed):.1f} | {statistics.median(memory):.1f} "
                         f"| {min(memory):.1f} | {', '.join(more) or 'none'} |")
    return lines


def rows(models: Iterable[str], peers: Sequence[str], by_key: dict[tuple[str, str], Any]) -> list[str]:
    """Return a table with a row for each model."""
    tools = [OURS, *peers]
    lines = ["CPU seconds / peak MB / operators, of them TRANSPOSE", "",
             f"| model | {' | '.join(SHOWN[t] for t in tools)} |", f"|---|{'---|' * len(tools)}"]
    for model in models:
        cells = [cell(by_key.get((tool, model))) for tool in tools]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return lines


def cell(outcome: Any) -> str:
    """Return one result in a few characters."""
    if outcome is None:
        return "not run"
    if outcome.reason:
        return f"fails ({outcome.cpu_seconds:.0f} s)"
    return f"{outcome.cpu_seconds:.2f} / {outcome.peak_mb:.0f} / {outcome.operators}, {outcome.transposes}"


def failures(outcomes: Iterable[Any]) -> list[str]:
    """Return what those that failed said last."""
    failed = [o for o in outcomes if o.reason]
    if not failed:
        return []
    return ["## What failed", "", *(f"- {o.model}, {SHOWN[o.tool]}: `{clean(o.reason)}`" for o in failed)]


def clean(text: str) -> str:
    """Return a message on one line without this machine's paths."""
    return text.replace(str(ROOT), ".").replace("`", "'").replace("\n", " ")
