"""Estimates: each cycle of the compiler belongs to a node of the user or is listed, and times add up."""

from __future__ import annotations

from pathlib import Path

import profile_models as models
import pytest

from vitrify import tflite
from vitrify.backends.base import Compiled
from vitrify.backends.vela import check_model
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.profile import ProfileOptions, profile_model
from vitrify.profile.chip import of_compiled, unowned_cycles
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow
from vitrify.targets import load

ZOO = Path(__file__).resolve().parents[2] / ".cache" / "zoo" / "int8"
FIGURES = {"cycles": "cycles", "compute": "compute_cycles", "near": "near_cycles", "far": "far_cycles",
           "macs": "macs", "near_bytes": "near_bytes", "far_bytes": "far_bytes"}
"""Vela's totals, and the figure of a layer that they are the sum of."""


def estimated(path: Path, target: str = "imx93", **options: bool) -> ProfileResult:
    return profile_model(path, ProfileOptions(target=target, **options), DataOptions(), ConvertOptions()).result


def nothing_is_lost(path: Path, compiled: Compiled) -> None:
    """Vela's layers and totals against ours, to the last cycle."""
    found = of_compiled(tflite.read(path).main, compiled, load("imx93"))
    assert found.cycles is not None
    assert unowned_cycles(found.rows, found.cycles) == 0
    assert found.cycles.total == found.cycles.operators + found.cycles.overhead + found.cycles.passed_through
    layers = [layer for row in found.rows for layer in row.layers]
    layers += [row.layer for row in found.rest if row.layer is not None]
    for total, figure in FIGURES.items():
        passed = found.cycles.passed_through if total == "cycles" else 0
        assert sum(getattr(layer, figure) for layer in layers) + passed == compiled.totals[total], total
    estimate = compiled.estimate
    assert estimate is not None
    assert sum(row.time_ms or 0 for row in (*found.rows, *found.rest)) == pytest.approx(estimate.latency_ms)


def test_every_cycle_is_a_node_s(tmp_path: Path) -> None:
    path = models.island(tmp_path / "m.tflite")
    compiled = check_model(path, "imx93")
    nothing_is_lost(path, compiled)
    assert compiled.placement.npu_partitions == 2


ZOO_MODELS = ("mobilenet_v2", "yolov8n", "deit_tiny", "minilm", "ds_cnn", "efficientnet_lite0", "unet", "resnet50",
              "efficientdet_lite0", "mobilenet_v3_small", "lstm", "wav2letter")


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize("name", ZOO_MODELS)
def test_every_cycle_of_a_zoo_model_is_a_node_s(name: str) -> None:
    path = ZOO / f"{name}.int8.tflite"
    if not path.exists():
        pytest.skip("not in .cache/zoo/int8; `make zoo-int8` makes it")
    nothing_is_lost(path, check_model(path, "imx93"))


def test_an_island_on_the_cpu_is_priced_and_explained(tmp_path: Path) -> None:
    got = estimated(models.island(tmp_path / "m.tflite"))
    square = next(row for row in got.operators if row.operator == "SQUARE")
    assert isinstance(square, EstimatedRow)
    assert square.placement == "cpu"
    assert square.time_ms is not None
    assert square.time_ms > 0
    assert (square.low_ms or 0) < square.time_ms < (square.high_ms or 0)
    island = next(row for row in got.advice if row.kind == "island" and "SQUARE" not in row.headline)
    assert island.rule == "ethos-u.unsupported-operator"
    assert (island.bytes or 0) >= 2 * 16 * 16 * 16
    assert any("driver" in row.what and row.count == 2 for row in got.overhead)
    assert "GB/s" in got.source
    assert got.roofline is not None
    assert got.roofline.bytes_per_s == load("imx93").far_bytes_per_s.value


def test_a_chip_without_a_compiler_is_priced_by_our_own_model(tmp_path: Path) -> None:
    got = estimated(models.plain(tmp_path / "m.tflite"), "imx95")
    assert (got.basis, got.cycles) == ("estimated", None)
    assert got.estimate is not None
    assert got.total_ms == got.estimate.latency_ms
    assert sum(row.time_ms or 0 for row in (*got.operators, *got.overhead)) == pytest.approx(got.total_ms)
    assert all(isinstance(row, EstimatedRow) and row.source and row.bound for row in got.operators)


def test_memory_modes_are_compared(tmp_path: Path) -> None:
    got = estimated(models.plain(tmp_path / "m.tflite"), modes=True)
    assert [mode.mode for mode in got.memory.modes] == ["Sram_Only", "Shared_Sram", "Dedicated_Sram"]
    assert [mode.usual for mode in got.memory.modes].count(True) == 1
    assert all(mode.latency_ms and not mode.problem for mode in got.memory.modes)
    assert got.memory.near_limit_bytes == 393216
    assert {life.memory for life in got.memory.placed} <= {"Sram", "Dram"}
    assert got.memory.placed
