"""Closed and full standard streams, names that are no text, plain locales, and a home that stays empty."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import onnx
import pytest
from cli_runs import PLAIN, PROGRAM, parsed, run
from onnx import TensorProto, helper

ModelFile = Callable[[str], Path]
pytestmark = pytest.mark.models

QUANTIZE = "quantize model.onnx --random-calibration --samples 1 --json"
STREAMS: dict[str, tuple[str, int, str]] = {
    "no_output": (f"{QUANTIZE} >&-", 1, "the answer cannot be written: standard output is closed"),
    "no_error": (f"{QUANTIZE} 2>&-", 0, ""),
    "no_input": (f"{QUANTIZE} <&-", 0, "verify: model_int8.tflite"),
    "nothing": (f"{QUANTIZE} <&- >&- 2>&-", 1, ""),
    "full_output": (f"{QUANTIZE} > /dev/full", 1, "the answer cannot be written: No space left on device"),
    "full_error": (f"{QUANTIZE} 2> /dev/full", 0, ""),
    "all_full": (f"{QUANTIZE} > /dev/full 2>&1", 1, ""),
    "full_text": ("inspect model.onnx > /dev/full", 1, "No space left on device"),
    "full_help": ("inspect --help > /dev/full", 1, "No space left on device"),
    "full_refusal": ("inspect --frob > /dev/full", 1, "No space left on device"),
    "no_version": ("--version >&-", 1, "standard output is closed"),
}


@pytest.fixture
def place(tmp_path: Path, model_file: ModelFile) -> Path:
    (tmp_path / "model.onnx").write_bytes(model_file("digits_cnn/digits_cnn.onnx").read_bytes())
    return tmp_path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("name", STREAMS)
def test_streams(name: str, place: Path) -> None:
    arguments, status, words = STREAMS[name]
    done = subprocess.run(["bash", "-c", f"{' '.join(PROGRAM)} {arguments}"], capture_output=True, text=True,
                          cwd=place, timeout=120, env=os.environ | PLAIN)
    assert done.returncode == status, done
    assert words in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert "Exception ignored" not in done.stderr
    if QUANTIZE in arguments:
        assert (place / "model_int8.tflite").stat().st_size > 1000
    if status == 0:
        assert parsed(done.stdout).ok


@pytest.mark.parametrize("command", ["inspect", "check --target imx95 --rules-only", "convert"])
def test_names_in_a_file_do_not_steer_the_terminal(command: str, tmp_path: Path) -> None:
    names = ("x\x1b[2J", "y\u202eabc\x9b31m")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in names]
    node = helper.make_node("Cos", [ends[0].name], [ends[1].name], name="cosine\x07")
    onnx.save(helper.make_model(helper.make_graph([node], "graph", ends[:1], ends[1:])), tmp_path / "m\x1b[31m.onnx")
    ran = run(*command.split(), "m\x1b[31m.onnx", cwd=tmp_path)
    told = ran.out + ran.err
    assert not set(told) & set("\x1b\x07\x9b\u202e"), told
    assert "\\x1b[31m" in told


NAMES = {"no_text": b"m\xff\xfe.onnx", "umlaut": "mä.onnx".encode(), "spaces": b" m .onnx"}
LOCALES = {"utf8": {"LC_ALL": "C.UTF-8"},
           "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}}
COMMANDS = ("inspect", "convert", "quantize --random-calibration --samples 1",
            "build --target imx93 --random-calibration --samples 1")


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("name", NAMES)
def test_names(name: str, locale: str, place: Path) -> None:
    os.rename(place / "model.onnx", os.path.join(os.fsencode(place), NAMES[name]))
    for command in COMMANDS:
        for more in ((), ("--json",)):
            line = [*map(os.fsencode, (*PROGRAM, *command.split(), *more)), NAMES[name]]
            done = subprocess.run(line, capture_output=True, cwd=place, timeout=120,
                                  env=os.environ | PLAIN | LOCALES[locale])
            text = done.stdout.decode()          # valid whatever the name
            refused = name == "no_text" and command.startswith("build")
            assert done.returncode == refused * 2, done
            assert ("file.name" in text) == refused
            if more:
                assert msgspec.json.decode(done.stdout)["ok"] is not refused
    for record in place.glob("runs/*/run.json"):
        msgspec.json.decode(record.read_bytes())


def test_a_home_stays_empty(place: Path) -> None:
    home, temporary = place / "home", place / "tmp"
    home.mkdir()
    temporary.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    done = subprocess.run([*PROGRAM, "verify", "model.onnx", "model.onnx", "--random-inputs", "--samples", "1"],
                          capture_output=True, text=True, cwd=place, timeout=120,
                          env=clean | {"HOME": str(home), "TMPDIR": str(temporary)})
    assert done.returncode == 0, done
    assert not [*home.rglob("*"), *temporary.rglob("*")]


def test_memory_of_the_caller_is_not_counted(place: Path) -> None:
    large = "x = b'1' * (600 << 20); import subprocess, sys; subprocess.run(sys.argv[1:])"
    done = subprocess.run([PROGRAM[0], "-c", large, *PROGRAM, "convert", "model.onnx", "--json"], capture_output=True,
                          text=True, cwd=place, timeout=120)
    assert 1 << 20 < msgspec.json.decode(done.stdout)["peak_bytes"] < 400 << 20


@pytest.mark.parametrize("begun", ["vitrify.cli.main", "vitrify.cli.running", "vitrify.cli.verify"])
def test_an_interruption_while_loading_ends_plainly(begun: str) -> None:
    code = ("import os, signal, sys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"     # background jobs are started without
            "class Interrupting:\n"
            "    def find_spec(self, name, path, target=None):\n"
            f"        if name == {begun!r}: os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Interrupting())\n"
            "from vitrify.cli.start import main\n"
            "main()\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
