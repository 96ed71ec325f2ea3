"""The YOLO models that ultralytics describes, decoded and fused as its own exporter ships them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from weights import observe, rescale

TASKS = {"detect": "DetectionModel", "segment": "SegmentationModel", "pose": "PoseModel", "obb": "OBBModel"}


def ultralytics(yaml: str, task: str = "detect", classes: int = 80, end2end: bool = False) -> nn.Module:
    """Return the network of an ultralytics description; in evaluation mode its head decodes boxes and scores.

    ``end2end``: of two heads the one whose detections need no suppression, sorted inside the model.
    """
    from ultralytics.nn import tasks

    net = getattr(tasks, TASKS[task])(yaml, ch=3, nc=classes, verbose=False)
    if hasattr(net.model[-1], "end2end"):
        net.model[-1].end2end = end2end
    net.model[-1].export = True             # the outputs of a shipped model alone, no training by-products
    return net


def finish(net: nn.Module, batch: tuple[torch.Tensor, ...]) -> nn.Module:
    """Give the head logits as a trained one has, then fuse and switch the blocks to their exported forms."""
    head: Any = net.model[-1]
    branches = [b for prefix in ("", "one2one_") for b in _branches(head, prefix)]
    for scores, boxes in branches:
        seen = observe(net, [scores, boxes], batch)
        rescale(scores, seen[0], 1.5, -4.0)           # scores spread over 0..0.9, most near 0
        rescale(boxes, seen[1], 2.0 if head.reg_max > 1 else 1.0)
    for module in net.modules():
        if type(module).__name__ == "C2f":
            module.forward = module.forward_split
    head.format, head.dynamic, head.shape = "onnx", False, None
    return net.fuse(verbose=False)


def _branches(head: Any, prefix: str) -> list[tuple[nn.Module, nn.Module]]:
    """Return the last layers for scores and boxes of each scale; none where the head has no such branch."""
    scores, boxes = getattr(head, f"{prefix}cv3", None), getattr(head, f"{prefix}cv2", None)
    return [(s[-1], b[-1]) for s, b in zip(scores, boxes, strict=True)] if scores is not None else []
