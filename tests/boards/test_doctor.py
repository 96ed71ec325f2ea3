"""`doctor` as it is called: this machine, a pasted answer, a board over SSH; what it says and how it ends."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from board_trees import lay_out, probed
from ssh_server import PASSWORD, serving, shell_in

from schema_models import Maker, schema
from vitrify.boards import probe_script, tables
from vitrify.boards.login import PASSWORD as VARIABLE
from vitrify.cli.main import call
from vitrify.pipeline.doctor import here
from vitrify.pipeline.doctor.here import Package, examine_here, judge_package
from vitrify.results import DoctorResult

ROOT = Path(__file__).parents[2]


class Asker:
    """Calls the program with ``--json`` and reads the answer."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> tuple[int, DoctorResult]:
        status = call(["doctor", *map(str, words), "--json"])
        return status, msgspec.json.decode(self.capsys.readouterr().out, type=DoctorResult)

    def codes(self, *words: object) -> tuple[int, list[str]]:
        status, result = self(*words)
        return status, sorted({f.code for f in result.findings})


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(capsys)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pasted answer of a board of each chip, and one whose delegate is missing."""
    folder = tmp_path_factory.mktemp("answers")
    for name, release, without in (
            ("imx93", "LF6.6.36-2.1.0", ()), ("imx95", "LF6.18.20-2.0.0", ()), ("imx8mp", "LF6.6.36-2.1.0", ()),
            ("imx93", "LF6.6.3-1.0.0", ("Ethos-U delegate",)), ("imx93", "LF6.18.20-2.0.0", ())):
        table = tables()[name]
        row = next(one for one in table.rows if one.release == release)
        stem = f"{name}-{row.kernel}"
        text = probed(lay_out(folder / stem, table, row, without=without))
        (folder / f"{stem}.txt").write_text(f"root@board:~# sh probe.sh\r\n{text}root@board:~# ")
    return folder


def compiled(path: Path, kind: str, version: str = "", extra: int = 0) -> Path:
    """A file with one NPU operator, and the version where its compiler writes it."""
    maker = Maker()
    x, y = maker.tensor("x", [1, 4], "int8", 1.0), maker.tensor("y", [1, 4], "int8", 1.0)
    weights = maker.tensor("w", [max(extra, 4)], "uint8", data=np.zeros(max(extra, 4), np.uint8))
    if kind:
        maker.node(32, [weights, x], [y], custom=kind)
    else:
        maker.node(schema.BuiltinOperator.RELU, [x], [y])
    if version:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(version.encode(), np.uint8)
        maker.model.buffers.append(buffer)
        entry = schema.MetadataT()
        entry.name, entry.buffer = "vela_version", len(maker.model.buffers) - 1
        maker.model.metadata = [entry]
    maker.write(path, [x], [y])
    return path


def test_this_machine(ask: Asker) -> None:
    status, result = ask()
    assert (status, result.ok) == (0, True)
    found = {part.name: part for part in result.parts}
    assert found["ethos-u-vela"].state == "ok"
    assert found["temporary files"].state == "ok"
    assert {row.target: row.can for row in result.served}["imx93"] == "compiled"
    assert result.board is None


def test_this_machine_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "all that is needed is here" in text
    assert "imx93" in text


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file" / "x"))
    (tmp_path / "file").write_text("")
    result = examine_here()
    assert not result.ok
    assert [f.code for f in result.findings] == ["doctor.cannot-write"]


@pytest.mark.parametrize(("version", "state"), [
    ("", "error"), ("1.9", "warning"), ("2.0", "ok"), ("2.5.9", "ok"), ("3.1", "ok"), ("3.1.7", "ok"),
    ("3.2", "warning"), ("4.0", "warning"), ("1.99.9", "warning"), ("3.10.0", "warning"), ("2.13.0+cpu", "ok")])
def test_versions_outside_of_what_was_tested(version: str, state: str) -> None:
    part, finding = judge_package("p", Package(role="does", needed=True, first="2.0", last="3.1"), version)
    assert part.state == state
    assert (finding is None) is (state == "ok")
    optional, none = judge_package("p", Package(role="does", needed=False, first="2.0", last="3.1"), "")
    assert (optional.state, none) == ("info", None)


def test_the_versions_of_the_suite_are_those_that_are_called_tested() -> None:
    pinned = {}
    for name in ("core", "dev", "torch", "tf"):
        for line in (ROOT / f"requirements/{name}.lock").read_text().splitlines():
            package, _, version = line.split(";")[0].strip().partition("==")
            pinned.setdefault(package, version)
    for name, package in here.tested().items():
        if name in pinned:
            assert judge_package(name, package, pinned[name])[1] is None, name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {line.split(">")[0] for line in project["dependencies"]} <= {*here.tested(), "msgspec", "rich"}


def test_the_probe_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], ask: Asker) -> None:
    assert call(["doctor", "--print-probe"]) == 0
    assert capsys.readouterr().out == probe_script()
    status, result = ask("--print-probe")
    assert (status, result.probe) == (0, probe_script())


@pytest.mark.parametrize(("file", "status", "codes"), [
    ("imx93-6.6.36", 0, {"doctor.compiler-version"}),            # here is Vela 5.2, there 3.12
    ("imx95-6.18.20", 0, set()), ("imx8mp-6.6.36", 0, set()),
    ("imx93-6.6.3", 1, {"doctor.compiler-version", "doctor.missing"}),
    ("imx93-6.18.20", 0, {"doctor.compiler-unknown"})])
def test_a_pasted_answer(file: str, status: int, codes: set[str], answers: Path, ask: Asker) -> None:
    got, result = ask("--from-file", answers / f"{file}.txt")
    assert got == status
    assert {f.code for f in result.findings} == codes
    assert result.board is not None
    assert result.board.target == file.partition("-")[0]
    assert result.board.exact


def test_a_pasted_answer_as_text(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["doctor", "--from-file", str(answers / "imx93-6.6.3.txt")]) == 1
    text = capsys.readouterr().out
    for said in ("NXP i.MX 93", "LF6.6.3-1.0.0", "Vela 3.10.0", "the board has no Ethos-U delegate", "absent"):
        assert said in text


MODELS = [
    ("imx93-6.6.36", "ethos-u", "3.12.0", [], 0, []),
    ("imx93-6.6.36", "ethos-u", "3.12.1", [], 0, ["doctor.compiler-version"]),
    ("imx93-6.6.36", "ethos-u", "3.10.0", [], 0, ["doctor.compiler-version"]),
    ("imx93-6.6.36", "ethos-u", "5.2.0", [], 0, ["doctor.compiler-version"]),
    ("imx93-6.6.36", "ethos-u", "", [], 0, ["doctor.model-version"]),
    ("imx93-6.6.36", "ethos-u", "", ["--compiled-with", "3.12.0"], 0, []),
    ("imx93-6.6.36", "NeutronGraph", "", [], 1, ["doctor.model-other-chip"]),
    ("imx93-6.6.36", "", "", [], 0, ["doctor.model-plain"]),
    ("imx93-6.18.20", "ethos-u", "5.2.0", [], 0, ["doctor.compiler-unknown"]),
    ("imx95-6.18.20", "NeutronGraph", "", ["--compiled-with", "3.1.2"], 0, []),
    ("imx95-6.18.20", "NeutronGraph", "", ["--compiled-with", "3.1.3"], 0, ["doctor.compiler-version"]),
    ("imx95-6.18.20", "NeutronGraph", "", ["--compiled-with", "3.0.0"], 1, ["doctor.compiler-version"]),
    ("imx95-6.18.20", "NeutronGraph", "", ["--compiled-with", "3.3.0"], 1, ["doctor.compiler-version"]),
    ("imx95-6.18.20", "NeutronGraph", "", [], 0, ["doctor.model-version"]),
    ("imx95-6.18.20", "ethos-u", "3.12.0", [], 1, ["doctor.model-other-chip"]),
    ("imx8mp-6.6.36", "", "", [], 0, ["doctor.model-plain"]),
    ("imx8mp-6.6.36", "ethos-u", "3.12.0", [], 1, ["doctor.model-other-chip"]),
]


@pytest.mark.parametrize(("file", "kind", "version", "words", "status", "codes"), MODELS)
def test_a_model_against_a_board(file: str, kind: str, version: str, words: list[str], status: int, codes: list[str],
                                 answers: Path, tmp_path: Path, ask: Asker) -> None:
    model = compiled(tmp_path / "m.tflite", kind, version)
    assert ask.codes("--from-file", answers / f"{file}.txt", "--model", model, *words) == (status, codes)


def test_a_model_larger_than_the_memory_is_told(answers: Path, tmp_path: Path, ask: Asker) -> None:
    text = (answers / "imx93-6.6.36.txt").read_text().replace("CmaFree|900000", "CmaFree|100")
    (tmp_path / "board.txt").write_text(text)
    model = compiled(tmp_path / "m.tflite", "ethos-u", "3.12.0", extra=200_000)
    assert ask.codes("--from-file", tmp_path / "board.txt", "--model", model) == (0, ["doctor.model-size"])


@pytest.mark.parametrize(("words", "status", "code"), [
    (["--target", "imx95"], 1, "doctor.other-chip"), (["--target", "imx39"], 2, "target.unknown"),
    (["--model", "none.tflite"], 2, "file.read"), (["--model", "."], 2, "file.read"),
    (["--model", str(ROOT / "README.md")], 1, "doctor.no-tflite"), (["--compiled-with", "new"], 2, "call.version"),
    (["--board", "x"], 2, "call.doctor"),
    (["--print-probe"], 2, "call.doctor")])
def test_questions_that_do_not_fit(words: list[str], status: int, code: str, answers: Path, ask: Asker) -> None:
    got, codes = ask.codes("--from-file", answers / "imx93-6.6.36.txt", *words)
    assert got == status
    assert code in codes


@pytest.mark.parametrize(("words", "code"), [
    (["--target", "imx93"], "call.doctor"), (["--board", "a b"], "board.address"),
    (["--board", "h", "--identity", "/none"], "board.file"), (["--from-file", "/none/at/all"], "file.read")])
def test_wrong_calls(words: list[str], code: str, ask: Asker) -> None:
    assert ask.codes(*words) == (2, [code])


def test_a_file_without_an_answer_is_refused(tmp_path: Path, ask: Asker) -> None:
    for number, data in enumerate((b"", b"hello", b"\x00\xff" * 5000, probe_script().encode())):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(data)
        assert ask.codes("--from-file", path) == (1, ["doctor.no-probe"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_logs_in_other_encodings(encoding: str, answers: Path, tmp_path: Path, ask: Asker) -> None:
    (tmp_path / "b.txt").write_text((answers / "imx95-6.18.20.txt").read_text(), encoding=encoding)
    assert ask.codes("--from-file", tmp_path / "b.txt") == (0, [])


def test_a_part_of_an_answer_and_an_unknown_chip(answers: Path, tmp_path: Path, ask: Asker) -> None:
    text = (answers / "imx93-6.6.36.txt").read_text()
    (tmp_path / "part.txt").write_text(text[:len(text) // 2])
    assert "doctor.partial" in ask.codes("--from-file", tmp_path / "part.txt")[1]
    (tmp_path / "other.txt").write_text(text.replace("i.MX93", "Exynos").replace("imx93", "exynos"))
    assert ask.codes("--from-file", tmp_path / "other.txt") == (1, ["doctor.chip-unknown"])
    status, codes = ask.codes("--from-file", tmp_path / "other.txt", "--target", "imx93")
    assert (status, codes) == (0, ["doctor.chip-unknown", "doctor.compiler-version"])


def test_a_board_over_ssh(tmp_path: Path, ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables()["imx95"]
    root = lay_out(tmp_path / "board", table, table.rows[-1], without=("NPU device",))
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with serving(shell_in(root), tmp_path) as server:
        words = ["--board", f"root@127.0.0.1:{server.port}", "--known-hosts", server.known_hosts, "--identity",
                 server.identity]
        status, result = ask(*words)
        assert status == 1
        assert [f.code for f in result.findings] == ["doctor.missing"]
        assert "Neutron hardware init failed" in result.findings[0].why
        assert result.board is not None
        assert result.board.compiler_version == "3.1.2"
        assert ask.codes(*words[:3], server.other_hosts) == (1, ["board.host-key-changed"])


def test_without_the_package_for_ssh_the_way_without_is_named(monkeypatch: pytest.MonkeyPatch, ask: Asker) -> None:
    assert importlib.util.find_spec("asyncssh")
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    status, result = ask("--board", "127.0.0.1:9")
    assert status == 2
    assert result.findings[0].code == "board.no-asyncssh"
    assert "--from-file" in result.findings[0].help
