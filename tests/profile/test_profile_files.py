"""Profiles beside each other and in files: the program as users call it, tables, traces and node data."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import profile_models as models
import pytest

from vitrify import tflite
from vitrify.core.errors import UsageError
from vitrify.core.progress import Silent
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.command import Asked, profile_file
from vitrify.pipeline.profiling.profile import ProfileOptions
from vitrify.report.schema import schema_of
from vitrify.results import ProfileResult

HOST, CHIP = ProfileOptions(runs=4, warmup=1), ProfileOptions(target="imx93")


def profile(path: Path, options: ProfileOptions = CHIP, **asked: Any) -> ProfileResult:
    return profile_file(path, options, Asked(**asked), DataOptions(), ConvertOptions(), Silent())


def stored(path: Path, result: ProfileResult) -> Path:
    result.command = "profile"
    path.write_bytes(msgspec.json.encode(result))
    return path


def test_a_profile_survives_json(tmp_path: Path) -> None:
    for options in (HOST, CHIP):
        got = profile(models.plain(tmp_path / "m.tflite"), options)
        again = msgspec.json.decode(msgspec.json.encode(got), type=ProfileResult)
        assert again == got
        assert {type(row) for row in again.operators} == {type(row) for row in got.operators}
        plain = msgspec.to_builtins(got)
        assert {row["basis"] for row in plain["operators"]} == {got.basis}
        assert {"node", "operator", "time_ms", "bytes", "placement"} <= set(plain["operators"][0])


def test_a_profile_beside_a_stored_one(tmp_path: Path) -> None:
    path = models.plain(tmp_path / "m.tflite")
    before = stored(tmp_path / "before.json", profile(path))
    got = profile(path, compare=before, fail_if=("latency_ms>+5%", "npu_coverage<0.99"))
    assert got.ok
    assert [gate.failed for gate in got.gates] == [False, False]
    found = got.comparison
    assert found is not None
    assert (found.related, found.alike) == (True, 1.0)
    assert {pair.change_ms for pair in found.operators} == {0.0}
    assert all(delta.change in (0.0, None) for delta in found.figures)


def test_a_slower_model_fails_the_gate(tmp_path: Path) -> None:
    got = profile(models.island(tmp_path / "slow.tflite"), compare=models.plain(tmp_path / "m.tflite"),
                  fail_if=("npu_calls>+0", "npu_coverage<-1%"))
    assert not got.ok
    assert [gate.failed for gate in got.gates] == [True, True]
    assert [f.code for f in got.findings if f.code == "profile.gate-failed"] == ["profile.gate-failed"] * 2


def test_unrelated_models_are_compared_by_totals_only(tmp_path: Path) -> None:
    got = profile(models.attention(tmp_path / "a.onnx"), compare=models.plain(tmp_path / "m.tflite"))
    assert got.comparison is not None
    assert not got.comparison.related
    assert got.comparison.operators == []
    assert next(f for f in got.findings if f.code == "profile.unrelated")
    assert next(row for row in got.comparison.figures if row.name == "latency_ms").change is not None


def test_a_measurement_and_an_estimate_share_no_column(tmp_path: Path) -> None:
    path = models.plain(tmp_path / "m.tflite")
    got = profile(path, compare=stored(tmp_path / "before.json", profile(path, HOST)))
    assert got.comparison is not None
    assert not [row for row in got.comparison.figures if row.name.endswith("_ms")]
    assert got.comparison.operators == []
    assert next(f for f in got.findings if f.code == "profile.compare-unlike")


@pytest.mark.parametrize("text", ["{}", "{", '{"command": "diff", "schema_version": 1}'], ids=["empty", "cut", "other"])
def test_what_is_no_profile_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(text)
    with pytest.raises(UsageError, match=r"before\.json is (no profile|the answer of)"):
        profile(models.plain(tmp_path / "m.tflite"), compare=tmp_path / "before.json")


@pytest.mark.parametrize("asked", [
    {"fail_if": ("latency_ms>+5%",)}, {"host": True}, {"xnnpack": True, "no_xnnpack": True}],
    ids=["nothing to compare with", "host and target", "both kernels"])
def test_a_call_that_contradicts_itself_is_refused(asked: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        profile(models.plain(tmp_path / "m.tflite"), **asked)


def test_exports_open_elsewhere(tmp_path: Path) -> None:
    files = {"csv": tmp_path / "p.csv", "trace": tmp_path / "p.json", "model-explorer": tmp_path / "n.json"}
    got = profile(models.island(tmp_path / "m.tflite"), exports=files)
    assert got.exports == {kind: str(path) for kind, path in files.items()}
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert [row["node"] for row in rows] == [*(r.node for r in got.operators), *(r.what for r in got.overhead)]
    assert sum(float(row["estimated_ms"] or 0) for row in rows) == pytest.approx(got.total_ms)
    assert "measured_ms" not in rows[0]
    events = json.loads(files["trace"].read_text())["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    assert sum(event["dur"] for event in bars) == pytest.approx(1e3 * sum(r.time_ms or 0 for r in got.operators))
    assert all(a["ts"] + a["dur"] == pytest.approx(b["ts"]) for a, b in pairwise(bars))
    data = json.loads(files["model-explorer"].read_text())["main"]
    assert data["results"] == {str(r.index): {"value": r.time_ms} for r in got.operators if r.time_ms is not None}
    assert (data["gradient"][0]["stop"], data["gradient"][-1]["stop"]) == (0, 1)


def test_the_profiled_file_can_be_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept.tflite"
    got = profile(models.classifier(tmp_path / "m.onnx"), msgspec.structs.replace(CHIP, save=kept))
    assert got.exports == {"model": str(kept)}
    assert [node.name for node in tflite.read(kept).main] == [row.node for row in got.operators]
    assert kept.stat().st_size == got.bytes


def test_python_has_it_too(tmp_path: Path) -> None:
    import vitrify as vt

    path = models.plain(tmp_path / "m.tflite")
    got = vt.profile(vt.load(path), "imx93", compare=path, fail_if=["latency_ms>+1%"])
    assert (got.command, got.ok) == ("profile", True)
    assert callable(vt.profile)


@pytest.mark.parametrize("options", [HOST, CHIP], ids=["host", "chip"])
def test_the_rows_are_a_graph_and_fit_the_schema(options: ProfileOptions, tmp_path: Path) -> None:
    got = profile(models.attention(tmp_path / "m.onnx"), options)
    assert all(before < row.index for row in got.operators for before in row.after)
    assert any(len(row.after) == 2 for row in got.operators)
    got.command = "profile"
    jsonschema.validate(msgspec.to_builtins(got), schema_of("profile"))
