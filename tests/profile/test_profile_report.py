"""Profiles and builds as pages: the edges that graphs are drawn from, the same figures in the file and in the page."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import profile_models as models

import vitrify as vt
from vitrify.cli.main import call
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.profile import ProfileOptions, profile_model
from vitrify.results import RunRecord


def data_in(page: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])
    return found


def test_edges_of_source_and_result(tmp_path: Path) -> None:
    got = profile_model(models.classifier(tmp_path / "m.onnx"), ProfileOptions(target="imx93"), DataOptions(),
                        ConvertOptions()).result
    nodes = got.mapping.nodes
    after = {row.name: {nodes[number].name for number in row.after} for row in nodes}
    assert after["first"] == set()
    assert after["norm"] == {"first"}
    assert after["sum"] == {"second", "act"}
    assert all(maker < row.index for row in got.operators for maker in row.after)
    assert {row.index for row in got.operators if not row.after} < {0, 1}


def test_the_page_holds_what_json_prints(tmp_path: Path, capsys: object) -> None:
    page, model = tmp_path / "report.html", models.plain(tmp_path / "m.tflite")
    assert call(["profile", str(model), "--target", "imx93", "--report", str(page), "--csv", str(tmp_path / "a.csv"),
                 "--json", "--quiet"]) == 0
    printed = json.loads(capsys.readouterr().out)           # type: ignore[attr-defined]
    held = data_in(page)["profile"]
    assert isinstance(held, dict)
    differing = {key for key in printed if printed[key] != held.get(key)}
    assert differing <= {"exports", "command"}
    assert printed["exports"]["report"] == str(page)


def test_a_build_s_page_is_a_profile_s_too(tmp_path: Path) -> None:
    model, run = models.plain(tmp_path / "m.tflite"), tmp_path / "run"
    vt.build(model, target="imx93", output=run)
    record = msgspec.json.decode((run / "run.json").read_bytes(), type=RunRecord)
    assert record.profile is not None
    assert record.profile.total_ms == record.estimate.latency_ms
    assert len(record.profile.operators) == len(record.placement.verdicts)
    held = data_in(run / "report.html")
    assert sorted(held) == ["graph", "run", "source"]
    assert 'id="operators"' in (run / "report.html").read_text()
    again = vt.build(model, target="imx93", output=run)
    assert "compile" in again.reused
    assert msgspec.json.decode((run / "run.json").read_bytes(), type=RunRecord).profile == record.profile
