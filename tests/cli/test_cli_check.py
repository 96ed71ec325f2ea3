"""`check` on the command line: compiled files, fixes, what a person reads."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_runs import parsed

import schema_models as made
from vitrify import tflite
from vitrify.cli.main import call
from vitrify.results import CheckResult, Result

Ask = Callable[..., tuple[int, Result]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return lambda *words: (call([*map(str, words), "-q", "--json"]), parsed(capsys.readouterr().out))


def means(path: Path) -> Path:
    """A mean over the rows and columns of four samples, between two activations."""
    file = made.Maker()
    x, a = (file.tensor(name, (4, 8, 8, 4), "int8", 0.05) for name in ("x", "a"))
    axes = file.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
    b, y = (file.tensor(name, (4, 1, 1, 4), "int8", 0.05) for name in ("b", "y"))
    file.node(made.BUILTIN.RELU, [x], [a], version=2)
    file.node(made.BUILTIN.MEAN, [a, axes], [b], "ReducerOptions", version=2, keepDims=True)
    file.node(made.BUILTIN.RELU, [b], [y], version=2)
    return file.write(path, [x], [y])


def test_a_file_compiled_by_vela_is_listed(ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled = tmp_path / "compiled.tflite"
    assert call(["compile", str(means(tmp_path / "m.tflite")), "--target", "imx93", "-o", str(compiled), "-q"]) == 0
    capsys.readouterr()
    status, result = ask("check", compiled, "--target", "imx93")
    assert status == 0
    assert isinstance(result, CheckResult)
    assert (result.kind, result.form) == ("compiled", "compiled")
    assert [v.operator for v in result.verdicts] == ["ethos-u", "MEAN", "ethos-u"]
    assert [v.placement for v in result.verdicts] == ["npu", "cpu", "npu"]
    assert [f.code for f in result.findings] == ["check.compiled"]
    assert all(part.bytes_in and part.bytes_out for part in result.partitions)


def test_a_file_compiled_for_another_npu_is_listed_too(ask: Ask, tmp_path: Path) -> None:
    file = made.Maker()
    x, y = (file.tensor(name, (1, 8, 8, 4), "int8", 0.05) for name in ("x", "y"))
    z = file.tensor("z", (1, 8, 8, 4), "int8", 0.05)
    file.node(made.BUILTIN.CUSTOM, [x], [y], custom="NeutronGraph")
    file.node(made.BUILTIN.RELU, [y], [z], version=2)
    status, result = ask("check", file.write(tmp_path / "neutron.tflite", [x], [z]), "--target", "imx93")
    assert status == 0
    assert isinstance(result, CheckResult)
    assert [(v.operator, v.placement) for v in result.verdicts] == [("NeutronGraph", "npu"), ("RELU", "cpu")]
    assert "imx93 runs none of it" in result.findings[0].headline


def test_a_file_whose_name_only_speaks_of_an_npu_is_no_compiled_one(ask: Ask, tmp_path: Path) -> None:
    file = made.Maker()
    x, y = (file.tensor(name, (1, 8, 8, 4), "int8", 0.05) for name in ("ethos-u", "NeutronGraph"))
    file.node(made.BUILTIN.RELU, [x], [y], version=2)
    _, result = ask("check", file.write(tmp_path / "m.tflite", [x], [y]), "--target", "imx93", "--rules-only")
    assert isinstance(result, CheckResult)
    assert result.form == "as it is"


def test_fix_writes_a_file_and_its_ledger(ask: Ask, tmp_path: Path) -> None:
    output = tmp_path / "fixed.tflite"
    file = made.Maker()      # float ends, which there is an exact fix for
    real, q = file.tensor("real", (1, 8), "float32"), file.tensor("q", (1, 8), "int8", 0.05)
    last, out = file.tensor("last", (1, 8), "int8", 0.05), file.tensor("out", (1, 8), "float32")
    file.node(made.BUILTIN.QUANTIZE, [real], [q], "QuantizeOptions")
    file.node(made.BUILTIN.RELU, [q], [last], version=2)
    file.node(made.BUILTIN.DEQUANTIZE, [last], [out], "DequantizeOptions", version=2)
    source = file.write(tmp_path / "ends.tflite", [real], [out])
    status, result = ask("check", source, "--target", "imx93", "--fix", "-o", output)
    assert status == 0
    assert isinstance(result, CheckResult)
    assert result.output == str(output)
    assert result.fixes is not None
    assert (result.fixes.cpu_before, result.fixes.cpu_after) == (2, 0)
    assert result.as_it_is is not None
    assert (result.as_it_is.nodes, result.coverage.nodes) == (pytest.approx(1 / 3), 1.0)
    assert result.ledger
    assert [node.op.kind for node in tflite.read(output).main] == ["RELU"]


@pytest.mark.parametrize(("words", "code"), [
    (["-o", "x.tflite"], "fix.unwanted"), (["--fix-only", "batches"], "fix.unwanted"),
    (["--fix", "--fix-only", "no-such-fix"], "fix.unknown"), (["--fix", "-o", "{model}"], "file.same")])
def test_calls_that_make_no_sense(ask: Ask, tmp_path: Path, words: list[str], code: str) -> None:
    model = means(tmp_path / "m.tflite")
    status, result = ask("check", model, "--target", "imx93", *(word.format(model=model) for word in words))
    assert status == 2
    assert [f.code for f in result.findings] == [code]


def test_a_person_reads_the_cause_first_and_the_command_last(tmp_path: Path,
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    model = means(tmp_path / "m.tflite")
    assert call(["check", str(model), "--target", "imx93", "--rules-only", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("imx93: on the NPU ")
    assert lines[2].startswith("1. 'x' takes 4 samples at a time; 1 operator can take only one")
    assert any("ethos-u.batch" in line for line in lines)
    assert "1 node, by reason" in "\n".join(lines)
    assert lines[-1].strip() == f"vitrify check {model} --target imx93 --fix -o m_fixed.tflite"


def test_the_command_for_a_name_like_an_option_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    means(tmp_path / "-m 1.tflite")
    monkeypatch.chdir(tmp_path)
    assert call(["check", "--target", "imx93", "--rules-only", "-q", "--", "-m 1.tflite"]) == 0
    command = capsys.readouterr().out.splitlines()[-1].strip()
    assert command == "vitrify check './-m 1.tflite' --target imx93 --fix -o './-m 1_fixed.tflite'"
    assert call([*shlex.split(command)[1:], "-q"]) == 0
    assert (tmp_path / "-m 1_fixed.tflite").exists()
