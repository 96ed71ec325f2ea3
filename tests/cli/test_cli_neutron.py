"""The command line with a closed compiler: exit statuses, and no stack trace whatever it does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cli_runs import answer, run

sys.path.insert(0, str(Path(__file__).parent.parent / "backends"))

from neutron_stand_in.making import five_graphs, make_sdk

from vitrify.results import CompileResult


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VITRIFY_NEUTRON_SDK", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_without_the_sdk_the_exit_status_is_1_and_the_command_for_later_is_told(tmp_path: Path) -> None:
    five_graphs(tmp_path / "m.tflite", graphs=2)
    status, result = answer("compile", "m.tflite", "--target", "imx95", cwd=tmp_path)
    assert status == 1
    assert isinstance(result, CompileResult)
    assert result.findings[0].code == "neutron.not-installed"
    assert result.findings[0].help.startswith("vitrify compile m.tflite --target imx95 --neutron-sdk FOLDER")
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_options_reach_the_converter_and_its_result_is_verified(tmp_path: Path) -> None:
    five_graphs(tmp_path / "m.tflite", graphs=2)
    make_sdk(tmp_path / "sdk")
    ran = run("compile", "m.tflite", "--target", "imx95", "--neutron-sdk", "sdk", "--neutron-option",
              "force-determinism", cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert "wrote m_neutron.tflite" in ran.out
    assert "compile against m.tflite, 3 samples: good" in ran.out


@pytest.mark.parametrize("mode", ["crashing", "garbage"])
def test_a_broken_converter_is_a_finding_and_no_stack_trace(mode: str, tmp_path: Path) -> None:
    five_graphs(tmp_path / "m.tflite", graphs=2)
    make_sdk(tmp_path / "sdk", mode=mode)
    ran = run("compile", "m.tflite", "--target", "imx95", "--neutron-sdk", "sdk", cwd=tmp_path)
    assert ran.status == 1
    assert "error[neutron." in ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err
    assert not (tmp_path / "m_neutron.tflite").exists()


WRONG = {
    "no sdk there": (("--neutron-sdk", "nowhere"), "there is no eIQ Neutron SDK at nowhere"),
    "search": (("--search",), "--search tries settings of Vela"),
    "twice": (("--neutron-option", "a=1", "--neutron-option", "a=2"), "names 'a' twice"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_wrong_calls(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    five_graphs(tmp_path / "m.tflite", graphs=1)
    ran = run("compile", "m.tflite", "--target", "imx95", *words, cwd=tmp_path)
    assert ran.status == 2
    assert said in ran.out + ran.err
