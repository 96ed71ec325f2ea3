"""Float conversion of the zoo, side by side with the peers: whole processes, CPU seconds and peak memory.

    python benchmarks/zoo/race.py [--models NAME ...] [--tools NAME ...] [--runs N] [--again]

A peer's result is kept under .cache/bench/zoo, by its requirements and the model's content, and measured once:
TensorFlow takes minutes a model. Vitrify is measured anew each time, and right before and after a peer. Afterwards
docs/benchmarks.md is written; ``--page`` writes it from what is kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from table import ROOT, Entry, entries

sys.path.insert(0, str(ROOT / "benchmarks"))

from measure import measure
from race_page import write_page
from run import VITRIFY, last_line, peer

RESULTS = ROOT / ".cache" / "bench" / "zoo"
CPU_SECONDS, SECONDS = 400, 1800
"""CPU seconds and seconds after which a tool is stopped."""
REVISIONS = {"onnx2tf": 1, "onnx2tf_unsimplified": 1, "onnx2tf_tensorflow": 1, "litert_torch": 2}
"""To be raised when a peer is run in another way: kept results of another revision are measured again."""
NOT_COUNTED = re.compile(r"^weights: ([\d.]+) CPU seconds$", re.MULTILINE)
"""What a model of the zoo costs and a user's does not."""
OURS = "vitrify"
TOOLS = (OURS, "onnx2tf", "onnx2tf_unsimplified", "onnx2tf_tensorflow", "litert_torch")
ENVIRONMENTS = {"onnx2tf_unsimplified": "onnx2tf"}
"""Where a tool runs, when that is not named as the tool is."""
ONNX2TF = {"onnx2tf": ["-tb", "flatbuffer_direct"], "onnx2tf_unsimplified": ["-tb", "flatbuffer_direct", "-nuo"],
           "onnx2tf_tensorflow": ["-tb", "tf_converter"]}
"""The options of onnx2tf's ways; ``-nuo`` leaves out onnxsim, with which it begins else."""


@dataclass(frozen=True)
class Outcome:
    """What one tool did with one model. ``reason`` says why there is no file that LiteRT takes; empty when there is.

    ``beside`` are Vitrify's CPU seconds right before and after a peer's run: both see the same load of the machine.
    """

    tool: str
    model: str
    cpu_seconds: float
    peak_mb: float
    operators: int = 0
    transposes: int = 0
    reason: str = ""
    beside: float = 0.0


def command(tool: str, entry: Entry, work: Path) -> tuple[list[str], str]:
    """Return the command that converts a model, and a pattern for the file that it writes into ``work``."""
    if tool == OURS:
        return [VITRIFY, "convert", str(entry.onnx), "-o", str(work / "out.tflite")], "out.tflite"
    if tool == "litert_torch":
        script = ROOT / "benchmarks" / "zoo" / "litert_torch_float.py"
        return [str(peer(tool) / "python"), str(script), entry.name, str(work / "out.tflite")], "out.tflite"
    copy = work / "copy.onnx"               # onnx2tf writes over the file that it reads
    shutil.copyfile(entry.onnx, copy)
    program = peer(ENVIRONMENTS.get(tool, tool)) / "onnx2tf"
    return [str(program), "-i", str(copy), "-o", str(work / "out"), "-n", *ONNX2TF[tool]], "out/*_float32.tflite"


def once(tool: str, entry: Entry) -> Outcome:
    """Run a tool on a model in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        words, pattern = command(tool, entry, Path(folder))
        done = measure(words, Path(folder), SECONDS, CPU_SECONDS)
        apart = sum(map(float, NOT_COUNTED.findall(done.output)))
        used = (tool, entry.name, round(done.cpu_seconds - apart, 3), round(done.peak_bytes / 1e6, 1))
        written = next(iter(Path(folder).glob(pattern)), None)
        if done.wall_seconds >= SECONDS or done.cpu_seconds >= CPU_SECONDS:
            return Outcome(*used, reason=f"stopped after {CPU_SECONDS} CPU seconds")
        if written is None:
            return Outcome(*used, reason=last_line(done))
        return Outcome(*used, **looked_at(written))


def looked_at(file: Path) -> dict[str, Any]:
    """Count a file's operators, and try whether LiteRT takes it."""
    script = ("import sys, json; from collections import Counter; from vitrify import tflite; "
              "from vitrify.runtimes.prepare import prepare; from pathlib import Path; p = Path(sys.argv[1]); "
              "m = tflite.read(p); "
              "c = Counter(n.op.kind for g in m.graphs for n in g); prepare(p); print(json.dumps(c))")
    found = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True)
    if found.returncode:
        lines = found.stderr.strip().splitlines()
        return {"reason": "LiteRT does not take the file: " + (lines[-1] if lines else "it died")[:160]}
    kinds = Counter(json.loads(found.stdout))
    return {"operators": sum(kinds.values()), "transposes": kinds["TRANSPOSE"]}


def kept(tool: str, entry: Entry) -> Path:
    """Where the result of a tool is kept."""
    asked = tomllib.loads((ROOT / "benchmarks" / "peers.toml").read_text()).get(ENVIRONMENTS.get(tool, tool))
    asked_of = json.dumps([REVISIONS.get(tool, 0), asked]).encode()
    stamp = hashlib.sha256(asked_of + entry.onnx.read_bytes()).hexdigest()[:16]
    return RESULTS / f"{tool}-{entry.name}-{stamp}.json"


def raced(tool: str, entry: Entry, runs: int, again: bool) -> Outcome:
    """Return what a tool does with a model: the median of ``runs`` for Vitrify, one run or the kept one for a peer."""
    path = kept(tool, entry)
    if tool == OURS and again:
        results = [once(tool, entry) for _ in range(runs)]
        middle = statistics.median(r.cpu_seconds for r in results)
        result = replace(results[-1], cpu_seconds=middle, peak_mb=max(r.peak_mb for r in results))
        keep(path, result)
    elif again or not path.exists():
        before, result, after = once(OURS, entry), once(tool, entry), once(OURS, entry)
        result = replace(result, beside=round((before.cpu_seconds + after.cpu_seconds) / 2, 3))
        keep(path, result)
    return Outcome(**json.loads(path.read_text()))


def keep(path: Path, outcome: Outcome) -> None:
    """Write an outcome, whole or not at all."""
    path.with_suffix(".part").write_text(json.dumps(asdict(outcome)))
    os.replace(path.with_suffix(".part"), path)


def main() -> int:
    """Race the chosen tools over the chosen models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="measure the peers anew")
    parser.add_argument("--kept", action="store_true", help="measure no peer: show the results there are")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from what is kept")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    present = [e for e in entries(arguments.models) if e.onnx.exists()]
    if not present:
        raise SystemExit("no model of the zoo is there: run `make zoo` first")
    outcomes = []
    for entry in present:
        for tool in arguments.tools:
            if (arguments.page or (arguments.kept and tool != OURS)) and not kept(tool, entry).exists():
                continue
            anew = not arguments.page if tool == OURS else arguments.again
            outcome = raced(tool, entry, arguments.runs, anew)
            outcomes.append(outcome)
            print(f"{entry.name:24} {tool:20} {outcome.cpu_seconds:8.2f} s {outcome.peak_mb:7.0f} MB "
                  f"{outcome.operators:5} ops {outcome.transposes:4} transposes  {outcome.reason}", flush=True)
    if OURS in arguments.tools and len(arguments.tools) > 1:
        write_page(outcomes, CPU_SECONDS)
    return int(any(o.reason for o in outcomes if o.tool == OURS))


if __name__ == "__main__":
    raise SystemExit(main())
