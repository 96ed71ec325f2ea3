"""Targets are found by their folder; every fact names its source and lies within its own bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitrify.core.errors import InternalError, UsageError
from vitrify.targets import Fact, base, load, names

GOOD = """title = "T"
npu = "N"
backend = "b"
accelerator = "a"
family = "f"
core = "c"
[facts.x_hz]
value = 1
basis = "assumed"
source = "s"
"""


@pytest.mark.parametrize("name", names())
def test_every_target_loads_and_its_facts_are_sound(name: str) -> None:
    target = load(name)
    assert target.name == name
    for key, fact in target.facts.items():
        low, high = fact.bounds
        assert low <= fact.value <= high, key
        assert len(fact.source) > 5, key
        assert (fact.low is None) == (fact.high is None), key
        assert fact.basis == "documented" or fact.low is not None, f"{key} is doubtful and has no bounds"
    assert len(target.doubts()) == sum(fact.basis != "documented" for fact in target.facts.values())


def test_the_imx93_is_there() -> None:
    target = load("imx93")
    assert target.value("cache_bytes") == 384 * 1024
    assert target.fact("dram_bytes_per_s").bounds == (3.75e9, 12e9)


def test_an_unknown_target_is_the_calls_fault() -> None:
    with pytest.raises(UsageError, match="unknown target 'imx39'") as caught:
        load("imx39")
    assert "imx93" in caught.value.findings[0].help
    assert caught.value.exit_status == 2


BROKEN = {
    "not toml": ("title = ", "do not fit"),
    "field missing": ('title = "T"\n', "missing required field `npu`"),
    "unknown field": (GOOD + 'colour = "red"\n', "unknown field `colour`"),
    "unknown basis": (GOOD.replace("assumed", "guessed"), "Invalid enum value 'guessed'"),
    "no source": (GOOD.replace('source = "s"\n', ""), "missing required field `source`"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_facts_that_do_not_fit_are_our_fault(text: str, message: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chip").mkdir()
    (tmp_path / "chip" / "facts.toml").write_text(text)
    monkeypatch.setattr(base, "_FOLDER", tmp_path)
    with pytest.raises(InternalError, match=message):
        load("chip")


def test_a_new_folder_is_a_new_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chip").mkdir()
    (tmp_path / "chip" / "facts.toml").write_text(GOOD)
    monkeypatch.setattr(base, "_FOLDER", tmp_path)
    assert names() == ["chip"]
    assert load("chip").fact("x_hz") == Fact(value=1, basis="assumed", source="s")
    with pytest.raises(InternalError, match="the facts of chip lack 'y_hz'"):
        load("chip").value("y_hz")
