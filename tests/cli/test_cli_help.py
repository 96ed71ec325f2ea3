"""What `--help` says is stored beside this file; `python tests/cli/test_cli_help.py` writes it anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import PROGRAM, run

from vitrify import __version__
from vitrify.results import RESULTS

TEXTS = Path(__file__).parent / "help"
PAGES = {"vitrify": (), **{name: (name,) for name in RESULTS}}
HEAVY = ("onnx", "onnxruntime", "ai_edge_litert", "PIL", "ethosu", "numpy", "rich", "typer", "pydantic")


@pytest.mark.parametrize("page", PAGES)
def test_help_is_as_stored(page: str) -> None:
    ran = run(*PAGES[page], "--help")
    assert ran.status == 0
    assert ran.out == (TEXTS / f"{page}.txt").read_text()


@pytest.mark.parametrize(("words", "page"), [("help", "vitrify"), ("help convert", "convert")])
def test_help_is_a_command_too(words: str, page: str) -> None:
    ran = run(*words.split())
    assert (ran.status, ran.out) == (0, (TEXTS / f"{page}.txt").read_text())


def test_help_loads_nothing_heavy() -> None:
    code = ("import sys; from vitrify.cli.main import call; call(['--help']); "
            f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stderr.strip() == "[]"


def test_version() -> None:
    assert run("--version").out == f"vitrify {__version__}\n"


def test_without_arguments_help_is_shown() -> None:
    ran = run()
    assert ran.status == 2
    assert "commands:" in ran.out + ran.err


if __name__ == "__main__":
    TEXTS.mkdir(exist_ok=True)
    for name, words in PAGES.items():
        (TEXTS / f"{name}.txt").write_text(run(*words, "--help").out)
    print("written:", ", ".join(PAGES), "by", " ".join(PROGRAM))
