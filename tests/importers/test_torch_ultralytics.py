"""An Ultralytics checkpoint beside what Ultralytics' own exporter makes of it."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

import vitrify as vt

pytest.importorskip("torch", reason="PyTorch is not installed (TORCH=no)")
ultralytics = pytest.importorskip("ultralytics", reason="the package ultralytics is not installed")

import torch  # noqa: E402  after the skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["yolov8n", "yolov8n-seg", "yolov8n-cls"])
def test_checkpoint_equals_ultralytics_own_export(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = ultralytics.YOLO(f"{name}.yaml").model
    model.args = {"imgsz": 64}
    path = tmp_path / f"{name}.pt"
    torch.save({"ema": copy.deepcopy(model).half(), "train_args": {"imgsz": 64}, "epoch": -1, "version": "8"}, path)
    theirs = ultralytics.YOLO(path).export(format="onnx", imgsz=64, simplify=False)
    image = np.random.default_rng(0).random((1, 3, 64, 64), np.float32)
    wanted = vt.run(theirs, {"images": image})
    found = vt.run(vt.load(path, trust=True), {"images": image})
    assert list(found) == list(wanted)
    for key, array in wanted.items():
        assert np.abs(found[key] - array).max() <= 1e-4 * max(1.0, float(np.abs(array).max()))
