"""Estimates against what is published: networks of the same architectures, with random weights of a trained look."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from vela_networks import EFFICIENTNET_LITE0, MOBILENET_V2, inverted_residuals, mobilenet_v1, resnet50

from vitrify import tflite
from vitrify.backends.vela import check_model
from vitrify.targets import Target, load
from vitrify.targets.estimating import cpu_seconds, total

PUBLISHED_MS = {      # i.MX 93 EVK, NPU. Source: github.com/NXP/eiq-model-zoo
    "MobileNetV1 0.25 128": (mobilenet_v1, 0.37),
    "MobileNetV2 224": (partial(inverted_residuals, stages=MOBILENET_V2), 3.46),
    "EfficientNet-Lite0 224": (partial(inverted_residuals, stages=EFFICIENTNET_LITE0), 4.57),
    "ResNet50 224": (resnet50, 28.0),
}


@pytest.mark.slow
@pytest.mark.parametrize(("build", "measured"), PUBLISHED_MS.values(), ids=PUBLISHED_MS)
def test_the_published_time_lies_in_the_interval(build: Callable[[Path], Path], measured: float,
                                                 tmp_path: Path) -> None:
    got = check_model(build(tmp_path / "m.tflite"), "imx93")
    assert got.placement.coverage.nodes == 1
    assert got.estimate.low_ms <= measured <= got.estimate.high_ms
    assert abs(got.estimate.latency_ms / measured - 1) < 0.2


PUBLISHED_CPU_MS = {      # i.MX 93 EVK, CPU 1 thread. Source: as above
    "MobileNetV1 0.25 128": 3.63, "MobileNetV2 224": 62.51, "EfficientNet-Lite0 224": 80.4, "ResNet50 224": 303.0}


@pytest.mark.parametrize("name", PUBLISHED_CPU_MS)
def test_the_published_time_of_one_core_lies_in_the_interval(name: str, tmp_path: Path) -> None:
    graph = tflite.read(PUBLISHED_MS[name][0](tmp_path / "m.tflite")).main
    got = total(cpu_seconds(node, load("imx93")) for node in graph)
    assert got.low * 1e3 <= PUBLISHED_CPU_MS[name] <= got.high * 1e3
    assert got.low < got.likely < got.high


def with_dram(bytes_per_s: float) -> Target:
    chip = load("imx93")
    fact = msgspec.structs.replace(chip.fact("dram_bytes_per_s"), value=bytes_per_s)
    return msgspec.structs.replace(chip, facts={**chip.facts, "dram_bytes_per_s": fact})


@pytest.mark.slow
def test_the_bounds_cover_a_compile_at_that_bandwidth(tmp_path: Path) -> None:
    path = inverted_residuals(tmp_path / "m.tflite", MOBILENET_V2)
    dram = load("imx93").fact("dram_bytes_per_s")
    got = check_model(path, "imx93").estimate
    slow, fast = (check_model(path, with_dram(bound)).estimate for bound in dram.bounds)
    driver = load("imx93").fact("driver_call_s").bounds
    assert got.high_ms - driver[1] * 1e3 >= slow.npu_ms * 0.95
    assert got.low_ms - driver[0] * 1e3 <= fast.npu_ms
