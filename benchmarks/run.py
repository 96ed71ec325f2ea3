"""Time and memory of conversion, side by side with the peers in one run: `make bench`.

    python benchmarks/run.py [--models NAME ...] [--runs N] [--without-tensorflow]

Every tool runs as a whole process on the same ONNX files and the same 16 samples; tools take turns, and medians and
ratios are printed. The peers' environments are made under .cache/peers on first use (about 3.6 GB with TensorFlow).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import Measurement, measure
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
VITRIFY = str(Path(sys.executable).parent / "vitrify")


@dataclass(frozen=True)
class Case:
    """A model to convert: where it is fetched, its fixed input, and how pixels in 0..1 become its values."""

    name: str
    file: str
    input: str
    shape: tuple[int, int, int, int]
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @property
    def shape_text(self) -> str:
        """The shape as command lines take it."""
        return ",".join(map(str, self.shape))


CASES = [
    Case("yolov8n_640", "nudenet_yolov8n/320n.onnx", "images", (1, 3, 640, 640)),
    Case("efficientnet_lite0", "efficientnet_lite0/efficientnet_lite0.onnx", "input", (1, 3, 224, 224),
         (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    Case("ppocr_det_640", "ppocr_v4/ch_PP-OCRv4_det_infer.onnx", "x", (1, 3, 640, 640), (0.485, 0.456, 0.406),
         (0.229, 0.224, 0.225)),
]
PHOTOS = ["skimage_photos", "ultralytics_photos", "foolbox_samples"]


def peer(name: str) -> Path:
    """Return the folder of a peer's programs, making its environment on first use."""
    entry = tomllib.loads((ROOT / "benchmarks" / "peers.toml").read_text())[name]
    folder = CACHE / "peers" / name
    if not (folder / ".complete").exists():
        python = shutil.which(f"python{entry['python']}")
        if python is None:
            raise SystemExit(f"the peer {name} needs Python {entry['python']}")
        print(f"installing {name} …", flush=True)
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "-q"]
        subprocess.run([*pip, *entry["requirements"]], check=True)
        if alone := entry.get("without_dependencies"):
            subprocess.run([*pip, "--no-deps", *alone], check=True)
        (folder / ".complete").touch()
    return folder / "bin"


def samples(case: Case, work: Path) -> Path:
    """Write 16 real photos as float32[16,3,H,W], in the values that the model was trained on."""
    files = sorted(p for f in PHOTOS for p in (CACHE / "models" / f).glob("*") if p.suffix in (".jpg", ".png")
                   and (f != "foolbox_samples" or p.name.startswith("imagenet")))[:16]
    height, width = case.shape[2:]
    arrays = [np.asarray(Image.open(p).convert("RGB").resize((width, height)), np.float32) / 255 for p in files]
    path = work / "samples.npy"
    values = (np.stack(arrays) - np.array(case.mean, np.float32)) / np.array(case.std, np.float32)
    np.save(path, values.transpose(0, 3, 1, 2))
    return path


Steps = list[list[str]]


def commands(case: Case, work: Path, with_tensorflow: bool) -> dict[str, Callable[[], Steps]]:
    """Return for each row of the table a function that gives the commands to time, one after the other."""
    model, data = work / "model.onnx", samples(case, work)
    fixed = ["--shape", f"{case.input}={case.shape_text}"]

    def onnx2tf(environment: str, *options: str) -> list[str]:
        copy = work / "copy.onnx"           # onnx2tf writes over the file that it reads
        shutil.copyfile(model, copy)
        return [str(peer(environment) / "onnx2tf"), "-i", str(copy), "-o", str(work / environment), "-n",
                *options]

    def direct() -> list[str]:
        return onnx2tf("onnx2tf", "-tb", "flatbuffer_direct")

    def quantizer() -> list[str]:
        return [str(peer("ai_edge_quantizer") / "python"), str(ROOT / "benchmarks" / "aeq_int8.py"),
                str(work / "onnx2tf" / "copy_float32.tflite"), str(data), str(work / "aeq.tflite")]

    rows: dict[str, Callable[[], Steps]] = {
        "float: vitrify convert": lambda: [[VITRIFY, "convert", str(model), *fixed, "-o", str(work / "float.tflite")]],
        "float: onnx2tf, direct": lambda: [direct()],
        "int8: vitrify quantize": lambda: [[VITRIFY, "quantize", str(model), *fixed, "--data", str(data),
                                            "--samples", "16", "-o", str(work / "int8.tflite")]],
        "int8: onnx2tf, direct + ai-edge-quantizer": lambda: [direct(), quantizer()],
    }
    if with_tensorflow:
        rows["float: onnx2tf, TensorFlow"] = lambda: [onnx2tf("onnx2tf_tensorflow", "-tb", "tf_converter")]
    return rows


def run_steps(steps: Steps, work: Path) -> Measurement:
    """Run the commands one after the other: CPU seconds add up, the larger memory counts."""
    results: list[Measurement] = []
    for step in steps:
        results.append(measure(step, work))
        if results[-1].status:
            break                           # the next step reads what this one did not write
    return Measurement(sum(r.cpu_seconds for r in results), sum(r.wall_seconds for r in results),
                       max(r.peak_bytes for r in results), results[-1].status, results[-1].output)


ERROR = re.compile(r"^([\w.]*(Error|Exception|Interrupt)\b|error\[|[\w./-]+: error)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def last_line(result: Measurement) -> str:
    """Return the error of a failed command: the last exception with what explains it, else what it said last."""
    if result.status < 0:
        return f"ended by signal {signal.Signals(-result.status).name}"
    lines = [line.strip() for line in COLOUR.sub("", result.output).splitlines() if line.strip()]
    at = next((k for k in range(len(lines) - 1, -1, -1) if ERROR.match(lines[k])), len(lines) - 1)
    if at < 0:
        return f"status {result.status}"
    return " ".join(lines[at:at + 2])[:240]


def fix_shape(case: Case, output: Path) -> None:
    """Write the model with its shape fixed and simplified, as the peers' manuals ask; not part of what is timed.

    With the file as published, onnx2tf's direct path leaves shapes open and ai-edge-quantizer then stops.
    """
    subprocess.run([str(peer("onnx2tf") / "onnxsim"), str(CACHE / "models" / case.file), str(output),
                    "--overwrite-input-shape", f"{case.input}:{case.shape_text}"],
                   check=True, stdout=subprocess.DEVNULL)


def bench(case: Case, runs: int, with_tensorflow: bool) -> list[dict[str, object]]:
    """Measure all rows for one model, in turns."""
    work = CACHE / "bench" / case.name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    fix_shape(case, work / "model.onnx")
    rows = commands(case, work, with_tensorflow)
    collected: dict[str, list[Measurement]] = {name: [] for name in rows}
    for turn in range(runs):
        for name, steps in rows.items():
            if turn and "TensorFlow" in name:
                continue                    # minutes a run: once is enough for a ratio of forty
            collected[name].append(run_steps(steps(), work))
    table = []
    for name, results in collected.items():
        table.append({"model": case.name, "what": name,
                      "cpu_seconds": statistics.median(r.cpu_seconds for r in results),
                      "peak_mb": max(r.peak_bytes for r in results) / 1e6, "runs": len(results),
                      "failed": sum(r.status != 0 for r in results),
                      "reason": next((last_line(r) for r in results if r.status), "")})
    return table


def show(table: list[dict[str, object]]) -> None:
    """Print medians, and each peer's ratio to ours; where a peer failed, what it used until then and why."""
    ours = {(row["model"], str(row["what"]).split(":")[0]): row for row in table if "vitrify" in str(row["what"])}
    print(f"{'model':20} {'what':44} {'CPU s':>8} {'ratio':>7} {'peak MB':>8} {'ratio':>6}")
    for row in table:
        base = ours[row["model"], str(row["what"]).split(":")[0]]
        ratios = [float(row[k]) / float(base[k]) for k in ("cpu_seconds", "peak_mb")]  # type: ignore[arg-type]
        failed = f"  failed {row['failed']} of {row['runs']}: {row['reason']}" if row["failed"] else ""
        print(f"{row['model']:20} {row['what']:44} {row['cpu_seconds']:8.2f} {ratios[0]:6.1f}x {row['peak_mb']:8.0f} "
              f"{ratios[1]:5.1f}x{failed}")


def main() -> int:
    """Measure the chosen models and write the table as JSON too."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=[c.name for c in CASES], default=[c.name for c in CASES])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--without-tensorflow", action="store_true")
    arguments = parser.parse_args()
    cases = [c for c in CASES if c.name in arguments.models]
    entries = sorted({c.file.split("/")[0] for c in cases} | set(PHOTOS))
    subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_models.py"), str(CACHE / "models"), *entries],
                   check=True)
    table = [row for case in cases for row in bench(case, arguments.runs, not arguments.without_tensorflow)]
    (CACHE / "bench" / "conversion.json").write_text(json.dumps(table, indent=1))
    show(table)
    return int(any(row["failed"] for row in table if "vitrify" in str(row["what"])))     # a peer's failure is a result


if __name__ == "__main__":
    raise SystemExit(main())
