"""Detectors in int8: what is left of scores and boxes, side by side with plain quantization.

    PYTHONPATH=benchmarks python benchmarks/quality/heads.py [NAME ...]

Random detectors of the zoo get weights as `realistic.py` describes; one is pretrained. Both tools calibrate on the same
8 photos; what a detector finds above 0.25 on others is compared with its float file. Rows of models that are not named
are kept from the last run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from PIL import Image
from realistic import make_realistic
from run import CACHE, ROOT, VITRIFY, peer
from sections import put_section

from vitrify import runtimes
from vitrify.runtimes.litert import LiteRT

Array = np.ndarray[Any, np.dtype[Any]]
WORK = CACHE / "quality" / "heads"
PHOTOS = ("ultralytics_photos", "demo_pictures")
FOUND = 0.25
SECONDS = 3000


@dataclass(frozen=True)
class Head:
    """A detector: its file, and which rows of its output are scores, key points as (x, y, score), and an angle."""

    title: str
    file: Path
    scores: tuple[int, int | None] = (4, None)
    points: tuple[int, int] | None = None
    angle: int | None = None
    shape: tuple[int, ...] = (1, 3, 640, 640)
    change: Callable[[onnx.ModelProto], None] | None = None
    pretrained: bool = False


@dataclass(frozen=True)
class Row:
    """What came out: detections above 0.25 that were compared, the largest errors of each tool, in pixels of 640."""

    name: str
    found: int
    peer_largest: float
    peer_error: float
    score: float
    box: float
    point: float | None
    angle: float | None
    wide: str


def one_class(model: onnx.ModelProto) -> None:
    """Leave a detector of 80 classes its first."""
    stored = {t.name: t for t in model.graph.initializer}
    constants = {n.output[0]: n.attribute[0].t for n in model.graph.node if n.op_type == "Constant"}
    for node in model.graph.node:
        if node.op_type == "Conv" and "/cv3." in node.name and node.name.endswith(".2/Conv"):
            for name in node.input[1:]:
                stored[name].CopyFrom(numpy_helper.from_array(numpy_helper.to_array(stored[name])[:1], name))
        if node.op_type == "Reshape" and node.input[1] in constants:
            shape = numpy_helper.to_array(constants[node.input[1]]).copy()
            if shape.tolist() == [1, 80, -1]:
                shape[1] = 1
                constants[node.input[1]].CopyFrom(numpy_helper.from_array(shape, constants[node.input[1]].name))
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 5


def zoo(name: str) -> Path:
    """The zoo's file of that name."""
    return CACHE / "zoo" / f"{name}.onnx"


HEADS = {
    "yolov8n": Head("YOLOv8n", zoo("yolov8n")),
    "yolov8n_one": Head("YOLOv8n, one class: [1,5,8400]", zoo("yolov8n"), change=one_class),
    "yolo11n": Head("YOLO11n", zoo("yolo11n")),
    "yolov8n_seg": Head("YOLOv8n segment", zoo("yolov8n_seg"), (4, 84)),
    "yolov8n_pose": Head("YOLOv8n pose", zoo("yolov8n_pose"), (4, 5), points=(5, 56)),
    "yolov8n_obb": Head("YOLOv8n oriented boxes", zoo("yolov8n_obb"), (4, 19), angle=19),
    "yolo11n_seg": Head("YOLO11n segment", zoo("yolo11n_seg"), (4, 84)),
    "yolo11n_pose": Head("YOLO11n pose", zoo("yolo11n_pose"), (4, 5), points=(5, 56)),
    "yolo11n_obb": Head("YOLO11n oriented boxes", zoo("yolo11n_obb"), (4, 19), angle=19),
    "yolo26n": Head("YOLO26n", zoo("yolo26n")),
    "pretrained_320": Head("YOLOv8n, pretrained, 320 pixels", CACHE / "models/nudenet_yolov8n/320n.onnx",
                           shape=(1, 3, 320, 320), pretrained=True),
    "pretrained_640": Head("YOLOv8n, pretrained, 640 pixels", CACHE / "models/nudenet_yolov8n/320n.onnx",
                           pretrained=True),
}


def pictures(size: int) -> tuple[Array, Array]:
    """Photos for calibration, and as many to compare on, which are the same mirrored; [n,3,size,size]."""
    files = [p for f in PHOTOS for p in sorted((CACHE / "models" / f).glob("[a-z]*.*"))]
    arrays = np.stack([_filled(Image.open(p).convert("RGB"), size) for p in files])
    return arrays, arrays[..., ::-1].copy()


def _filled(picture: Image.Image, size: int) -> Array:
    return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR), np.float32).transpose(2, 0, 1) / 255


def tool(command: Sequence[str | Path], made: Path | None = None) -> None:
    """Run a tool as its users do; a file that it ``made`` counts, though it may say that its answers are not good."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode and not (made and made.exists()):
        raise SystemExit(f"{command[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def compare(name: str, head: Head) -> Row:
    """Quantize with both tools and hold them against float."""
    work = WORK / name
    work.mkdir(parents=True, exist_ok=True)
    calibration, others = pictures(head.shape[2])
    source = work / "model.onnx"
    model = onnx.load(head.file)
    if head.change:
        head.change(model)
    if not head.pretrained:
        make_realistic(model, calibration[:4])
    onnx.save(model, source)
    entered = model.graph.input[0].name
    np.savez(work / "calibration.npz", **{entered: calibration[:, None]})
    np.save(work / "calibration.npy", calibration)
    shape = ["--shape", ",".join(map(str, head.shape))]
    tool([VITRIFY, "convert", source, "-o", work / "float.tflite", *shape])
    ours = work / "ours.tflite"
    ours.unlink(missing_ok=True)
    tool([VITRIFY, "quantize", source, "--data", work / "calibration.npz", "-o", ours, *shape], ours)
    tool([peer("ai_edge_quantizer") / "python", ROOT / "benchmarks" / "aeq_int8.py", work / "float.tflite",
          work / "calibration.npy", work / "peer.tflite"])
    samples = [{entered: picture[None]} for picture in others]
    with runtimes.open(work / "float.tflite", kernels="optimized", seconds=SECONDS) as opened:
        expected, interface = [next(iter(opened.run(s).values())) for s in samples], opened.interface
    with runtimes.open(ours, kernels="optimized", seconds=SECONDS) as opened:
        found = [next(iter(opened.run(s).values())) for s in samples]
    with LiteRT(work / "peer.tflite", kernels="optimized", seconds=SECONDS, interface=interface) as opened:
        theirs = [next(iter(opened.run(s).values())) for s in samples]
    row = _row(name, head, np.concatenate(expected), np.concatenate(found), np.concatenate(theirs), _wide(work))
    (WORK / f"{name}.json").write_text(json.dumps(asdict(row)))
    return row


def _wide(work: Path) -> str:
    """How many of our operators have 16-bit activations."""
    from vitrify import tflite
    from vitrify.ir import DType

    nodes = list(tflite.read(work / "ours.tflite").main)
    wide = [n for n in nodes if any(t.dtype is DType.INT16 for t in n.outputs)]
    return f"{len(wide)} of {len(nodes)}"


def _row(name: str, head: Head, expected: Array, ours: Array, theirs: Array, wide: str) -> Row:
    """Compare [n,rows,anchors]."""
    rows, pixels = slice(*head.scores), 640 / head.shape[2]
    scores = expected[:, rows]
    large, found = scores > FOUND, scores.max(1) > FOUND
    error = np.abs(expected - ours)
    point = None
    if head.points:
        places = error[:, slice(*head.points)].reshape(len(error), -1, 3, error.shape[2])[:, :, :2]
        point = float(places.max((1, 2))[found].max(initial=0))
    return Row(name, int(found.sum()), float(theirs[:, rows].max()),
               float(np.abs(scores - theirs[:, rows])[large].max(initial=0)),
               float(error[:, rows][large].max(initial=0)),
               float(error[:, :4].max(1)[found].max(initial=0)) * pixels, point,
               float(error[:, head.angle][found].max(initial=0)) if head.angle else None, wide)


def page(rows: Sequence[Row]) -> list[str]:
    """The section of the page."""
    lines = ["## Detectors", "",
             "Generated by `python benchmarks/quality/heads.py`. Weights are random but behave as trained ones do "
             "(`benchmarks/quality/realistic.py`), except where pretrained. Both tools calibrate on the same 8 photos; "
             "compared is every detection that float finds above 0.25 on the same mirrored. Boxes and key points are "
             "pixels of "
             "a picture of 640, angles radians. Plain quantization is ai-edge-quantizer's static int8 on our float "
             "file.", "",
             "| model | found | plain: largest score | plain: score off by | ours: score off by | box | key point "
             "| angle | operators in 16 bits |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    return [*lines, *(f"| {HEADS[r.name].title} | {r.found} | {r.peer_largest:.3f} | {r.peer_error:.3f} "
                      f"| {r.score:.3f} | {r.box:.2f} | {_or_none(r.point)} | {_or_none(r.angle)} | {r.wide} |"
                      for r in rows)]


def _or_none(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main() -> None:
    """Compare the named models, or all, and write the section."""
    for name in sys.argv[1:] or HEADS:
        print(compare(name, HEADS[name]), flush=True)
    stored = [Row(**json.loads(f.read_text())) for n in HEADS if (f := WORK / f"{n}.json").exists()]
    put_section(ROOT / "docs" / "benchmarks.md", "heads", page(stored))


if __name__ == "__main__":
    main()
