"""Quantize each model of the zoo, run every file in LiteRT's three sets of kernels, and write docs/zoo_int8.md.

    python int8.py [NAME ...] [--table FILE] [--widths int8,int16] [--compile TARGET]

Each model is converted and calibrated once, in a process of its own with limits, and quantized to int8 and to int8
weights with int16 activations. Rows of models that are not named are kept from the last run.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from check import Arrays, in_order, processor, samples
from table import CACHE, EXPORTERS, FAMILIES, ROOT, Entry, entries

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding

if TYPE_CHECKING:
    from vitrify.ir import Model
    from vitrify.quant import Statistics

WIDTHS = {"int8": "INT8", "int16": "INT8 weights, INT16 activations"}
KERNELS = ("reference", "optimized", "xnnpack")
CALIBRATED, HEAVY_MACS = 6, 1_000_000_000
"""Samples that calibrate a model: the kept ones and as many mixtures of them. A heavy one takes the kept ones only, is
compared on the first, and goes without the reference kernels, which take minutes for it."""
SECONDS, BYTES = 1500, 12 << 30
"""The limits of one model, everything together."""
RUN_SECONDS = 600
RESULTS = CACHE / "int8"


@dataclass
class Row:
    """What came out for one model at one width. ``outcome``: ok, refused, failed or missing.

    db: SQNR of each output over all samples; ran: by set of kernels, the SQNR of the worst output on the first sample,
    or why it did not run; npu: share of nodes and milliseconds, where it was compiled.
    """

    name: str
    width: str
    outcome: str = "ok"
    reasons: list[str] = field(default_factory=list)
    db: dict[str, float] = field(default_factory=dict)
    ran: dict[str, float | str] = field(default_factory=dict)
    operators: int = 0
    float_operators: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    wide: int = 0
    joints: int = 0
    seconds: float = 0.0
    npu: dict[str, Any] = field(default_factory=dict)


def drawn(entry: Entry, count: int) -> list[Arrays]:
    """Return calibration samples: the kept ones, and mixtures of two of them where the inputs are real numbers."""
    kept = samples(entry)
    made = list(kept[:count])
    generator = np.random.default_rng(0)
    while len(made) < count:
        one, other = (kept[i] for i in generator.permutation(len(kept))[:2]) if len(kept) > 1 else (kept[0], kept[0])
        share = np.float32(generator.uniform(0.6, 0.95))
        made.append({n: (share * v + (1 - share) * other[n]).astype(v.dtype) if v.dtype.kind == "f" else v
                     for n, v in one.items()})
    return made


def float_file(entry: Entry, folder: Path, steps: bool = False) -> tuple[Model, Path]:
    """Convert a model and bring it into integer forms, as `vitrify quantize` does; ``steps`` writes LSTMs out."""
    from vitrify import tflite
    from vitrify.core.progress import Silent
    from vitrify.passes import to_integer_forms
    from vitrify.pipeline.convert import ConvertOptions, float_model

    model, ledger = float_model(entry.onnx, ConvertOptions(), Silent())
    to_integer_forms(model, ledger, steps=steps)
    path = folder / f"float{'_steps' * steps}.tflite"
    tflite.write(model, path)
    return tflite.read(path), path


def calibrated(entry: Entry, model: Model, path: Path, folder: Path) -> Statistics:
    """Observe the float file on the samples."""
    from vitrify.data.binding import identity_interface
    from vitrify.pipeline.options import DataOptions
    from vitrify.quant import Recipe
    from vitrify.runtimes.litert.calibrate import calibrate

    data = folder / f"samples of {path.stem}"
    data.mkdir()
    for number, sample in enumerate(drawn(entry, CALIBRATED // 2 if is_heavy(model) else CALIBRATED)):
        np.savez(data / f"{number}.npz", **sample)
    opened = DataOptions(path=data).open(model.interface or identity_interface(model))
    return calibrate(path, opened, Recipe())


def quantized_file(entry: Entry, width: str) -> Path:
    """Return where the quantized model is kept; the rules of the targets are compared with compilers on these."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    return RESULTS / f"{entry.name}.{width}.tflite"


def is_heavy(model: Model) -> bool:
    """True for a model of many multiplications."""
    return sum(node.op.macs(node) for node in model.main) > HEAVY_MACS


def answers(entry: Entry, count: int | None = None) -> list[Arrays]:
    """Return what ONNX Runtime says to the kept samples, to ``count`` of them."""
    from vitrify import runtimes

    with runtimes.open(entry.onnx, seconds=RUN_SECONDS) as source:
        return [source.run(sample) for sample in samples(entry)[:count]]


def quantized(row: Row, entry: Entry, model: Model, statistics: Statistics, wanted: list[Arrays], folder: Path,
              target: str) -> None:
    """Quantize, run and compare; fills ``row``."""
    from vitrify import tflite
    from vitrify.ir import DType
    from vitrify.ops import Quantize
    from vitrify.pipeline.steps import quantize_model
    from vitrify.quant import Recipe

    start = time.process_time()
    result = quantize_model(model, statistics, Recipe(activations=row.width)).model
    row.seconds = time.process_time() - start
    file = quantized_file(entry, row.width)
    tflite.write(result, file)
    written = tflite.read(file)
    nodes = [node for graph in written.graphs for node in graph]
    row.kinds = tflite.operator_counts(written.main)
    row.operators = len(nodes)
    row.float_operators = sum(len(tflite.float_operators(graph)) for graph in written.graphs)
    row.wide = sum(any(t.dtype is DType.INT16 for t in node.outputs) for node in nodes)
    row.joints = sum(isinstance(node.op, Quantize) for node in nodes)
    compare(row, entry, file, wanted, KERNELS[1:] if is_heavy(model) else KERNELS)
    if target:
        row.npu = compiled(result, target, folder / "compiled.tflite")


def compare(row: Row, entry: Entry, file: Path, wanted: list[Arrays], sets: tuple[str, ...]) -> None:
    """Run a file in these sets of kernels: in plain ones on all samples with an answer, in the others on the first."""
    for kernels in sets:
        chosen = samples(entry) if kernels == "optimized" else samples(entry)[:1]
        try:
            found = decibels(entry, file, kernels, chosen, wanted)
        except VitrifyError as error:
            row.ran[kernels] = "; ".join(f.headline for f in error.findings)[:300]
            row.outcome = "failed"
            row.reasons.append(f"{kernels} kernels: {row.ran[kernels]}")
            continue
        row.ran[kernels] = min(found.values())
        if kernels == "optimized":
            row.db = found
    if row.float_operators:
        row.outcome = "failed"
        row.reasons.append(f"{row.float_operators} float operators")


def decibels(entry: Entry, file: Path, kernels: str, chosen: list[Arrays], wanted: list[Arrays]) -> dict[str, float]:
    """Return the SQNR in dB of each output over some samples; 999 where all is equal."""
    from vitrify import runtimes
    from vitrify.verify.metrics import Sums

    sums: dict[str, Sums] = {}
    with runtimes.open(file, kernels=kernels, seconds=RUN_SECONDS) as opened:
        for sample, expected in zip(chosen, wanted, strict=False):
            got = opened.run(sample)
            got = in_order(expected, got, entry.ranked) if entry.ranked else got
            for name, value in expected.items():
                sums.setdefault(name, Sums()).add(np.asarray(value, np.float64), np.asarray(got[name], np.float64))
    return {name: float(np.clip(s.sqnr_db, -99.0, 999.0)) for name, s in sums.items()}


def compiled(model: Model, target: str, output: Path) -> dict[str, Any]:
    """Return the share of nodes on the NPU and the compiler's milliseconds, or why there are none."""
    import vitrify as vt

    try:
        made = vt.compile(model, target, output)
    except VitrifyError as error:
        return {"refused": "; ".join(f.headline for f in error.findings)[:300]}
    return {"nodes": made.coverage.nodes, "ms": made.estimate.latency_ms if made.estimate else None}


def work(entry: Entry, widths: list[str], target: str) -> list[Row]:
    """Do all of one model, in this process."""
    from vitrify.ops import UnidirectionalSequenceLSTM
    from vitrify.quant import Recipe

    rows = [Row(entry.name, width) for width in widths]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            model, path = float_file(entry, folder)
            statistics = calibrated(entry, model, path, folder)
            wanted = answers(entry, 1 if is_heavy(model) else None)
        except VitrifyError as error:
            return [Row(entry.name, w, "refused", [line(f) for f in error.findings]) for w in widths]
        for row in rows:
            try:
                if Recipe(activations=row.width).in_steps and model.main.nodes_of(UnidirectionalSequenceLSTM):
                    model, path = float_file(entry, folder, steps=True)
                    statistics = calibrated(entry, model, path, folder)
                quantized(row, entry, model, statistics, wanted, folder, target)
            except VitrifyError as error:
                row.outcome, row.reasons = "refused", [line(f) for f in error.findings]
    return rows


def line(finding: Finding) -> str:
    """A finding in a line."""
    return f"{finding.headline} [{finding.code}; {finding.where}; {finding.why}]"


def one(entry: Entry, widths: list[str], target: str) -> list[Row]:
    """Do one model in a process of its own, within limits."""
    if not entry.onnx.exists():
        return [Row(entry.name, width, "missing", ["not exported"]) for width in widths]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "rows.json"
        command = [sys.executable, __file__, entry.name, "--widths", ",".join(widths), "--here", str(answer),
                   "--compile", target]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 start_new_session=True)
        try:
            said = child.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            stop(child)
            return [Row(entry.name, width, "failed", [f"not done after {SECONDS} s"]) for width in widths]
        if not answer.exists():
            last = (said.strip().splitlines() or [""])[-1][:300]
            return [Row(entry.name, width, "failed", [f"status {child.returncode}: {last}"]) for width in widths]
        return [Row(**row) for row in json.loads(answer.read_text())]


def stop(child: subprocess.Popen[str]) -> None:
    """End a process with all that it started."""
    import os

    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def stored(width: str) -> list[tuple[Entry, Row]]:
    """Return each model with its last result at a width, where it has one."""
    found = []
    for entry in entries():
        file = RESULTS / f"{entry.name}.{width}.json"
        if file.exists():
            found.append((entry, Row(**json.loads(file.read_text()))))
    return found


def page(rows: dict[str, list[tuple[Entry, Row]]]) -> str:
    """Return docs/zoo_int8.md."""
    lines = [
        "# Model zoo in integers", "",
        "Generated by `make zoo-int8`. Every model of the [zoo](zoo.md) is quantized without any option, and each file "
        "is run in LiteRT: in its plain optimized kernels, in XNNPACK, and, up to a billion multiplications, in its "
        "reference kernels. Weights are "
        "random and calibration sees three to six samples, so the figures show that nothing stays in float and "
        "that every file runs; how much of a trained model's answer is kept is measured elsewhere.", "",
        f"Measured on {processor()}, Python {platform.python_version()}.", ""]
    for width, members in rows.items():
        lines += section(width, members)
    lines += ["dB: signal to error of each output against ONNX Runtime's float answers, over all kept samples, in the "
              "plain kernels; the same in reference kernels and in XNNPACK on one sample. 16 bit: operators that give "
              "16-bit values. QUANTIZE: changes of scale or width between operators. Detections that a model ranks by "
              "score are compared as a set.", ""]
    lines += [f"* `{k}`: {v}" for k, v in EXPORTERS.items()]
    return "\n".join(lines) + "\n"


def section(width: str, members: list[tuple[Entry, Row]]) -> list[str]:
    """Return the tables of one width."""
    good = sum(r.outcome == "ok" for _, r in members)
    runs = {k: sum(isinstance(r.ran.get(k), float) for _, r in members) for k in KERNELS}
    lines = [f"## {WIDTHS[width]}", "",
             f"{good} of {len(members)} models have no float operator left and run with and without XNNPACK "
             f"({', '.join(f'{k}: {n}' for k, n in runs.items())}).", ""]
    left = sorted({entry.name for entry in entries()} - {entry.name for entry, _ in members})
    lines += [f"Not run at this width: {len(left)} ({', '.join(left)}).", ""] if left else []
    for family, heading in FAMILIES.items():
        some = [(e, r) for e, r in members if e.family == family]
        if some:
            lines += [f"### {heading}", "",
                      "| model | operators | float | 16 bit | QUANTIZE | dB | reference | XNNPACK | "
                      "NPU |", "|---|---:|---:|---:|---:|---|---:|---:|---|", *(shown(e, r) for e, r in some), ""]
    return lines


def shown(entry: Entry, row: Row) -> str:
    """Return one line of a table; a model that does not pass says why below its figures."""
    title = f"{entry.title}{f' ({entry.note})' if entry.note else ''}, {entry.exporter}"
    if row.outcome in ("refused", "missing") or not row.operators:
        return f"| {title} | **{row.outcome}**: {escaped('; '.join(row.reasons))[:600]} | | | | | | | |"
    decibel = ", ".join(f"{v:.1f}" for v in row.db.values())
    ran = [f"{v:.1f}" if isinstance(v := row.ran.get(k, ""), float) else escaped(str(v)) for k in KERNELS[::2]]
    npu = row.npu.get("refused") or (f"{row.npu['nodes']:.1%}, {row.npu['ms']:.2f} ms" if row.npu else "")
    return (f"| {title} | {row.operators} | {row.float_operators} | {row.wide} | {row.joints} | {decibel} | {ran[0]} | "
            f"{ran[1]} | {escaped(str(npu))} |")


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> int:
    """Check the models named on the command line, all without names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "zoo_int8.md")
    parser.add_argument("--widths", default=",".join(WIDTHS))
    parser.add_argument("--compile", default="", help="also compile each file for this target")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    widths = arguments.widths.split(",")
    if arguments.here:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        made = work(entries(arguments.names)[0], widths, arguments.compile)
        arguments.here.write_text(json.dumps([asdict(row) for row in made], default=float))
        return 0
    RESULTS.mkdir(parents=True, exist_ok=True)
    bad = 0
    for entry in entries(arguments.names):
        for row in one(entry, widths, arguments.compile):
            (RESULTS / f"{entry.name}.{row.width}.json").write_text(json.dumps(asdict(row)))
            bad += row.outcome != "ok"
            print(f"{row.name:22} {row.width:5} {row.outcome:8} {min(row.db.values(), default=0):6.1f} dB "
                  f"{row.operators:5} ops {row.float_operators:3} float {row.wide:5} wide {row.joints:4} joints  "
                  f"{'; '.join(row.reasons)[:400]}", flush=True)
        arguments.table.write_text(page({w: stored(w) for w in WIDTHS}))
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
