"""The published latencies: two fixed halves, each row with a model or a reason, each fact with its source."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from vitrify.targets import load

LATENCY = Path(__file__).resolve().parents[2] / "benchmarks" / "latency"
GROUPS = ["imx93 NPU", "imx95 NPU", "imx8mp NPU", "imx93 CPU"]


def module(name: str) -> ModuleType:
    """Import one file of the benchmark, which is no package."""
    key = f"latency_{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, LATENCY / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


ROWS = module("rows").rows()

HALVES = {"MobileNet V1": True, "MobileNet V2": True, "YOLOv8": True, "yolov8n": True, "yolov8x": True,
          "EfficientNet-lite": True, "ResNet50": False, "Tiny ResNet": False, "yolov8l": False, "WHENet": False,
          "SSDLite MobileNetV2": False, "yolo11s": False}


@pytest.mark.parametrize(("name", "first"), HALVES.items(), ids=HALVES)
def test_the_halves_are_fixed(name: str, first: bool) -> None:
    assert module("rows").is_first(name) is first


def test_every_row_has_a_model_or_a_reason() -> None:
    assert len(ROWS) > 300
    for row in ROWS:
        assert row.source, row
        assert bool(row.left) != any(key in row.recipe for key in module("rows").BUILT), row
        if not row.left:
            assert row.ms > 0
            assert load(row.target).name == row.target
            assert row.side in ("CPU", "NPU")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("first", [True, False])
def test_both_halves_have_rows(group: str, first: bool) -> None:
    assert sum(row.group == group and row.first is first and not row.left for row in ROWS) >= 8


def test_recipes_name_builders_that_there_are() -> None:
    made = {row.recipe["make"] for row in ROWS if "make" in row.recipe}
    assert len(made) > 10
    for recipe in made:
        file, function = recipe.split(".")
        tree = ast.parse((LATENCY / "builders" / f"{file}.py").read_text())
        assert function in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


THREADS = {"CPU": 1, "CPU 1 thread": 1, "CPU 4 threads": 4, "CPU Cortex-M33": 1, "NPU (Ethos-U65-256)": 1}


@pytest.mark.parametrize(("text", "threads"), THREADS.items(), ids=THREADS)
def test_threads_are_read(text: str, threads: int) -> None:
    assert module("rows")._threads(text) == threads
