"""A build that is killed or interrupted in any stage goes on with the same command and ends like one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from vitrify.core.hashing import hash_file
from vitrify.results import RunRecord

pytestmark = pytest.mark.models
HERE = Path(__file__).parent
STAGES = ["import", "optimize", "write float", "prepare float", "verify float", "calibrate", "quantize", "write int8",
          "prepare int8", "verify int8", "compile", "illustrate", "report"]
SAME = ("float", "statistics", "int8", "compiled", "recipe")
"""Artifacts that must not depend on how often the build was stopped; the report has times in it."""

ModelFile = Callable[[str], Path]


def command(model: Path, folder: Path) -> list[str]:
    return ["build", str(model), "--target", "imx93", "--random-calibration", "--samples", "3", "-o", str(folder)]


def build(model: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "vitrify", *command(model, folder), "--json"], capture_output=True,
                          text=True, timeout=120)


def stopped(number: int, stage: str, moment: str, model: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(HERE / "stopped_build.py"), str(int(number)), stage, moment, *command(model, folder)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def record(folder: Path) -> RunRecord:
    return msgspec.json.decode((folder / "run.json").read_bytes(), type=RunRecord)


def hashes(folder: Path) -> dict[str, str]:
    return {name: hash_file(folder / a.file) for name, a in record(folder).artifacts.items() if name in SAME}


def remains(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".part" in path.name]


@pytest.fixture(scope="module")
def digits(model_file: ModelFile) -> Path:
    return model_file("digits_cnn/digits_cnn.onnx")


@pytest.fixture(scope="module")
def undisturbed(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    done = build(digits, folder)
    assert '"command":"build"' in done.stdout, done
    return folder


@pytest.fixture(scope="module")
def wanted(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The artifacts of a build that nobody stopped, in a folder that no other test works in."""
    folder = tmp_path_factory.mktemp("runs") / "left_alone"
    build(digits, folder)
    return hashes(folder)


@pytest.mark.slow
def test_stopped_in_every_stage_one_after_the_other(digits: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for number, stage in enumerate(STAGES):
        moment = "begin" if number % 2 else "end"
        if stage == "quantize":
            interrupted(stage, moment, digits, folder)
            continue
        died = stopped(signal.SIGKILL, stage, moment, digits, folder)
        assert died.returncode == -signal.SIGKILL, died
        seen = {s.name: s.status for s in record(folder).stages}
        assert seen[stage] == "running"
        assert all(seen[before] in ("done", "reused", "failed") for before in STAGES[:number])
        for artifact in record(folder).artifacts.values():
            assert hash_file(folder / artifact.file) == artifact.hash
    done = build(digits, folder)
    assert done.returncode in (0, 1), done
    assert hashes(folder) == wanted
    assert set(wanted) == set(SAME)
    assert not remains(folder)
    statuses = {s.name: s.status for s in record(folder).stages}
    assert statuses["write float"] == statuses["calibrate"] == statuses["compile"] == "reused"
    assert statuses["report"] == "done"


def test_no_file_of_an_earlier_build_looks_current(digits: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    folder, other = tmp_path / "run", tmp_path / "other.onnx"
    other.write_bytes(digits.read_bytes())
    build(digits, folder)
    assert stopped(signal.SIGKILL, "calibrate", "begin", other, folder).returncode == -signal.SIGKILL
    assert {path.name for path in folder.iterdir() if path.is_file()} == {".lock", "run.json", "other_float.tflite"}
    build(digits, folder)
    assert hashes(folder) == wanted
    assert {s.name: s.status for s in record(folder).stages}["compile"] == "reused"
    assert not [*folder.glob("other*"), *folder.glob(".earlier")]


def interrupted(stage: str, moment: str, model: Path, folder: Path) -> None:
    """Stop the build as Ctrl-C does: it still says so, in words and in the record."""
    ended = stopped(signal.SIGINT, stage, moment, model, folder)
    assert ended.returncode == 130, ended
    assert "interrupted" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    kept = record(folder)
    assert kept.status == "interrupted"
    assert "goes on from there" in kept.verdict
    assert not remains(folder)


def test_ctrl_c_from_outside_while_children_work(digits: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    child = subprocess.Popen([sys.executable, "-m", "vitrify", *command(digits, folder)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    limit = time.monotonic() + 60
    while not (folder / "digits_cnn_float.tflite").exists() and time.monotonic() < limit:
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    assert not remains(folder)


def test_two_builds_in_one_folder(digits: Path, undisturbed: Path) -> None:
    code = ("import time; from pathlib import Path; from vitrify.pipeline.building.run import open_run\n"
            f"with open_run(Path({str(undisturbed)!r})): print('held', flush=True); time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            refused = build(digits, undisturbed)
        finally:
            holder.kill()
    assert refused.returncode == 2
    assert "run.locked" in refused.stdout
    assert f"process {holder.pid}" in refused.stdout
    assert build(digits, undisturbed).returncode in (0, 1)       # the lock of a dead process is free


def test_what_changed_is_done_again_and_no_more(digits: Path, undisturbed: Path) -> None:
    build(digits, undisturbed)                                   # whatever the tests before this one left
    build(digits, undisturbed)
    assert {s.status for s in record(undisturbed).stages if s.name not in ("report", "verify int8")} == {"reused"}
    int8 = undisturbed / "digits_cnn_int8.tflite"
    int8.write_bytes(int8.read_bytes()[:-1] + b"x")              # somebody touched it
    build(digits, undisturbed)
    statuses = {s.name: s.status for s in record(undisturbed).stages}
    assert statuses["quantize"] == statuses["write int8"] == "done"
    assert statuses["calibrate"] == statuses["compile"] == "reused"


def test_another_sample_count_calibrates_again(digits: Path, undisturbed: Path) -> None:
    line = command(digits, undisturbed)
    line[line.index("3")] = "2"
    ended = [sys.executable, str(HERE / "stopped_build.py"), str(int(signal.SIGKILL)), "calibrate", "end", *line]
    subprocess.run(ended, capture_output=True, timeout=120)
    statuses = {s.name: s.status for s in record(undisturbed).stages}
    assert statuses["write float"] == "reused"
    assert statuses["calibrate"] == "running"
