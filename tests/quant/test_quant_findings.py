"""Every finding of quantization names a value in its headline and says what to do; what it tells to write works."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vitrify
from vitrify.quant.recipe import override_line, parse_recipe

ROOT = Path(vitrify.__file__).parent
SAYS_WHAT_WAS_DONE = {
    "quant.host": "what was done, and is as it should be",
    "range.collision": "tells how only where nothing was done",
    "range.outlier_constant": "what was done, and is as it should be",
    "quant.own-scales": "the file is taken as it is",
    "quant.short": "16 bits are not enough either, and nothing finer is there",
    "quant.unreached": "the budget is what stands in the way",
    "quant.reached": "all is well",
    "quant.samples-unused": "the file brings its scales",
}
"""Findings that need no help, or not always."""
WITHOUT_VALUE = {"quant.random": "there is no number to it", "quant.samples-unused": "there is no number to it"}


def calls() -> Iterator[tuple[str, dict[str, ast.expr], str]]:
    """The findings that are built in the source: code, arguments, place."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            given = {k.arg: k.value for k in node.keywords if k.arg}
            if isinstance(node.func, ast.Attribute) and node.func.attr == "of" and len(node.args) > 1:
                given |= {"code": node.args[0], "headline": node.args[1]}
            for code in codes(given.get("code")):
                if re.match(r"(quant|range|recipe|search|calibration)\.", code) and "headline" in given:
                    yield code, given, f"{path.relative_to(ROOT)}:{node.lineno}"


def codes(value: ast.expr | None) -> Iterator[str]:
    """The codes that an argument can be."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from codes(value.body)
        yield from codes(value.orelse)


CALLS = list(calls())
QUANT = [(code, given, where) for code, given, where in CALLS if code.startswith(("quant.", "range."))]


def has_value(expression: ast.expr) -> bool:
    """True for text with something put in, or made elsewhere."""
    return any(isinstance(part, ast.FormattedValue | ast.Name) for part in ast.walk(expression))


def test_findings_are_found() -> None:
    known = {"quant.reciprocal", "quant.no_int8", "quant.mixed", "quant.over-budget", "range.parts"}
    assert known <= {code for code, *_ in CALLS}
    assert len(CALLS) > 50


@pytest.mark.parametrize(("code", "given", "where"), CALLS, ids=[f"{code} {where}" for code, _, where in CALLS])
def test_the_headline_names_a_value(code: str, given: dict[str, ast.expr], where: str) -> None:
    assert code in WITHOUT_VALUE or has_value(given["headline"]) or not code.startswith(("quant.", "range.")), where


@pytest.mark.parametrize(("code", "given", "where"), QUANT, ids=[f"{code} {where}" for code, _, where in QUANT])
def test_there_is_help(code: str, given: dict[str, ast.expr], where: str) -> None:
    assert code in SAYS_WHAT_WAS_DONE or "help" in given, where
    assert "why" in given, where
    text = ast.unparse(given["help"]) if "help" in given else ""
    assert "[[overrides]] " not in text, f"{where}: a table's head and its keys do not stand in one line of TOML"


@pytest.mark.parametrize("name", ["/model.22/Sigmoid", 'odd "name"', "back\\slash"])
def test_a_line_that_is_told_is_a_recipe(name: str) -> None:
    recipe = parse_recipe(override_line(nodes=[name], activations="float"))
    assert recipe.overrides[0].nodes == (name,)
    assert recipe.overrides[0].activations == "float"
