"""The published latencies: two fixed halves, each row with a model or a reason, each fact with its source."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import pytest
from drawn import Draw, conv, graph, mean, value

from vitrify import ops
from vitrify.ir import Node
from vitrify.targets import load
from vitrify.targets.estimating import Seconds
from vitrify.targets.ethos_u.probes.sketch import Sketch

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


def multiplied(channels: int) -> Draw:
    def draw(sketch: Sketch) -> Node:
        op = ops.DepthwiseConv2D(depth_multiplier=2)
        return sketch.add(op, [sketch.value((1, 8, 8, channels)), sketch.weights((1, 3, 3, 2 * channels)),
                               sketch.bias(2 * channels)])
    return draw


LEFT = {
    "ELU": (value(ops.Elu(), (1, 8, 8, 16)), True),
    "channels multiplied": (multiplied(8), True),
    "one channel multiplied": (multiplied(1), False),
    "large mean": (mean((1, 65, 64, 16), (1, 2)), True),
    "small mean": (mean((1, 64, 64, 16), (1, 2)), False),
    "convolution": (conv(), False),
}


@pytest.mark.parametrize(("draw", "left"), LEFT.values(), ids=LEFT)
def test_what_older_compilers_left(draw: Draw, left: bool) -> None:
    assert module("older").was_left(list(graph(draw))[-1]) is left


def test_the_plot_shows_every_row_on_its_place() -> None:
    points = [SimpleNamespace(row=SimpleNamespace(model="a <b>", group=group, ms=ms, first=first),
                              estimate=Seconds(ms / 2, ms, 2 * ms))
              for group, ms, first in (("imx93 NPU", 1.0, True), ("imx95 NPU", 100.0, False), ("imx93 CPU", 1e9, True))]
    root = ElementTree.fromstring(module("plot").plot(points))
    dots = [one for one in root.iter("{http://www.w3.org/2000/svg}circle") if one.get("stroke")]
    assert len(dots) == 3
    places = sorted((float(dot.get("cx", 0)), float(dot.get("cy", 0))) for dot in dots)
    assert [x for x, _ in places] == sorted({x for x, _ in places})
    assert [y for _, y in places] == sorted({y for _, y in places}, reverse=True)
    assert len({x + y for x, y in places}) == 1          # on the diagonal, within the frame
    assert {dot.get("fill") for dot in dots} == {"#ffffff", "#d55e00"}
