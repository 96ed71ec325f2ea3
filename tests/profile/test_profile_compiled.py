"""A compiled file says itself what its commands cost: the same figures as its source has for the chip."""

from __future__ import annotations

from pathlib import Path

import profile_models as models
import pytest

import vitrify as vt
from vitrify.results import ProfileResult


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    models.runnable_island(folder / "m.tflite")
    vt.compile(folder / "m.tflite", "imx93", folder / "m_vela.tflite")
    return folder


@pytest.fixture(scope="module")
def simulated(made: Path) -> ProfileResult:
    return vt.profile(made / "m_vela.tflite", on="npusim")


def test_the_figures_are_those_of_the_source(made: Path, simulated: ProfileResult) -> None:
    source = vt.profile(made / "m.tflite", "imx93")
    assert simulated.cycles is not None
    assert source.cycles is not None
    assert (simulated.target, simulated.basis, simulated.compiler) == ("imx93", "estimated", source.compiler)
    assert simulated.cycles.operators + simulated.cycles.overhead == simulated.cycles.total
    assert simulated.cycles.total == source.cycles.total - source.cycles.passed_through
    assert simulated.total_ms == pytest.approx(source.total_ms)
    assert simulated.estimate is not None
    assert source.estimate is not None
    assert simulated.estimate.high_ms == pytest.approx(source.estimate.high_ms)
    assert {r.node: r.cycles for r in simulated.operators if r.placement == "npu"} == {
        r.node: r.cycles for r in source.operators if r.placement == "npu" and r.cycles}


def test_operators_and_overhead_add_up(simulated: ProfileResult) -> None:
    assert sum(row.time_ms or 0 for row in (*simulated.operators, *simulated.overhead)) == pytest.approx(
        simulated.total_ms)
    assert [row.operator for row in simulated.operators if row.placement == "cpu"]


def test_the_simulator_counts_what_each_node_moves(made: Path, simulated: ProfileResult) -> None:
    moved = [row for row in simulated.operators if row.placement == "npu"]
    assert all(row.bytes == row.input_bytes + row.weight_bytes + row.output_bytes > 0 for row in moved)
    assert sum(row.bytes for row in vt.profile(made / "m_vela.tflite").operators if row.placement == "npu") == 0


def test_a_gate_judges_a_compiled_file(made: Path) -> None:
    assert not vt.profile(made / "m_vela.tflite", fail_if=["npu_coverage<1"]).ok
    assert vt.profile(made / "m_vela.tflite", "imx93", fail_if=["latency_ms>1000"]).ok


def test_what_says_nothing_of_its_commands_is_refused_with_the_way(made: Path) -> None:
    bare = made / "bare.tflite"
    bare.write_bytes((made / "m_vela.tflite").read_bytes().replace(b"vitrify.commands", b"unknown.commands"))
    with pytest.raises(vt.VitrifyError, match="does not say what its commands compute") as refused:
        vt.profile(bare)
    assert "vitrify compile" in refused.value.findings[0].help


@pytest.mark.parametrize(("file", "target", "options", "code"), [
    ("m_vela.tflite", "imx95", {}, "profile.compiled-for"),
    ("m_vela.tflite", "imx93", {"memory_modes": True}, "profile.compiled-once"),
    ("m.tflite", "imx93", {"on": "npusim"}, "profile.on"),
    ("m.tflite", "imx93", {"on": "the moon"}, "profile.on"),
])
def test_a_call_that_does_not_fit_is_refused(made: Path, file: str, target: str, options: dict[str, object],
                                             code: str) -> None:
    with pytest.raises(vt.VitrifyError) as refused:
        vt.profile(made / file, target, **options)  # type: ignore[arg-type]
    assert [f.code for f in refused.value.findings] == [code]
