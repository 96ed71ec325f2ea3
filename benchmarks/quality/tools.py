"""The tools that quantize: ours at each effort, and the peers, whose better float file counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import files
import numpy as np
from measure import Measurement, measure
from models import Arrays, Subject
from run import VITRIFY, last_line, peer

HERE = Path(__file__).resolve().parent
SECONDS = 900


@dataclass(frozen=True)
class Outcome:
    """What a tool's file keeps of each output, in dB, and the CPU seconds from ONNX to int8; ``reason``: none does."""

    tool: str
    model: str
    cpu_seconds: float
    decibels: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    note: str = ""

    @property
    def worst(self) -> float:
        """The output that kept least."""
        return min(self.decibels.values())


@dataclass(frozen=True)
class Task:
    """One model with its samples, the answers to come close to, and a folder to work in."""

    subject: Subject
    calibration: list[Arrays]
    held_out: list[Arrays]
    expected: list[Arrays]
    work: Path

    @property
    def shapes(self) -> list[str]:
        """The shapes that are given, as our command line takes them."""
        return [a for n, s in self.subject.fixed for a in ("--shape", f"{n}={','.join(map(str, s))}")]


def failed(tool: str, task: Task, done: Measurement) -> Outcome:
    """Say why there is no file."""
    stopped = done.status == -9 and done.wall_seconds >= SECONDS
    return Outcome(tool, task.subject.name, done.cpu_seconds,
                   reason=f"stopped after {SECONDS} s" if stopped else last_line(done))


def ours(effort: str) -> Callable[[Task], Outcome]:
    """Quantize with our command line and run with our runtime, outputs joined as its users get them."""
    def run(task: Task) -> Outcome:
        data, output, name = task.work / "data", task.work / "ours.tflite", f"vitrify {effort}"
        data.mkdir(exist_ok=True)
        for k, sample in enumerate(task.calibration):
            np.savez(data / f"{k:03}.npz", **sample)
        done = measure([VITRIFY, "quantize", str(task.subject.onnx), *task.shapes, "--data", str(data), "-o",
                        str(output), "--effort", effort, "--json"], task.work, SECONDS)
        if not output.exists():
            return Outcome(name, task.subject.name, done.cpu_seconds, reason=told(done))
        got = files.run(output, task.held_out)
        found = {n: files.decibels([e[n] for e in task.expected], [g[n] for g in got]) for n in task.expected[0]}
        return Outcome(name, task.subject.name, done.cpu_seconds, found)
    return run


def told(done: Measurement) -> str:
    """The errors that our command answered with."""
    try:
        answer = json.loads(done.output[done.output.index("{"):])
        return "; ".join(f["headline"] for f in answer["findings"] if f["severity"] == "error")
    except (ValueError, KeyError):
        return last_line(done)


def quantizer(source: str) -> Callable[[Task], Outcome]:
    """ai-edge-quantizer on a float file: ``ours``, or of onnx2tf's ``direct`` path."""
    def run(task: Task) -> Outcome:
        tool, file, output = f"ai-edge-quantizer, {source} float", task.work / "float.tflite", task.work / "aeq.tflite"
        if source == "vitrify":
            first = measure([VITRIFY, "convert", str(task.subject.onnx), *task.shapes, "-o", str(file)], task.work,
                            SECONDS)
        else:
            first = onnx2tf(task, "onnx2tf", "flatbuffer_direct", [])
            file = next((task.work / "onnx2tf").glob("*_float32.tflite"), file)
        if not file.exists():
            return failed(tool, task, first)
        np.savez(task.work / "inputs.npz", **stacked(files.file_inputs(file, task.calibration)))
        done = measure([str(peer("ai_edge_quantizer") / "python"), str(HERE / "aeq.py"), str(file),
                        str(task.work / "inputs.npz"), str(output)], task.work, SECONDS)
        seconds = first.cpu_seconds + done.cpu_seconds
        return held_against(tool, task, file, output, seconds) if output.exists() else \
            Outcome(tool, task.subject.name, seconds, reason=last_line(done))
    return run


def onnx2tf(task: Task, environment: str, path: str, options: Sequence[str]) -> Measurement:
    """Run onnx2tf on a copy, since it writes over the file that it reads."""
    copy, folder = task.work / "copy.onnx", task.work / environment
    shutil.copyfile(task.subject.onnx, copy)
    shutil.rmtree(folder, ignore_errors=True)
    fixed = [f"{n}:{','.join(map(str, s))}" for n, s in task.subject.fixed]
    return measure([str(peer(environment) / "onnx2tf"), "-i", str(copy), "-o", str(folder), "-n", "-tb", path,
                    *(["-ois", *fixed] if fixed else []), *options], task.work, SECONDS)


def converter(task: Task) -> Outcome:
    """onnx2tf's own int8, by TensorFlow's converter, on the same samples."""
    tool, folder = "onnx2tf, TensorFlow int8", task.work / "onnx2tf_tensorflow"
    given = []
    for name, value in task.calibration[0].items():
        path = task.work / f"calibration_{len(given)}.npy"
        turned = [np.moveaxis(s[name], 1, -1) if value.ndim > 2 else s[name] for s in task.calibration]
        np.save(path, np.concatenate(turned))
        given += ["-cind", name, str(path), "0.0", "1.0"]
    done = onnx2tf(task, "onnx2tf_tensorflow", "tf_converter", ["-oiqt", *given])
    floats, int8 = (next(iter(folder.glob(p)), None) for p in ("*_float32.tflite", "*_full_integer_quant.tflite"))
    if floats is None or int8 is None:
        return failed(tool, task, done)
    return held_against(tool, task, floats, int8, done.cpu_seconds)


def stacked(samples: Sequence[Arrays]) -> Arrays:
    """The samples of each input, along a new first axis."""
    return {name: np.stack([s[name] for s in samples]) for name in samples[0]}


def held_against(tool: str, task: Task, floats: Path, int8: Path, seconds: float) -> Outcome:
    """Run a peer's int8 file on the held-out samples; its float file shows which output stands for which."""
    from vitrify.core.errors import VitrifyError

    try:
        inputs = files.file_inputs(floats, task.held_out)
        where = files.places(task.expected, files.own(floats, inputs))
        names = files.file_inputs(int8, task.held_out)
        found = files.compare(task.expected, files.own(int8, names), where)
    except (VitrifyError, ValueError, RuntimeError) as error:
        return Outcome(tool, task.subject.name, seconds, reason=f"the file does not run: {str(error)[:200]}")
    return Outcome(tool, task.subject.name, seconds, found)


OURS = {f"vitrify {effort}": ours(effort) for effort in ("fast", "balanced", "best")}
PEERS: dict[str, Callable[[Task], Outcome]] = {
    "ai-edge-quantizer, vitrify float": quantizer("vitrify"),
    "ai-edge-quantizer, onnx2tf float": quantizer("onnx2tf"),
    "onnx2tf, TensorFlow int8": converter,
}
TOOLS = {**OURS, **PEERS}
REQUIREMENTS = {"ai-edge-quantizer, vitrify float": ("ai_edge_quantizer",),
                "ai-edge-quantizer, onnx2tf float": ("ai_edge_quantizer", "onnx2tf"),
                "onnx2tf, TensorFlow int8": ("onnx2tf_tensorflow",)}
