"""Ultralytics' models, told to give what its own ONNX export gives.

Source: ultralytics/engine/exporter.py, Exporter.__call__ and export_onnx; ultralytics/nn/tasks.py, load_checkpoint.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitrify.importers.sizes import Sizes
from vitrify.importers.torch.examples import random_tensor, shapes_given
from vitrify.importers.torch.outputs import named_outputs
from vitrify.importers.torch.source import TorchSource

_SIDE, _DETECTIONS, _STRIDE = 640, 300, 32
"""Source: ultralytics/cfg/default.yaml, "imgsz" and "max_det"; the stride of its detectors' last level."""
_VISION_OPERATORS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def make_ready(folder: Path) -> None:
    """Let the package be imported as part of unpickling: without writing settings, installing or asking the network."""
    os.environ.update(YOLO_CONFIG_DIR=str(folder), YOLO_AUTOINSTALL="false", YOLO_OFFLINE="true", YOLO_VERBOSE="false")
    try:
        importlib.import_module("torchvision")
    except ImportError:
        pass  # who needs it says so
    except RuntimeError:
        _declare_vision_operators()


def _declare_vision_operators() -> None:
    """Import torchvision beside a build of PyTorch for which its compiled operators do not load.

    It asks for two of them by name when it is imported; no exported graph calls them.
    """
    import torch

    for name, schema in _VISION_OPERATORS.items():
        torch.library.define(f"torchvision::{name}", schema)
    importlib.import_module("torchvision")


def is_ultralytics(module: Any) -> bool:
    """True for a model of that package."""
    return type(module).__module__.startswith("ultralytics.")


def from_ultralytics(label: str, module: Any, sizes: Sizes, arguments: Mapping[str, Any]) -> TorchSource:
    """Return the model with its heads set to export; ``arguments`` are those that it was trained with.

    Raises:
        UsageError: a shape for an input that there is not.
    """
    side = arguments.get("imgsz", _SIDE)
    height, width = (side, side) if isinstance(side, int) else (side[0], side[-1])
    channels = dict(getattr(module, "yaml", None) or {}).get("channels", 3)
    shape = shapes_given(label, ["images"], sizes).get("images") or (1, channels, int(height), int(width))
    for parameter in module.parameters():
        parameter.requires_grad = False
    module = module.eval().float()
    module = module.fuse() if hasattr(module, "fuse") else module
    strides = [int(s) for s in getattr(module, "stride", [_STRIDE])]
    for part in module.modules():
        _set_to_export(part, shape, strides)
    images = random_tensor(shape, name="images").sigmoid()
    made = named_outputs(module(images), ["images"])  # the first run makes the anchors
    outputs = [f"output{number}" for number in range(len(made))]
    return TorchSource(
        label, {"images": images}, module=module, outputs=outputs, metadata=_metadata(module, shape, max(strides))
    )


def _set_to_export(part: Any, shape: tuple[int, ...], strides: list[int]) -> None:
    kinds = {base.__name__ for base in type(part).__mro__}
    if kinds & {"Classify", "SemanticSegment", "Depth", "Detect", "RTDETRDecoder"}:
        part.export, part.format = True, "onnx"
    if kinds & {"Detect", "RTDETRDecoder"}:
        available = (
            part.num_queries
            if "RTDETRDecoder" in kinds
            else sum((shape[2] // stride) * (shape[3] // stride) for stride in strides)
        )
        part.max_det = min(_DETECTIONS, available)
        part.dynamic, part.xyxy, part.agnostic_nms, part.shape = False, False, False, None
    elif "C2f" in kinds and hasattr(part, "forward_split"):
        part.forward = part.forward_split


def _metadata(module: Any, shape: tuple[int, ...], stride: int) -> dict[str, str]:
    names = getattr(module, "names", None) or {}
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
    return {
        "names": str({int(key): str(value) for key, value in pairs}),
        "imgsz": str(list(shape[2:])),
        "stride": str(stride),
        "task": str(getattr(module, "task", "detect")),
        "batch": str(shape[0]),
        "channels": str(shape[1]),
    }
