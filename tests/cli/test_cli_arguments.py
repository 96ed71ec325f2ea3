"""How words become the arguments of a command's function."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest

from vitrify.cli.arguments import Argument, Option, WrongCallError, parse, parser_of


class Size(Enum):
    """Some choice."""

    SMALL = "small"
    LARGE = "large"


def run(files: Annotated[list[Path], Argument("FILE", "Some files.")],
        size: Annotated[Size, Option("--size", help="How large.")] = Size.SMALL,
        count: Annotated[int | None, Option("-n", "--count", metavar="N", min=1, help="How many.")] = None,
        mean: Annotated[str, Option("--mean", metavar="M", help="100 % of it.")] = "0",
        name: Annotated[list[str], Option("--name", metavar="NAME", help="Names.")] = [],  # noqa: B006
        quiet: Annotated[bool, Option("-q", "--quiet", help="Say nothing.")] = False) -> int:
    """Do something."""
    SEEN.update(locals())
    return 7


SEEN: dict[str, Any] = {}
DEFAULTS = {"files": [Path("a")], "size": Size.SMALL, "count": None, "mean": "0", "name": [], "quiet": False}


@pytest.mark.parametrize(("words", "seen"), [
    ("a", {}),
    ("a b", {"files": [Path("a"), Path("b")]}),
    ("a --quiet b -n 3 c", {"files": [Path("a"), Path("b"), Path("c")], "quiet": True, "count": 3}),
    ("a --size large", {"size": Size.LARGE}),
    ("a --name x --name y", {"name": ["x", "y"]}),
    ("a --mean -1,-2.5,-.5", {"mean": "-1,-2.5,-.5"}),
    ("--mean=-1 a", {"mean": "-1"}),
])
def test_words(words: str, seen: dict[str, Any]) -> None:
    SEEN.clear()
    assert parse("run", run, words.split()) == 7
    assert {**DEFAULTS, **seen} == SEEN


@pytest.mark.parametrize(("words", "message"), [
    ("", "required: FILE"),
    ("a --size medium", "'medium' is not one of small, large"),
    ("a --count 0", "0 is less than 1"),
    ("a --count x", "'x' is no whole number"),
    ("a --mean", "expected one argument"),
    ("a --mean --quiet", "expected one argument"),
    ("a --qui", "--qui"),
    ("a --quiet=3", "ignored explicit argument"),
])
def test_wrong_words(words: str, message: str) -> None:
    with pytest.raises(WrongCallError, match=message) as error:
        parse("run", run, words.split())
    near = "perhaps --quiet; " if message == "--qui" else ""
    assert error.value.usage == f"{near}see `vitrify run --help`"


def test_a_repeatable_option_starts_empty_each_time() -> None:
    for _ in range(2):
        parse("run", run, ["a", "--name", "x"])
        assert SEEN["name"] == ["x"]


def test_help_tells_defaults_and_choices() -> None:
    text = " ".join(parser_of("run", run).format_help().split())
    assert "usage: vitrify run [options] FILE ..." in text
    assert "--size <small|large> How large. [default: small]" in text
    assert "100 % of it. [default: 0]" in text
