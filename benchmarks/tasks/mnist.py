"""How much of an evaluation's time is LiteRT's: 10,000 digits through a float file and its int8 form.

    .venv/bin/python benchmarks/tasks/mnist.py

Prints seconds, the share of the workers' time inside the interpreter, the largest resident size of any process, and
what remains to be done by hand: the same images straight through the interpreter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
MODELS = ROOT / ".cache" / "models"
WORK = ROOT / ".cache" / "tasks" / "mnist"
VITRIFY = ROOT / ".venv" / "bin" / "vitrify"
PREPARE = ("--mean", "0.1307", "--std", "0.3081")


def files() -> list[Path]:
    """The float and the int8 file."""
    WORK.mkdir(parents=True, exist_ok=True)
    source = MODELS / "digits_cnn" / "digits_cnn.onnx"
    made = [WORK / "digits.tflite", WORK / "digits_int8.tflite"]
    with np.load(MODELS / "mnist_10k" / "mnist_10k.npz") as stored:
        np.savez(WORK / "few.npz", stored["images"][:128, :, :, None])
    for command, target in (("convert", made[0]), ("quantize", made[1])):
        more = ["--data", str(WORK / "few.npz"), *PREPARE] if command == "quantize" else []
        if not target.exists():
            subprocess.run([str(VITRIFY), command, str(source), "-o", str(target), "-q", *more], check=True,
                           stdout=subprocess.DEVNULL)
    return made


def evaluated(samples: int, workers: int) -> str:
    """One call of the command, as a line."""
    started = time.perf_counter()
    done = subprocess.run(
        [str(VITRIFY), "eval", *map(str, files()), "--data", str(MODELS / "mnist_10k" / "mnist_10k.npz"), *PREPARE,
         "--samples", str(samples), "--workers", str(workers), "--json", "-q"],
        capture_output=True, text=True, check=True, cwd=WORK)
    wall, result = time.perf_counter() - started, json.loads(done.stdout)
    tops = [f"{stage['figures']['top-1']:.2f}" for stage in result["stages"]]
    inside = sum(stage["seconds"] for stage in result["stages"])
    return (f"{samples:6d} samples, {workers} workers: {wall:5.2f} s in all, {inside:5.2f} s inside LiteRT, "
            f"{100 * result['inside']:.1f} % of the workers' time, peak {result['peak_bytes'] / 1e6:.0f} MB, "
            f"top-1 {' '.join(tops)}")


def straight() -> str:
    """The same images straight through the interpreter, in this process."""
    from ai_edge_litert.interpreter import Interpreter

    with np.load(MODELS / "mnist_10k" / "mnist_10k.npz") as stored:
        images = ((stored["images"].astype(np.float32) / 255 - 0.1307) / 0.3081)[..., None]
    said = []
    for path in files():
        one = Interpreter(model_path=str(path), num_threads=1)
        one.allocate_tensors()
        given, made = one.get_input_details()[0], one.get_output_details()[0]
        scale, zero = given["quantization"]
        values = images if not scale else (images / scale + zero).round().clip(-128, 127).astype(np.int8)
        started = time.perf_counter()
        for value in values:
            one.set_tensor(given["index"], value[None])
            one.invoke()
            one.get_tensor(made["index"])
        said.append(f"{path.name} {time.perf_counter() - started:.2f} s")
    return "straight through the interpreter on one core: " + ", ".join(said)


if __name__ == "__main__":
    for count, together in ((2000, 1), (10000, 1), (10000, 2)):
        print(evaluated(count, together), flush=True)
    print(straight())
    sys.exit(0)
