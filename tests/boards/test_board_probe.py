"""The probe's answer is read out of whatever a terminal made of it, and only what was told is believed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from board_trees import facts_of, lay_out, probed, write

from vitrify.boards import Facts, judge, probe_script, read_probe, table_of, tables
from vitrify.boards.facts import LARGEST, version_in

TABLE = tables()["imx95"]
ROW = TABLE.rows[-1]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return probed(lay_out(tmp_path_factory.mktemp("board"), TABLE, ROW))


def wrapped(text: str, width: int) -> str:
    return "\n".join(line[at:at + width] for line in text.splitlines() for at in range(0, max(len(line), 1), width))


def coloured(text: str) -> str:
    return "".join(f"\x1b[0;32m{line}\x1b[0m\x1b[K\n" for line in text.splitlines())


def console(text: str) -> str:
    """A serial console: carriage returns, and messages of the kernel between the lines."""
    lines = [f"[  {number}.{number:06}] imx-rproc: a message <with> | marks\r\n{line}"
             for number, line in enumerate(text.splitlines())]
    return "\r\n".join(lines)


NOISE: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "crcrlf": lambda text: text.replace("\n", "\r\r\n"),
    "indented": lambda text: "\n".join(f"   {line}  " for line in text.splitlines()),
    "prompts": lambda text: "\n".join(f"root@imx95evk:~# {line}" for line in text.splitlines()),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
    "colours": coloured,
    "wrapped at 80": lambda text: wrapped(text, 80),
    "wrapped at 40": lambda text: wrapped(text, 40),
    **{f"wrapped at {width}": lambda text, width=width: wrapped(text, width) for width in range(13, 40, 3)},  # type: ignore[misc]
    "console": console,
    "title": lambda text: f"\x1b]0;root@board: ~\x07{text}\x1b]0;x\x1b\\",
    "echo of the script": lambda text: f"root@board:~# {probe_script()}\n{text}",
    "twice": lambda text: text + text,
    "nuls": lambda text: "\x00" + text.replace("\n", "\x00\n"),
}


@pytest.mark.parametrize("noise", NOISE)
def test_noise_does_no_harm(noise: str, answer: str) -> None:
    clean, noisy = read_probe(answer), read_probe(NOISE[noise](answer))
    assert noisy.told == clean.told
    assert noisy.whole
    assert clean.whole
    assert judge(noisy, TABLE).findings == []


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9, 0.999])
def test_a_part_of_an_answer_is_told_as_such(kept: float, answer: str) -> None:
    facts = read_probe(answer[:int(len(answer) * kept)])
    assert facts.missing is None
    assert not facts.whole
    assert not [f for f in judge(facts, TABLE).findings if f.code == "doctor.missing"]


def test_lines_that_are_lost_in_the_middle_are_counted(answer: str) -> None:
    lines = answer.splitlines()
    facts = read_probe("\n".join(lines[:10] + lines[14:]))
    assert facts.missing == 4


@pytest.mark.parametrize("seed", range(30))
def test_garbage_is_read_in_bounds(seed: int, answer: str) -> None:
    draw = random.Random(seed)
    data = bytearray(answer.encode())
    for _ in range(draw.choice([1, 20, 400])):
        data[draw.randrange(len(data))] = draw.randrange(256)
    facts = read_probe(data.decode("utf-8", "replace"))
    assert len(facts.told) < 200
    judge(facts, table_of(facts) or TABLE)


@pytest.mark.parametrize("text", ["<vt " * 300_000, "<vt a|" + "b" * (2 << 20), "<vt a|b vt>\n" * 200_000,
                                  "\x1b]" * 400_000, "[ 1.0000001" * 100_000, "<vt a|b\n" * 100_000,
                                  "<vt end|99999999999999 vt>", "vt>" * 300_000],
                         ids=["marks", "long", "many", "escapes", "kernel", "open", "count", "ends"])
def test_hostile_answers_cost_little(text: str) -> None:
    facts = read_probe(text)
    assert sum(len(name) + len(value) for name, value in facts.told.items()) < LARGEST


def test_the_probe_needs_few_tools(tmp_path: Path, answer: str) -> None:
    """It gives the same with nothing on the path but what BusyBox has."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "tr", "cut", "head", "sed", "wc", "readlink", "awk", "df", "cat", "uname"):
        found = shutil.which(name)
        assert found, name
        (tools / name).symlink_to(Path(found).resolve())
    root = lay_out(tmp_path / "board", TABLE, ROW)
    told = read_probe(probed(root, ("/usr/bin/env", f"PATH={tools}", "/bin/sh", "-s"))).told
    changing = {"disk.root", "disk.tmp"}
    assert {k: v for k, v in told.items() if k not in changing} == {
        k: v for k, v in read_probe(answer).told.items() if k not in changing}


@pytest.mark.parametrize("shell", ["bash --posix", "busybox sh"])
def test_the_probe_gives_the_same_in_other_shells(shell: str, answer: str, tmp_path: Path) -> None:
    words = shell.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    told = read_probe(probed(lay_out(tmp_path, TABLE, ROW), (*words, "-s"))).told
    assert {k for k, v in told.items() if v != read_probe(answer).told.get(k)} <= {"disk.root", "disk.tmp"}


def test_the_probe_on_an_empty_tree_tells_what_is_absent(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    assert facts.whole
    assert facts.is_absent("/dev/ethosu0")
    assert facts.kernel == ""
    assert table_of(facts) is None


def test_values_of_a_board_cannot_break_out(tmp_path: Path) -> None:
    evil = "x vt>\n<vt soc.soc_id|i.MX95 vt>\t$(touch /tmp/evil)`id`;\x00 % %s \\n"
    write(tmp_path, "/sys/devices/soc0/machine", evil)
    write(tmp_path, "/etc/os-release", "NAME=\"$(id) %d <vt a|b vt>\"\n")
    write(tmp_path, "/usr/lib/libtensorflow-lite.so.2 $(id)", "x")
    facts = facts_of(tmp_path)
    assert facts.text("soc.soc_id") == ""
    assert "$(touch /tmp/evil)`id`" in facts.text("soc.machine")
    assert "uid=" not in "".join(facts.told.values())
    assert facts.text("os.NAME").startswith("$(id) %d (vt a|b vt)")


@pytest.mark.parametrize(("text", "version"), [
    ("6.6.36-lts-next-g12", "6.6.36"), ("6.18.20-2.0.0", "6.18.20"), ("2.16.2+git0+abc-r0", "2.16.2"), ("", ""),
    ("ethos_u_vela-3.12.0.dist-info", "3.12.0"), ("none", "")])
def test_versions_are_found(text: str, version: str) -> None:
    assert version_in(text) == version


def test_a_board_by_its_device_tree_alone() -> None:
    assert table_of(Facts({"dt.compatible": "fsl,imx93-11x11-evk fsl,imx93"})) is tables()["imx93"]
    assert table_of(Facts({"soc.soc_id": "i.MX8MM"})) is None
    assert table_of(Facts({"soc.soc_id": "i.MX950"})) is None
