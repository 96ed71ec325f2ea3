"""The section of docs/benchmarks.md that shows the race."""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from measure import machine
from sections import put_section
from table import ROOT

import vitrify

PAGE = ROOT / "docs" / "benchmarks.md"
OURS = "vitrify"
SHOWN = {"vitrify": "Vitrify", "onnx2tf": "onnx2tf, direct", "onnx2tf_unsimplified": "onnx2tf, direct, -nuo",
         "onnx2tf_tensorflow": "onnx2tf, TensorFlow",
         "litert_torch": "litert-torch"}


Results = Mapping[tuple[str, str], Any]
"""Outcomes by tool and model."""


def write_page(outcomes: Sequence[Any], limit: int) -> None:
    """Write the tables; other sections of the page stay. ``limit``: CPU seconds after which a tool was stopped."""
    models = list(dict.fromkeys(o.model for o in outcomes))
    by_key = {(o.tool, o.model): o for o in outcomes}
    peers = [t for t in SHOWN if t != OURS and any(o.tool == t for o in outcomes)]
    lines = ["# Conversion beside other tools", "",
             f"{len(models)} models of the zoo from ONNX (for litert-torch: the PyTorch module) to float TFLite, "
             "the whole process from its start: CPU seconds of all its threads and children, and the peak of resident "
             "memory. litert-torch builds the module in the same process, as its users do; making its random weights "
             "is not counted. Each tool runs with its defaults, in an environment of its own, activated; `-nuo` leaves "
             "out onnxsim, with which onnx2tf begins else. `make zoo` "
             "and then `make bench-zoo` measure and write this section. A peer's figure is of one run and "
             "kept; Vitrify's own column is the median of its runs, and ratios are to its runs right before and "
             f"after the peer's. A tool is stopped after {limit} CPU seconds.", "",
             f"Measured on {machine()}: Vitrify {vitrify.__version__}, {versions(peers)}. A file counts only when "
             "LiteRT loads and allocates it; whether a peer's file computes the right values is not looked at.", "",
             "## In short", "",
             *summary(models, peers, by_key), "",
             *transposes(models, peers, by_key), "",
             "## Model by model", "", *rows(models, peers, by_key), "", *failures(outcomes)]
    put_section(PAGE, "race", lines)


def versions(peers: Iterable[str]) -> str:
    """Return the versions that the environments of the peers are made of."""
    asked = tomllib.loads((ROOT / "benchmarks" / "peers.toml").read_text())
    return "; ".join(f"{SHOWN[p]}: {', '.join(asked[p]['requirements']).replace('==', ' ')}"
                     for p in peers if p in asked)


def pairs(models: Iterable[str], peer: str, by_key: Results) -> list[tuple[Any, Any]]:
    """Return Vitrify's outcome and a peer's for each model that both convert."""
    found = [(by_key[OURS, m], by_key[peer, m]) for m in models if (peer, m) in by_key]
    return [(ours, theirs) for ours, theirs in found if not ours.reason and not theirs.reason]


def summary(models: Sequence[str], peers: Iterable[str], by_key: Results) -> list[str]:
    """Return a table with a row for each peer."""
    lines = ["| peer | converts | median of CPU seconds, peer : Vitrify | least | most | memory, median | least |",
             "|---|---|---|---|---|---|---|"]
    for peer in peers:
        good = pairs(models, peer, by_key)
        if good:
            run = sum((peer, m) in by_key for m in models)
            speed = sorted((theirs.cpu_seconds / (theirs.beside or ours.cpu_seconds), ours.model)
                           for ours, theirs in good)
            memory = sorted((theirs.peak_mb / ours.peak_mb, ours.model) for ours, theirs in good
                            if ours.peak_mb and theirs.peak_mb)       # a very short run may end before it is looked at
            lines.append(f"| {SHOWN[peer]} | {len(good)} of {run} tried | {middle(speed):.1f} | {named(speed[0])} "
                         f"| {named(speed[-1])} | {middle(memory):.1f} | {named(memory[0])} |")
    return lines


def middle(found: Iterable[tuple[float, str]]) -> float:
    """Return the median."""
    return statistics.median(value for value, _ in found)


def named(found: tuple[float, str]) -> str:
    """Return a figure with its model."""
    return f"{found[0]:.1f} ({found[1]})"


def transposes(models: Sequence[str], peers: Sequence[str], by_key: Results) -> list[str]:
    """Return a table of the TRANSPOSEs left, with a row for each model where any tool leaves one."""
    tools = [OURS, *peers]
    left = {(t, m): by_key[t, m].transposes for t in tools for m in models
            if (t, m) in by_key and not by_key[t, m].reason}
    best = {m: min((left[t, m] for t in peers if t.startswith("onnx2tf") and (t, m) in left), default=None)
            for m in models}
    more = [f"{m} ({left[OURS, m]}, {b})" for m, b in best.items() if b is not None and left.get((OURS, m), 0) > b]
    none = [sum(left.get((t, m)) == 0 for m in models) for t in tools]
    lines = ["## TRANSPOSEs left", "",
             "Models without any: " + ", ".join(f"{SHOWN[t]} {n} of {sum((t, m) in left for m in models)}"
                                                for t, n in zip(tools, none, strict=True)) + ".", "",
             f"Models where Vitrify leaves more than the better of onnx2tf's paths: {', '.join(more) or 'none'}.", "",
             f"| model | {' | '.join(SHOWN[t] for t in tools)} |", f"|---|{'---:|' * len(tools)}"]
    for model in models:
        counts = [left.get((t, model)) for t in tools]
        if any(counts):
            lines.append(f"| {model} | {' | '.join('' if c is None else str(c) for c in counts)} |")
    return lines


def rows(models: Iterable[str], peers: Sequence[str], by_key: Results) -> list[str]:
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
