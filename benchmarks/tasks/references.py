"""What other implementations make of the outputs of tests/tasks/reference_cases.py, stored beside the tests.

Run in the zoo's environment, which has them:

    .cache/zoo/venv/bin/python benchmarks/tasks/references.py

Their answers, with the packages' versions, go to tests/tasks/references/*.json; outputs are made from seeds, or by the
pretrained detector on a photo.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "tasks" / "references"
sys.path.insert(0, str(ROOT / "tests" / "tasks"))

from reference_cases import CASES, SIZE  # noqa: E402

Found = dict[str, Any]
try:
    import torchvision
except RuntimeError:       # a build whose operators do not fit torch: only that of suppression is needed
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for one in ("nms", "qnms"):
        LIBRARY.define(f"{one}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

    def suppress(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
        from ultralytics.utils.nms import TorchNMS

        return TorchNMS.nms(dets, scores, iou_threshold)

    LIBRARY.impl("nms", suppress, "CPU")
    for name in [n for n in sys.modules if n.startswith("torchvision")]:
        del sys.modules[name]
    import torchvision.extension

    torchvision.extension._has_ops = lambda: True
MADE: dict[str, tuple[str, Callable[[dict[str, torch.Tensor]], Found]]] = {}
SCORE = 0.25


def made(case: str, package: str) -> Callable[[Callable[[dict[str, torch.Tensor]], Found]],
                                              Callable[[dict[str, torch.Tensor]], Found]]:
    def register(function: Callable[[dict[str, torch.Tensor]], Found]) -> Callable[[dict[str, torch.Tensor]], Found]:
        MADE[case] = (package, function)
        return function
    return register


def nms(prediction: torch.Tensor, **more: Any) -> torch.Tensor:
    from ultralytics.utils.nms import non_max_suppression

    return non_max_suppression(prediction.clone(), SCORE, 0.45, max_time_img=100, **more)[0]


def plain(rows: torch.Tensor) -> Found:
    return {"boxes": rows[:, :4].tolist(), "scores": rows[:, 4].tolist(), "labels": rows[:, 5].int().tolist()}


@made("yolov8", "ultralytics")
def yolov8(given: dict[str, torch.Tensor]) -> Found:
    return plain(nms(given["output0"]))


MADE["yolov8-one-class"] = MADE["yolov8"]


@made("yolov8-seg", "ultralytics")
def seg(given: dict[str, torch.Tensor]) -> Found:
    from ultralytics.utils.ops import process_mask

    rows = nms(given["output0"], nc=80)
    masks = process_mask(given["output1"][0], rows[:, 6:], rows[:, :4], SIZE, upsample=True)
    return plain(rows) | {"areas": masks.sum((1, 2)).int().tolist(),
                          "columns": [(m.sum(0) > 0).int().nonzero()[[0, -1], 0].tolist() for m in masks]}


@made("yolov8-pose", "ultralytics")
def pose(given: dict[str, torch.Tensor]) -> Found:
    rows = nms(given["output0"], nc=1)
    return plain(rows) | {"points": rows[:, 6:].view(len(rows), 17, 3).tolist()}


@made("yolov8-obb", "ultralytics")
def obb(given: dict[str, torch.Tensor]) -> Found:
    from ultralytics.utils.ops import xywhr2xyxyxyxy

    rows = nms(given["output0"], nc=15, rotated=True)
    turned = torch.cat([rows[:, :4], rows[:, -1:]], 1)
    return {"scores": rows[:, 4].tolist(), "labels": rows[:, 5].int().tolist(), "turned": turned.tolist(),
            "quads": xywhr2xyxyxyxy(turned).tolist()}


@made("yolov8-heads", "ultralytics")
def heads(given: dict[str, torch.Tensor]) -> Found:
    from ultralytics.nn.modules.block import DFL
    from ultralytics.utils.tal import dist2bbox, make_anchors

    levels = list(given.values())
    anchors, strides = (t.T for t in make_anchors(levels, torch.tensor([8.0, 16.0, 32.0]), 0.5))
    box, cls = torch.cat([level.view(1, 144, -1) for level in levels], 2).split((64, 80), 1)
    decoded = dist2bbox(DFL(16)(box), anchors[None], xywh=True, dim=1) * strides
    return plain(nms(torch.cat([decoded, cls.sigmoid()], 1)))


@made("end2end", "ultralytics")
def end2end(given: dict[str, torch.Tensor]) -> Found:
    return plain(nms(given["output0"]))


def named(found: dict[str, torch.Tensor]) -> Found:
    order = torch.argsort(found["scores"], descending=True, stable=True)
    return {name: found[name][order].tolist() for name in ("boxes", "scores", "labels")}


@made("detr", "transformers")
def detr(given: dict[str, torch.Tensor]) -> Found:
    from transformers.models.detr.image_processing_detr import DetrImageProcessor

    outputs = SimpleNamespace(logits=given["logits"], pred_boxes=given["boxes"])
    return named(DetrImageProcessor().post_process_object_detection(outputs, SCORE, [SIZE])[0])


@made("rt-detr", "transformers")
def rt_detr(given: dict[str, torch.Tensor]) -> Found:
    from transformers.models.rt_detr.image_processing_rt_detr import RTDetrImageProcessor

    outputs = SimpleNamespace(logits=given["logits"], pred_boxes=given["boxes"])
    return named(RTDetrImageProcessor().post_process_object_detection(outputs, SCORE, [SIZE])[0])


@made("rf-detr", "rfdetr")
def rf_detr(given: dict[str, torch.Tensor]) -> Found:
    from rfdetr.models.postprocess import PostProcess

    outputs = {"pred_logits": given["logits"], "pred_boxes": given["boxes"]}
    found = PostProcess(num_select=300)(outputs, torch.tensor([SIZE]))[0]
    kept = found["scores"] > SCORE
    return named({name: value[kept] for name, value in found.items()})


@made("ssd", "torchvision")
def ssd(given: dict[str, torch.Tensor]) -> Found:
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large

    net = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, score_thresh=SCORE)
    corners = given["boxes"][0]
    anchors = torch.cat([corners[:, :2] - 3, corners[:, 2:] + 5], 1)          # any: boxes are coded against them
    coded = net.box_coder.encode_single(corners, anchors)
    head = {"bbox_regression": coded[None], "cls_logits": given["scores"].log()}
    return named(net.postprocess_detections(head, [anchors], [(320, 320)])[0])


@made("segformer", "transformers")
def segformer(given: dict[str, torch.Tensor]) -> Found:
    from transformers.models.segformer.image_processing_segformer import SegformerImageProcessor

    outputs = SimpleNamespace(logits=given["logits"])
    labels = SegformerImageProcessor().post_process_semantic_segmentation(outputs, [(128, 128)])[0]
    return {"counts": torch.bincount(labels.flatten(), minlength=19).tolist(), "labels": labels[::4, ::4].tolist()}


def photo() -> None:
    """The pretrained detector's own output on a photo, decoded by Ultralytics down to the photo's pixels."""
    from ultralytics.utils.ops import scale_boxes

    found = {}
    for name in ("zidane.jpg", "bus.jpg"):
        stored = np.load(ROOT / ".cache" / "tasks" / f"{Path(name).stem}.npz")
        rows = nms(torch.from_numpy(stored["output"]))
        shape = tuple(int(v) for v in stored["shape"])
        rows[:, :4] = scale_boxes(SIZE, rows[:, :4], shape)
        found[name] = plain(rows)
    keep("photos", "ultralytics", found)


def keep(name: str, package: str, found: Any) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    origin = f"{package} {version(package)}, torch {torch.__version__}"
    (KEPT / f"{name}.json").write_text(json.dumps({"origin": origin, "found": rounded(found)}) + "\n")
    print(name, origin)


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return {k: rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case, outputs in CASES.items():
        package, function = MADE[case]
        keep(case, package, function({k: torch.from_numpy(v) for k, v in outputs().items()}))
    if (ROOT / ".cache" / "tasks" / "zidane.npz").exists():
        photo()
