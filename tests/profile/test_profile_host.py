"""Times on this machine: every node has its own, they make up the whole, and what does not run is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import profile_models as models
import pytest

import schema_models
from vitrify.core.errors import UsageError
from vitrify.core.findings import Severity
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.profile import ProfileOptions, profile_model
from vitrify.results import ProfileResult
from vitrify.results.profiling import MeasuredRow

ZOO = Path(__file__).resolve().parents[2] / ".cache" / "zoo" / "int8"
QUICK = ProfileOptions(runs=8, warmup=1)


def profile(path: Path, options: ProfileOptions = QUICK, data: DataOptions = DataOptions(),
            conversion: ConvertOptions = ConvertOptions()) -> ProfileResult:
    return profile_model(path, options, data, conversion).result


@pytest.mark.parametrize("xnnpack", [True, False], ids=["xnnpack", "plain"])
def test_every_node_is_timed_or_went_into_another(xnnpack: bool, tmp_path: Path) -> None:
    got = profile(models.plain(tmp_path / "m.tflite"), ProfileOptions(runs=8, warmup=1, xnnpack=xnnpack))
    assert (got.basis, got.nodes, len(got.operators)) == ("measured", 3, 3)
    assert {row.placement for row in got.operators} == {"xnnpack" if xnnpack else "cpu"}
    assert all(isinstance(row, MeasuredRow) and row.time_ms is not None and row.time is not None and
               row.time.runs == 8 and row.time.min_ms <= row.time.median_ms <= row.time.max_ms for row in got.operators)
    run = got.measurement
    assert run is not None
    assert run.whole.runs == 8
    assert got.total_ms == run.whole.quiet_ms
    assert run.profiled is not None
    assert run.sum_ratio is not None
    assert run.sum_ratio > 0
    assert sum(row.share or 0.0 for row in got.operators) == pytest.approx(1)
    sizes = got.operators[0]
    assert (sizes.input_bytes, sizes.output_bytes, sizes.weight_bytes) == (32 * 32 * 3, 16 * 16 * 16, 16 * 27 + 64)


def test_memory_is_what_litert_lays_out(tmp_path: Path) -> None:
    memory = profile(models.plain(tmp_path / "m.tflite")).memory
    assert memory.live_bytes == 16 * 16 * 16 + 16 * 16 * 32
    assert memory.peak_node == "conv_2d_1"
    assert memory.arena_bytes >= memory.live_bytes
    assert memory.weights_bytes == 16 * 27 + 64 + 32 * 144 + 128 + 8 * 32 + 32
    placed = [life for life in memory.lives if life.offset is not None]
    assert len(placed) == len(memory.lives) == 4
    for one in placed:
        assert one.offset is not None
        assert one.offset + one.bytes <= memory.arena_bytes
        for other in placed:
            together = one.first <= other.last and other.first <= one.last
            apart = other.offset is not None and (one.offset + one.bytes <= other.offset or
                                                  other.offset + other.bytes <= one.offset)
            assert one is other or apart or not together


def test_an_onnx_model_and_its_integers_stand_side_by_side(tmp_path: Path) -> None:
    got = profile(models.classifier(tmp_path / "m.onnx"), ProfileOptions(runs=5, warmup=1, integers=True))
    assert got.form == "quantized on random values"
    assert got.float_measurement is not None
    row = next(row for row in got.mapping.nodes if row.name == "second")
    assert row.float_form is not None
    assert row.integer_form is not None
    assert (row.float_form.types, row.integer_form.types) == (["float32"], ["int8"])
    assert row.float_form.time_ms is not None
    assert row.integer_form.time_ms is not None
    assert (row.float_form.bytes or 0) > 2 * (row.integer_form.bytes or 0)


def test_what_the_host_cannot_run_is_told_and_the_rest_shown(tmp_path: Path) -> None:
    got = profile(schema_models.custom(tmp_path / "m.tflite"))
    assert not got.ok
    assert [f.severity for f in got.findings if f.severity is Severity.ERROR]
    assert got.total_ms is None
    assert [row.time_ms for row in got.operators] == [None] * got.nodes
    assert got.operators[0].bytes > 0
    assert got.memory.live_bytes > 0


def test_data_that_does_not_fit_is_told_and_random_values_are_taken(tmp_path: Path) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((2, 7), np.float32))
    got = profile(models.plain(tmp_path / "m.tflite"), data=DataOptions(path=tmp_path / "wrong.npy"))
    assert not got.ok
    assert got.total_ms is not None
    assert got.measurement is not None
    assert got.measurement.inputs == "random values, seed 0"


def test_real_data_is_used(tmp_path: Path) -> None:
    np.save(tmp_path / "right.npy", np.zeros((2, 32, 32, 3), np.float32))
    got = profile(models.plain(tmp_path / "m.tflite"), data=DataOptions(path=tmp_path / "right.npy"))
    assert got.ok
    assert got.measurement is not None
    assert got.measurement.inputs.startswith("the first sample of ")


@pytest.mark.parametrize("options", [ProfileOptions(runs=0), ProfileOptions(threads=0), ProfileOptions(warmup=-1)],
                         ids=["runs", "threads", "warmup"])
def test_senseless_figures_are_refused(options: ProfileOptions, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not between"):
        profile(tmp_path / "m.tflite", options)


SIX = ("mobilenet_v2", "yolov8n", "deit_tiny", "minilm", "ds_cnn", "efficientnet_lite0", "unet")
TRIES = 4


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize("xnnpack", [True, False], ids=["xnnpack", "plain"])
@pytest.mark.parametrize("name", SIX)
def test_the_operators_make_up_the_whole(name: str, xnnpack: bool) -> None:
    path = ZOO / f"{name}.int8.tflite"
    if not path.exists():
        pytest.skip("not in .cache/zoo/int8; `make zoo-int8` makes it")
    for _ in range(TRIES):                 # a machine that works on something else disturbs a measurement
        got = profile(path, ProfileOptions(xnnpack=xnnpack))
        assert got.measurement is not None
        ratio = got.measurement.sum_ratio
        assert ratio is not None
        if abs(ratio - 1) <= 0.1:
            break
    assert abs(ratio - 1) <= 0.1


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize("name", SIX)
def test_the_whole_is_what_litert_s_own_benchmark_says(name: str, tmp_path: Path) -> None:
    path = ZOO / f"{name}.int8.tflite"
    if not path.exists():
        pytest.skip("not in .cache/zoo/int8; `make zoo-int8` makes it")
    ratios = []
    for _ in range(TRIES):
        whole = profile(path).measurement
        assert whole is not None
        subprocess.run([sys.executable, "-m", "ai_edge_litert.tools.benchmark_litert_model", f"--model={path}",
                        "--num_runs=60", "--num_threads=1", f"--result_json={tmp_path / 'b.json'}"], check=True,
                       capture_output=True)
        theirs = json.loads((tmp_path / "b.json").read_text())["latency"]
        ratios.append(whole.whole.min_ms / theirs["min_ms"])
        if abs(ratios[-1] - 1) <= 0.2:
            break
    assert abs(ratios[-1] - 1) <= 0.2, ratios
