"""Compiling for a closed compiler: what is known without it, and whether a damaged file is found, and where."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "backends"))

from neutron_stand_in.making import five_graphs, make_sdk

from vitrify import tflite
from vitrify.backends.base import CompilerOptions
from vitrify.backends.neutron.installed import VARIABLE
from vitrify.core.errors import DataError
from vitrify.core.findings import Severity
from vitrify.pipeline.building.build import BuildOptions, build_run
from vitrify.pipeline.compiling.compile import compile_file, driver_for
from vitrify.pipeline.compiling.verifying import Verified, VerifyOptions, verify_compiled
from vitrify.results import CompileResult, RunRecord
from vitrify.runtimes.litert import LiteRT
from vitrify.targets import load

DAMAGES = ("swap-channels", "zero-point", "drop-requantise")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return five_graphs(tmp_path_factory.mktemp("model") / "m.tflite", graphs=5)


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))      # nor found in this user's own file


def compiled(model: Path, sdk: Path | str, folder: Path, **verify: Any) -> CompileResult:
    return compile_file(model, "imx95", folder / "out.tflite", compiler=CompilerOptions(where=str(sdk)),
                        verify=VerifyOptions(**verify))


def codes(result: CompileResult) -> list[str]:
    return [finding.code for finding in result.findings]


def test_without_the_sdk_the_rules_answer_and_nothing_is_ok(model: Path, tmp_path: Path) -> None:
    got = compiled(model, "", tmp_path)
    assert not got.ok
    assert got.findings[0].code == "neutron.not-installed"
    assert f"neutron-converter --input {model} --output m_neutron.tflite --target imx95" in got.findings[0].help
    assert got.placement.npu == 10
    assert got.estimate.latency_ms is not None
    assert (got.output, list(tmp_path.glob("*.tflite"))) == ("", [])


def test_a_sound_file_is_verified(model: Path, tmp_path: Path) -> None:
    got = compiled(model, make_sdk(tmp_path / "sdk"), tmp_path)
    assert got.ok
    assert got.verification is not None
    assert got.verification.outputs[0].equal
    assert "compile.verified" in codes(got)


@pytest.mark.parametrize(("damage", "graph"), [
    ("swap-channels", 0), pytest.param("zero-point", 2, marks=pytest.mark.slow),
    pytest.param("drop-requantise", 4, marks=pytest.mark.slow)])
def test_a_damaged_part_is_found_in_few_runs(damage: str, graph: int, model: Path, tmp_path: Path) -> None:
    sdk = make_sdk(tmp_path / "sdk", damage={"graph": graph, "how": damage})
    got = compiled(model, sdk, tmp_path)
    assert not got.ok
    assert got.first_divergence is not None
    assert got.first_divergence.startswith("compile: output '")
    found = {finding.code: finding for finding in got.findings if finding.severity is Severity.ERROR}
    assert set(found) == {"compile.damaged", "compile.guilty-part"}
    guilty = found["compile.guilty-part"]
    assert guilty.headline.startswith(f"part {graph + 1} of 5 on the NPU is computed wrongly: 2 nodes")
    assert guilty.where == f"nodes 'conv{graph}a' to 'conv{graph}b'"
    runs = int(guilty.why.split("found in ")[1].split()[0])
    assert runs <= math.ceil(math.log2(5)) + 2
    alone = tmp_path / "out_guilty.tflite"
    assert [node.name for node in tflite.read(alone).main] == [f"conv{graph}a", f"conv{graph}b"]
    assert alone.stat().st_size < model.stat().st_size
    with np.load(tmp_path / "out_guilty.npz") as values, LiteRT(alone) as runtime:
        (taken,), (given,) = (tflite.read(alone).main.inputs, tflite.read(alone).main.outputs)
        for sample, wanted in zip(values[taken.name], values[given.name], strict=True):
            assert np.array_equal(runtime.invoke_raw([sample])[0], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("graph", range(5))
def test_every_damage_of_every_part_is_found(damage: str, graph: int, model: Path, tmp_path: Path) -> None:
    got = compiled(model, make_sdk(tmp_path / "sdk", damage={"graph": graph, "how": damage}), tmp_path)
    assert [f.where for f in got.findings if f.code == "compile.guilty-part"] == [
        f"nodes 'conv{graph}a' to 'conv{graph}b'"]


@pytest.mark.parametrize("settings", [{"runner": False}, {"mode": "runner-fails"}], ids=["none", "failing"])
def test_without_a_way_to_run_it_the_answer_says_so(settings: dict[str, Any], model: Path, tmp_path: Path) -> None:
    got = compiled(model, make_sdk(tmp_path / "sdk", **settings), tmp_path)
    finding = next(f for f in got.findings if f.code == "compile.not-verified")
    assert finding.headline.startswith("not verified after compilation: ")
    assert finding.severity is Severity.WARNING
    assert got.verification is None


@pytest.mark.slow
def test_a_tolerance_is_taken_at_its_word(model: Path, tmp_path: Path) -> None:
    sdk = make_sdk(tmp_path / "sdk", damage={"graph": 4, "how": "swap-channels"})
    assert compiled(model, sdk, tmp_path, steps=255.0).ok


def recorded(model: Path, path: Path, error: int = 0, **more: Any) -> Path:
    main = tflite.read(model).main
    random = np.random.default_rng(1)
    given = random.integers(-128, 128, (2, *main.inputs[0].shape), np.int8)
    with LiteRT(model) as runtime:
        answers = np.stack([runtime.invoke_raw([one])[0] for one in given])
    values: dict[str, Any] = {main.inputs[0].name: given,
                              main.outputs[0].name: np.clip(answers.astype(int) + error, -128, 127).astype(np.int8)}
    np.savez(path, **{name: value for name, value in {**values, **more}.items() if value is not None})
    return path


@pytest.fixture(scope="module")
def made(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A converted file, and the SDK that made it."""
    folder = tmp_path_factory.mktemp("made")
    sdk = make_sdk(folder / "sdk", runner=False)
    compiled(model, sdk, folder)
    return folder / "out.tflite", sdk


def verified(model: Path, made: tuple[Path, Path], board: Path) -> Verified:
    chip = load("imx95")
    return verify_compiled(model, made[0], driver_for(chip), chip, CompilerOptions(where=str(made[1])),
                           VerifyOptions(recorded=board))


@pytest.mark.parametrize(("error", "ok"), [(0, True), (1, False)])
def test_what_a_board_gave_is_compared(error: int, ok: bool, model: Path, made: tuple[Path, Path],
                                       tmp_path: Path) -> None:
    got = verified(model, made, recorded(model, tmp_path / "board.npz", error))
    assert got.row is not None
    assert got.row.ok is ok
    assert [f.code for f in got.findings] == ["compile.verified" if ok else "compile.damaged"]
    assert "run by a board" in got.findings[0].why
    assert got.runs == 0


def test_tensors_between_the_parts_that_a_board_gave_name_the_wrong_one(model: Path, made: tuple[Path, Path],
                                                                        tmp_path: Path) -> None:
    main = tflite.read(model).main
    given = np.random.default_rng(0).integers(-128, 128, main.inputs[0].shape, np.int8)
    with LiteRT(model) as runtime:
        values = runtime.trace_raw([given], [f"conv{number}b" for number in range(5)])
    values = {name: value if name < "conv3" else value // 2 for name, value in values.items()}
    np.savez(tmp_path / "board.npz", **{main.inputs[0].name: given}, **values)       # type: ignore[arg-type]
    got = verified(model, made, tmp_path / "board.npz")
    assert got.guilty == 3
    assert got.findings[-1].where == "nodes 'conv3a' to 'conv3b'"


UNFIT = {
    "no input": ({"input": None}, "it lacks the input 'input'"),
    "no output": ({"conv4b": None}, "it lacks the output 'conv4b'"),
    "other shape": ({"input": np.zeros((2, 3), np.int8)}, "the shape of an input is another"),
    "objects": ({"input": np.array([{}])}, "is no .npz file of plain arrays"),
}


@pytest.mark.parametrize(("more", "said"), UNFIT.values(), ids=UNFIT)
def test_recorded_values_that_do_not_fit_are_refused(more: dict[str, Any], said: str, model: Path,
                                                     made: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        verified(model, made, recorded(model, tmp_path / "board.npz", **more))


def built(model: Path, folder: Path, sdk: Path | str = "") -> RunRecord:
    seen: list[RunRecord] = []

    def keep(record: RunRecord, folder: Path, file: Path) -> None:
        seen.append(record)
        file.write_text("")

    build_run(BuildOptions(model=model, target="imx95", compiler=CompilerOptions(where=str(sdk))), folder, keep)
    return seen[-1]


def test_a_build_without_the_sdk_goes_on_to_the_end_and_says_so(model: Path, tmp_path: Path) -> None:
    record = built(model, tmp_path / "run")
    assert record.status == "done"
    assert record.verdict.endswith("compiled: no, the compiler is not installed.")
    assert "compiled" not in record.artifacts
    assert next(s for s in record.stages if s.name == "compile").text.startswith("compiled: no, ")
    record = built(model, tmp_path / "run", make_sdk(tmp_path / "sdk"))     # it is asked again once it is there
    assert record.verdict.endswith("the compiled file gives the same answers.")
    assert record.compiler == "neutron-converter 3.1.3"
    assert "compiled" in record.artifacts


def test_a_build_with_a_damaged_file_is_not_good(model: Path, tmp_path: Path) -> None:
    record = built(model, tmp_path / "run", make_sdk(tmp_path / "sdk", damage={"graph": 1, "how": "zero-point"}))
    assert record.status == "failed"
    assert record.verdict.startswith("Not good, in the stage 'verify compiled': the stage 'compile' is the first that")
    assert {"compiled", "guilty", "guilty values"} <= set(record.artifacts)


def test_a_build_that_nobody_could_verify_is_no_plain_pass(model: Path, tmp_path: Path) -> None:
    record = built(model, tmp_path / "run", make_sdk(tmp_path / "sdk", runner=False))
    assert record.verdict.endswith("not verified after compilation.")
