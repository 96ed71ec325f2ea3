"""Small models with a task, and sets of samples for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

SIDE, CLASSES = 16, 10
WEIGHTS = np.random.default_rng(5).normal(0, 0.2, (CLASSES, SIDE * SIDE)).astype(np.float32)


def classifier(path: Path, weights: np.ndarray = WEIGHTS, names: bool = False) -> Path:
    """Classes of grey pictures: one product."""
    nodes = [helper.make_node("Flatten", ["image"], ["flat"], name="flat"),
             helper.make_node("Gemm", ["flat", "weights"], ["scores"], name="product", transB=1)]
    return _saved(path, nodes, [1, 1, SIDE, SIDE], [1, CLASSES], weights,
                  {"names": repr({n: f"kind {n}" for n in range(CLASSES)})} if names else {})


def segmenter(path: Path) -> Path:
    """Two classes for each pixel: dark and bright."""
    nodes = [helper.make_node("Conv", ["image", "weights"], ["scores"], name="product", kernel_shape=[1, 1])]
    weights = np.array([[0.0], [1.0]], np.float32).reshape(2, 1, 1, 1)
    return _saved(path, nodes, [1, 1, SIDE, SIDE], [1, 2, SIDE, SIDE], weights, {})


def detector(path: Path) -> Path:
    """A head [1, 6, 21] of two classes for pictures of 32: boxes and scores are constants times the picture's mean."""
    head = np.zeros((1, 6, 21), np.float32)
    head[0, :, 2] = (8, 10, 8, 12, 0.9, 0.05)
    head[0, :, 9] = (22, 20, 10, 10, 0.1, 0.8)
    nodes = [helper.make_node("GlobalMaxPool", ["image"], ["peaks"], name="peaks"),
             helper.make_node("ReduceMax", ["peaks"], ["peak"], name="peak", axes=[1, 2], keepdims=0),
             helper.make_node("Unsqueeze", ["peak", "axis"], ["one"], name="one"),
             helper.make_node("Mul", ["weights", "one"], ["head"], name="head")]
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    return _saved(path, nodes, [1, 3, 32, 32], [1, 6, 21], head,
                  {"task": "detect", "names": "{0: 'cup', 1: 'cat'}"}, [axis])


def _saved(path: Path, nodes: list[onnx.NodeProto], given: list[int], made: list[int], weights: np.ndarray,
           words: dict[str, str], more: list[onnx.TensorProto] | None = None) -> Path:
    graph = helper.make_graph(
        nodes, "task", [helper.make_tensor_value_info("image", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, made)],
        [numpy_helper.from_array(weights, "weights"), *(more or [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, words)
    onnx.save(model, path)
    return path


def digits(path: Path, count: int = 200) -> Path:
    """Grey pictures with the classes that the classifier gives, but for every tenth."""
    random = np.random.default_rng(6)
    images = random.integers(0, 256, (count, SIDE, SIDE), np.uint8)
    labels = (images.reshape(count, -1).astype(np.float32) @ WEIGHTS.T).argmax(1)
    labels[::10] = (labels[::10] + 1) % CLASSES
    np.savez(path, images=images, labels=labels)
    return path


def photo(path: Path, size: tuple[int, int] = (64, 64)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "white").save(path)
    return path


def coco(folder: Path) -> Path:
    """Two pictures of 64: with both objects of the detector, and with one that it finds in a wrong place."""
    for number in (1, 2):
        photo(folder / "images" / f"{number}.png")
    places = {1: [(0, (8, 8, 16, 24)), (1, (34, 30, 20, 20))], 2: [(1, (0, 0, 10, 10))]}
    annotations = [{"id": n, "image_id": image, "category_id": 7 + label, "bbox": list(box), "area": box[2] * box[3],
                    "iscrowd": 0} for n, (image, label, box) in enumerate(
        ((i, label, box) for i, boxes in places.items() for label, box in boxes), 1)]
    content = {"images": [{"id": n, "file_name": f"{n}.png", "width": 64, "height": 64} for n in (1, 2)],
               "annotations": annotations, "categories": [{"id": 7, "name": "cup"}, {"id": 8, "name": "cat"}]}
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def yolo(folder: Path) -> Path:
    """The same in Ultralytics' form."""
    for number, lines in ((1, ("0 0.25 0.3125 0.25 0.375", "1 0.6875 0.625 0.3125 0.3125")),
                          (2, ("1 0.078125 0.078125 0.15625 0.15625",))):
        photo(folder / "images" / f"{number}.png")
        (folder / "labels").mkdir(exist_ok=True)
        (folder / "labels" / f"{number}.txt").write_text("\n".join(lines))
    (folder / "data.yaml").write_text("path: .\nnames:\n  0: cup\n  1: cat\n")
    return folder


def voc(folder: Path) -> Path:
    """The same in Pascal VOC's form, whose pixels are counted from 1."""
    for number, boxes in ((1, (("cup", (9, 9, 24, 32)), ("cat", (35, 31, 54, 50)))), (2, (("cat", (1, 1, 10, 10)),))):
        photo(folder / "JPEGImages" / f"{number}.png")
        (folder / "Annotations").mkdir(exist_ok=True)
        objects = "".join(f"<object><name>{name}</name><bndbox><xmin>{b[0]}</xmin><ymin>{b[1]}</ymin>"
                          f"<xmax>{b[2]}</xmax><ymax>{b[3]}</ymax></bndbox></object>" for name, b in boxes)
        (folder / "Annotations" / f"{number}.xml").write_text(f"<annotation>{objects}</annotation>")
    return folder


def table(folder: Path) -> Path:
    """The same as a table."""
    rows = ["file,x1,y1,x2,y2,label", "1.png,8,8,24,32,cup", "1.png,34,30,54,50,cat", "2.png,0,0,10,10,cat"]
    for number in (1, 2):
        photo(folder / f"{number}.png")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder
