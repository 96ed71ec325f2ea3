"""A search among the compiler's settings: never worse than the default, the whole curve told, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

import vitrify as vt
from vitrify import tflite
from vitrify.backends.vela import Setting, Trial, best, search_settings
from vitrify.backends.vela.searching import _settings
from vitrify.core.errors import UsageError
from vitrify.ir import DType, Graph, Model
from vitrify.ops import Conv2D
from vitrify.targets import load
from vitrify.targets.ethos_u.probes import Sketch

MEMORY = 393216


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three convolutions on an image that does not fit into on-chip memory."""
    graph = Graph("main")
    sketch = Sketch(graph, "n")
    value, channels = sketch.value((1, 112, 112, 8)), 8
    for count in (32, 64, 32):
        node = sketch.add(Conv2D(), [value, sketch.weights((count, 3, 3, channels)), sketch.bias(count)],
                          dtype=DType.INT8)
        value, channels = node.output, count
    graph.set_outputs([value])
    path = tmp_path_factory.mktemp("search") / "network.tflite"
    tflite.write(Model(graphs=[graph]), path)
    return path


def test_the_best_setting_is_kept_and_all_are_told(network: Path, tmp_path: Path) -> None:
    plain = vt.compile(network, "imx93", tmp_path / "plain.tflite")
    found = vt.compile(network, "imx93", tmp_path / "found.tflite", search=True, search_seconds=40)
    first = found.search[0]
    assert (first.arena_bytes, first.optimise) == (MEMORY, "Performance")
    assert plain.estimate.latency_ms == pytest.approx(first.latency_ms)
    kept = [row for row in found.search if row.chosen]
    assert len(kept) == 1
    assert kept[0].latency_ms == min(row.latency_ms for row in found.search if row.latency_ms is not None)
    assert found.estimate.latency_ms == pytest.approx(kept[0].latency_ms)
    assert len({(row.arena_bytes, row.optimise) for row in found.search}) == len(found.search) > 2
    assert all(0 < row.arena_bytes <= MEMORY for row in found.search)
    assert (tmp_path / "found.tflite").stat().st_size > 0


def test_without_time_the_default_is_compiled(network: Path) -> None:
    (trial,) = search_settings(network, load("imx93"), seconds=0.0)
    assert trial.setting == Setting(MEMORY)
    assert trial.latency_ms is not None
    assert best([trial]) is trial


def test_settings_are_tried_once_and_narrow_down_around_the_best() -> None:
    trials: list[Trial] = []
    asked = []
    for setting in _settings(MEMORY, trials):
        asked.append(setting)
        trials.append(Trial(setting=setting, latency_ms=abs(setting.arena_bytes / MEMORY - 0.55) + 1))
    assert len(set(asked)) == len(asked)
    winner = best(trials)
    assert winner is not None
    assert winner.setting.arena_bytes / MEMORY == pytest.approx(0.55, abs=0.02)


def test_failed_trials_are_no_winners() -> None:
    failed = Trial(setting=Setting(1024), problem="it died")
    assert best([failed]) is None
    good = Trial(setting=Setting(2048), latency_ms=2.0)
    assert best([failed, good, Trial(setting=Setting(4096), latency_ms=2.0)]) is good


@pytest.mark.parametrize("names", [["silly"], ["int8-matmuls"]], ids=["no such rewrite", "without a search"])
def test_rewrites_that_cannot_be_tried_are_refused(names: list[str], network: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        vt.compile(network, "imx93", tmp_path / "x.tflite", search=names == ["silly"], approximate=names)
    assert not (tmp_path / "x.tflite").exists()
