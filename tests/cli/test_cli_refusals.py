"""Bad calls and bad files: exit status, code of the finding, and nothing left behind."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cli_runs import answer as cli_answer
from cli_runs import parsed, run

import vitrify as vt
from vitrify.cli.main import call
from vitrify.results import Result

ModelFile = Callable[[str], Path]


class Refusal(NamedTuple):
    """A command line with {names}, its exit status, the first finding's code, and words of its text."""

    arguments: str
    status: int
    code: str
    words: str = ""


CASES = {
    "no_model": Refusal("convert", 2, "call.invalid", "required: MODEL"),
    "unknown_option": Refusal("convert x.onnx --frobnicate", 2, "call.invalid", "unrecognized arguments: --frobnicate"),
    "unknown_command": Refusal("frobnicate", 2, "call.invalid", "no command 'frobnicate'"),
    "misspelt_command": Refusal("qantize x.onnx", 2, "call.invalid", "perhaps `vitrify quantize`"),
    "begun_command": Refusal("conv x.onnx", 2, "call.invalid", "perhaps `vitrify convert`"),
    "misspelt_option": Refusal("convert x.onnx --shpe=1", 2, "call.invalid", "perhaps --shape"),
    "search_before_now": Refusal("compile x --target imx93 --search --search-seconds -5", 2, "call.invalid",
                                 "less than 0"),
    "search_no_time": Refusal("compile x --target imx93 --search --search-seconds nan", 2, "call.invalid", "'nan'"),
    "search_for_ever": Refusal("compile x --target imx93 --search --search-seconds inf", 2, "call.invalid", "'inf'"),
    "seconds_without_search": Refusal("compile {int8} --target imx93 --search-seconds 5", 2, "search.unwanted",
                                      "--search is not given"),
    "target_twice": Refusal("check x --target imx93 --target imx93", 2, "call.invalid", "--target: given twice"),
    "no_preset": Refusal("quantize x --preset {no}", 2, "call.invalid", "--preset: an empty word"),
    "no_code": Refusal("explain {no}", 2, "call.invalid", "CODE: an empty word"),
    "no_target_name": Refusal("targets {no}", 2, "call.invalid", "NAME: an empty word"),
    "output_to_a_dash": Refusal("convert {onnx} -o -", 2, "call.invalid", "- names no file"),
    "fixes_without_fix": Refusal("check {int8} --target imx93 --fix-only nope -o x.tflite", 2, "fix.unwanted",
                                 "--fix-only and -o belong to --fix"),
    "bad_choice": Refusal("convert x.onnx --io-layout nwhc", 2, "call.invalid", "nwhc"),
    "no_samples": Refusal("quantize x.onnx --samples 0", 2, "call.invalid", "samples"),
    "some_samples": Refusal("quantize x.onnx --samples some", 2, "call.invalid", "nor auto"),
    "prepared_how": Refusal("quantize x.onnx --prepare bogus=1", 2, "call.prepare", "bogus"),
    "prepared_twice": Refusal("quantize x.onnx --prepare rate=1 --prepare rate=2", 2, "call.prepare", "comes twice"),
    "prepared_mean": Refusal("quantize x.onnx --prepare mean=1", 2, "call.prepare", "an option of its own"),
    "resampled_to": Refusal("quantize x.onnx --prepare resample=true", 2, "preprocess.resample", "sample rate"),
    "shape_without_numbers": Refusal("convert {cut} --shape x=a,b", 2, "call.shape", "x=a,b"),
    "shape_with_zero": Refusal("convert {cut} --shape x=1,0", 2, "call.shape", "x=1,0"),
    "shape_twice": Refusal("convert {cut} --shape x=1 --shape x=2", 2, "call.shape", "twice"),
    "value_without_name": Refusal("convert {cut} --value 16000", 2, "call.value", "--value sr=16000"),
    "value_without_number": Refusal("convert {cut} --value sr=fast", 2, "call.value", "sr=fast"),
    "std_zero": Refusal("quantize {cut} --std 0", 2, "call.number", "zero"),
    "two_means": Refusal("quantize {cut} --mean 1,2", 2, "call.number", "one number nor three"),
    "missing": Refusal("convert {place}/none.onnx", 2, "file.missing", "none.onnx"),
    "folder": Refusal("convert {place}", 2, "file.folder", "inspect"),
    "output_is_folder": Refusal("convert {cut} -o {place}", 2, "file.folder", "-o"),
    "output_is_the_input": Refusal("convert {cut} -o {cut}", 2, "file.same", "never changed"),
    "empty": Refusal("convert {empty} -o {out}", 1, "file.empty", "0 bytes"),
    "random": Refusal("convert {random} -o {out}", 1, "file.unknown"),
    "text": Refusal("convert {text} -o {out}", 1, "file.unknown"),
    **{f"{kind}_as_tflite_{call.split()[0]}": Refusal(call.replace("{}", f"{{{kind}}}"), 1, code, words)
       for kind, code, words in (("empty", "file.empty", "0 bytes"), ("text", "file.unknown", "neither an ONNX nor"),
                                 ("page", "file.unknown", "it is an HTML page"))
       for call in ("check {} --target imx93", "quantize {} --random-calibration -o {out}", "inspect {}",
                    "compile {} --target imx93 -o {out}", "verify {} {} --random-inputs", "convert {} -o {out}",
                    "build {} --target imx93 --random-calibration -o {out}")},
    "cut_onnx": Refusal("convert {cut} -o {out}", 1, "onnx."),
    "inspect_cut_onnx": Refusal("inspect {cut}", 1, "onnx."),
    "inspect_random": Refusal("inspect {random}", 1, "file.unknown"),
    "inspect_empty": Refusal("inspect {empty}", 1, "file.empty"),
    "inspect_empty_folder": Refusal("inspect {nothing}", 1, "folder.empty", ".tflite"),
    "cut_tflite": Refusal("inspect {cut_tflite}", 1, "tflite."),
    "compile_cut_tflite": Refusal("compile {cut_tflite} --target imx93 -o {out}", 1, "tflite."),
    "quantize_without_data": Refusal("quantize {onnx} -o {out}", 2, "data.none", "--random-calibration"),
    "quantize_data_twice": Refusal("quantize {onnx} --data {nothing} --random-calibration", 2, "call.data"),
    "quantize_data_missing": Refusal("quantize {onnx} --data {place}/none -o {out}", 2, "data.missing"),
    "quantize_data_empty": Refusal("quantize {onnx} --data {nothing} -o {out}", 1, "data.empty"),
    "quantize_int8": Refusal("quantize {int8} --random-calibration -o {out}", 1, "quant.quantized"),
    "recipe_missing": Refusal("quantize {onnx} --random-calibration --recipe {nothing}/r.toml", 2, "recipe.read"),
    "recipe_wrong": Refusal("quantize {onnx} --random-calibration --recipe {text}", 2, "recipe.toml"),
    "compile_float": Refusal("compile {onnx} --target imx93 -o {out}", 1, "model.float", "vitrify quantize"),
    "convert_compiled": Refusal("convert {compiled} -o {out}", 1, "model.compiled", "made from"),
    "quantize_compiled": Refusal("quantize {compiled} --random-calibration -o {out}", 1, "model.compiled"),
    "compile_compiled": Refusal("compile {compiled} --target imx93 -o {out}", 1, "model.compiled"),
    "verify_on_the_npu": Refusal("verify {onnx} {int8} --random-inputs --on npusim", 2, "verify.on"),
    "build_compiled": Refusal("build {compiled} --target imx93 -o {out}", 1, "model.compiled"),
    "unknown_target": Refusal("check {int8} --target imx94", 2, "target.unknown", "imx93"),
    "verify_one_model": Refusal("verify {onnx} --random-inputs", 2, "call.models"),
    "verify_without_data": Refusal("verify {onnx} {int8}", 2, "data.none", "--random-inputs"),
    "build_without_data": Refusal("build {onnx} --target imx93 -o {out}", 2, "data.none"),
    "build_in_a_full_folder": Refusal("build {onnx} --target imx93 --random-calibration -o {place}", 2, "run.folder"),
    "build_over_a_file": Refusal("build {onnx} --target imx93 --random-calibration -o {text}", 2, "run.folder"),
    "build_without_such_data": Refusal("build {onnx} --target imx93 --data {place}/none -o {out}", 2, "data.missing"),
    "check_without_such_data": Refusal("check {int8} --target imx93 --data {place}/none", 2, "data.missing"),
    "check_unknown_shape_name": Refusal("check {int8} --target imx93 --shape nobody=1,2", 2, "shape.unknown-input"),
    "output_is_a_pipe": Refusal("convert {onnx} -o {pipe}", 2, "file.special", "a pipe"),
    "output_is_a_device": Refusal("quantize {onnx} --random-calibration -o {device}", 2, "file.special", "a device"),
    "recipe_out_is_a_pipe": Refusal("quantize {onnx} --random-calibration --save-recipe {pipe}", 2, "file.special"),
    "compile_onto_a_pipe": Refusal("compile {int8} --target imx93 -o {pipe}", 2, "file.special"),
    "build_onto_a_pipe": Refusal("build {int8} --target imx93 -o {pipe}", 2, "file.special"),
    "convert_a_pipe": Refusal("convert {pipe} -o {out}", 2, "file.special", "a pipe"),
    "inspect_a_device": Refusal("inspect {device}", 2, "file.special", "a device"),
    "inspect_a_socket": Refusal("inspect {socket}", 2, "file.special", "a socket"),
    "build_a_device": Refusal("build {device} --target imx93 -o {out}", 2, "file.special"),
    "check_a_pipe": Refusal("check {pipe} --target imx93", 2, "file.special"),
    "verify_a_pipe": Refusal("verify {onnx} {pipe} --random-inputs", 2, "file.special"),
    "data_is_a_pipe": Refusal("quantize {onnx} --data {pipe} -o {out}", 2, "file.special"),
    "recipe_is_a_pipe": Refusal("quantize {onnx} --random-calibration --recipe {pipe}", 2, "file.special"),
    "output_as_a_folder": Refusal("convert {onnx} -o {place}/new/", 2, "call.invalid", "names a folder"),
    "no_name": Refusal("inspect {no}", 2, "call.invalid", "names no file"),
    "no_data_name": Refusal("quantize {onnx} --data {no}", 2, "call.invalid", "names no file"),
    "dashes": Refusal("inspect -- -dash.onnx", 2, "file.missing", "-dash.onnx"),
    "output_is_the_recipe": Refusal("quantize {onnx} --random-calibration --recipe {text} -o {text}", 2, "file.same",
                                    "--recipe"),
    "output_is_a_sample": Refusal("quantize {onnx} --data {samples} -o {samples}/a.npy", 2, "file.same", "--data"),
    "output_is_the_data": Refusal("quantize {onnx} --data {samples}/a.npy -o {samples}/a.npy", 2, "file.same"),
    "recipe_out_is_the_model": Refusal("quantize {onnx} --random-calibration --save-recipe {onnx}", 2, "file.same"),
    "recipe_out_is_the_output": Refusal(
        "quantize {onnx} --random-calibration -o {out} --save-recipe {nothing}/../out.tflite", 2, "file.same", "both"),
    "build_recipe_out_is_the_model": Refusal(
        "build {onnx} --target imx93 --random-calibration --save-recipe {onnx} -o {out}", 2, "file.same"),
    "build_recipe_out_is_in_the_run": Refusal(
        "build {onnx} --target imx93 --random-calibration --save-recipe {out}/recipe.toml -o {out}", 2, "file.same"),
    "build_recipe_is_in_the_run": Refusal(
        "build {onnx} --target imx93 --random-calibration --recipe {run}/recipe.toml -o {run}", 2, "file.same",
        "another folder with -o"),
    "compile_onto_itself": Refusal("compile {int8} --target imx93 -o {int8}", 2, "file.same", "the model itself"),
    "samples_of_a_run": Refusal("quantize {onnx} --data {run} -o {out}", 1, "data.empty", "1 folder with a run"),
    "an_onnx_name": Refusal("convert {onnx} -o {nothing}/other.onnx", 2, "file.ending", "other.tflite"),
    "a_pytorch_name": Refusal("quantize {onnx} --random-calibration -o {nothing}/o.PT2", 2, "file.ending", "PyTorch"),
    "a_keras_name": Refusal("compile {int8} --target imx93 -o {nothing}/o.h5", 2, "file.ending", "a Keras model"),
    "a_recipe_name": Refusal("quantize {onnx} --random-calibration --save-recipe {nothing}/r.json", 2, "file.ending",
                             "r.toml"),
    "a_recipe_name_in_a_build": Refusal(
        "build {onnx} --target imx93 --random-calibration --save-recipe {nothing}/r.tflite -o {out}", 2, "file.ending"),
    "dim_against_shape": Refusal("convert {onnx} --dim x=2 --shape x=1,1,28,28 -o {out}", 2, "dim.conflict",
                                 "--dim x=2 and --shape x=1,1,28,28"),
    "unknown_shape_name": Refusal("convert {onnx} --shape nobody=1,1,28,28 -o {out}", 2, "", "nobody"),
}


NOBODY = 65534
Answer = Callable[..., tuple[int, Result]]


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Answer:
    """Call in this process: most of a refusal's time would go into starting another."""
    def ask(*arguments: str) -> tuple[int, Result]:
        command, *rest = arguments
        status = call([command, "--json", *rest])
        return status, parsed(capsys.readouterr().out)
    return ask


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory, model_file: ModelFile) -> dict[str, str]:
    place = tmp_path_factory.mktemp("bad")
    onnx = model_file("digits_cnn/digits_cnn.onnx")
    int8 = model_file("mltk_int8/image_classification/image_classification.tflite")
    nothing = place / "nothing"
    nothing.mkdir()
    files = {"empty": b"", "random": bytes(range(255, 0, -1)) * 40, "text": b"hello there\n",
             "page.tflite": b"<!DOCTYPE html><html></html>\n",
             "cut.onnx": onnx.read_bytes()[:2000], "cut_tflite": int8.read_bytes()[:20_000]}
    for name, content in files.items():
        (place / name).write_bytes(content)
    for name in ("samples", "run"):
        (place / name).mkdir()
        np.save(place / name / "a.npy", np.zeros((1, 1, 28, 28), np.float32))
    (place / "run" / "run.json").write_text("{}")
    (place / "run" / "recipe.toml").write_text("")
    os.mkfifo(place / "pipe")
    made = subprocess.run(["mknod", str(place / "device"), "c", "1", "7"], capture_output=True)
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(place)          # a socket's path must be short
        server.bind("socket")
        os.chdir(before)
    vt.compile(int8, "imx93", place / "compiled")
    return {"place": str(place), "out": str(place / "out.tflite"), "nothing": str(nothing), "onnx": str(onnx),
            "int8": str(int8), "cut": str(place / "cut.onnx"), "no": "",
            "page": str(place / "page.tflite"),
            "device": "" if made.returncode else str(place / "device"),
            **{name: str(place / name) for name in ("pipe", "socket", "samples", "run")},
            **{name: str(place / name) for name in ("empty", "random", "text", "cut_tflite", "compiled")}}


@pytest.mark.models
@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str, names: dict[str, str], tmp_path: Path, answer: Answer,
                 monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    if "{device}" in case.arguments and not names["device"]:
        pytest.skip("only root can make a device")
    monkeypatch.chdir(tmp_path)
    before = sorted(Path(names["place"]).iterdir())
    status, result = answer(*(word.format(**names) for word in case.arguments.split()))
    assert not result.ok
    assert status == case.status, result
    first = result.findings[0]
    assert first.code.startswith(case.code), first
    assert case.words in str(first)
    assert sorted(Path(names["place"]).iterdir()) == before
    assert not list(tmp_path.iterdir())


def test_a_refusal_reads_well() -> None:
    ran = run("convert", "nowhere.onnx")
    assert ran.status == 2
    assert ran.out.startswith("error[file.missing]: there is no file nowhere.onnx\n")


def test_a_failed_conversion_keeps_the_old_output(names: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "kept.tflite"
    output.write_bytes(b"what stood here")
    assert run("convert", names["cut"], "-o", output).status == 1
    assert output.read_bytes() == b"what stood here"
    assert sorted(tmp_path.iterdir()) == [output]


def test_nobody_reads_on(names: dict[str, str]) -> None:
    line = f"{sys.executable} -m vitrify inspect {names['int8']} --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 0


def test_an_unforeseen_error_is_our_bug(tmp_path: Path) -> None:
    code = ("import vitrify.pipeline.inspecting.inspect as i, sys; from vitrify.cli.main import call\n"
            "def bug(path): raise ZeroDivisionError('by zero')\n"
            "i.inspect_path = bug\n"
            f"sys.exit(call(['inspect', {str(tmp_path)!r}]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "200"})
    assert done.returncode == 1
    assert "error[internal.error]: a bug in Vitrify: ZeroDivisionError: by zero" in done.stdout
    (attached,) = tmp_path.glob("vitrify-*.txt")
    assert str(attached) in done.stdout
    assert "in bug" in attached.read_text()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with 64 kB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
                                      capture_output=True).returncode:
        pytest.skip("only root can mount a small tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("command", ["convert {onnx} -o {disk}/out.tflite",
                                     "quantize {onnx} --random-calibration --samples 1 -o {disk}/out.tflite",
                                     "compile {int8} --target imx93 -o {disk}/out.tflite",
                                     "build {onnx} --target imx93 --random-calibration -o {disk}/run"])
def test_disk_full(command: str, tiny_disk: Path, names: dict[str, str], answer: Answer) -> None:
    status, result = answer(*(word.format(**names, disk=tiny_disk) for word in command.split()))
    assert status == 2
    assert result.findings[0].code == "file.write"
    assert "No space left on device" in result.findings[0].headline
    assert not [p for p in tiny_disk.rglob("*") if p.suffix == ".tflite" or ".part" in p.name]


def owner_only() -> None:
    """Take from root the right to pass over permissions, so that it may do with files what any owner may."""
    for capability in (1, 2):       # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH. Source: linux/capability.h
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0        # PR_CAPBSET_DROP


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root on Linux can give files away")
@pytest.mark.parametrize(("command", "code"), [("convert {secret} -o {open}/out.tflite", "file.permission"),
                                               ("convert {onnx} -o {closed}/out.tflite", "file.permission"),
                                               ("inspect {secret}", "file.permission"),
                                               ("build {onnx} --target imx93 --random-calibration -o {closed}/run",
                                                "run.folder")])
def test_no_permission(command: str, code: str, names: dict[str, str], tmp_path: Path) -> None:
    words = {"onnx": tmp_path / "model.onnx", "secret": tmp_path / "secret.onnx", "open": tmp_path / "open",
             "closed": tmp_path / "closed"}
    for path in (words["onnx"], words["secret"]):
        path.write_bytes(Path(names["onnx"]).read_bytes())
    words["secret"].chmod(0o600)
    words["open"].mkdir()
    words["closed"].mkdir()
    for foreign in (words["secret"], words["closed"]):
        os.chown(foreign, NOBODY, NOBODY)
    status, result = cli_answer(*(word.format(**words) for word in command.split()), preexec_fn=owner_only)
    assert (status, result.findings[0].code) == (2, code), result
    assert not list(words["closed"].iterdir())
