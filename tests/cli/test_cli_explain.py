"""`explain` and `targets`: every code of a rule or a diagnosis is told in full, and wrong names lead to near ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cli_runs import parsed

from vitrify.cli.main import call
from vitrify.pipeline.checking.diagnosing import kinds
from vitrify.pipeline.explaining import all_codes, explain
from vitrify.results import ExplainResult, Result, TargetsResult
from vitrify.targets import base as targets
from vitrify.targets.rules import rules_of

Ask = Callable[..., tuple[int, Result]]
RULES = sorted({rule.code for name in targets.names() for rule in rules_of(targets.load(name).family)})


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return lambda *words: (call([*map(str, words), "--json"]), parsed(capsys.readouterr().out))


@pytest.mark.parametrize("code", RULES)
def test_each_rule_says_what_why_and_whence(code: str) -> None:
    rows = explain(code).explanations
    assert rows
    for row in rows:
        assert row.kind == "rule"
        assert row.says
        assert row.why
        assert row.source
        assert row.confidence in ("documented", "observed", "inferred", "unknown")
        assert row.versions
        assert row.targets


@pytest.mark.parametrize("code", [kind.code for kind in kinds()])
def test_each_diagnosis_says_what_and_why(code: str) -> None:
    (row,) = explain(code).explanations
    assert row.kind == "diagnosis"
    assert row.says
    assert row.why


@pytest.mark.parametrize(("code", "said"), [
    ("ops.multiplier", "the smallest legal one is {least}"), ("check.disagreement", ""),
    ("quant.no_int8", "it has no int8 kernel"), ("target.unknown", "unknown target '{name}'"),
    ("litert.custom-operator", "LiteRT does not know the custom operator")])
def test_other_findings_are_told_as_the_program_says_them(code: str, said: str) -> None:
    rows = explain(code).explanations
    assert rows
    assert {row.kind for row in rows} == {"finding"}
    assert any(said in row.says for row in rows)


@pytest.mark.parametrize(("code", "near"), [("ethos-u.strid", "ethos-u.stride"), ("float.iland", "float.island"),
                                            ("stride", "ethos-u.stride")])
def test_an_unknown_code_leads_to_near_ones(ask: Ask, code: str, near: str) -> None:
    status, result = ask("explain", code)
    assert status == 2
    assert result.findings[0].code == "explain.unknown"
    assert near in result.findings[0].help


@pytest.mark.parametrize("code", ["no.such.code", "x.y", "zzz", "banana.split"])
def test_a_code_that_is_near_to_none_leads_to_the_list(ask: Ask, code: str) -> None:
    status, result = ask("explain", code)
    assert status == 2
    assert result.findings[0].help == "`vitrify explain` lists all codes"


def test_every_code_that_is_listed_can_be_explained() -> None:
    silent = [code for code in all_codes() if not any(row.says for row in explain(code).explanations)]
    assert len(silent) < 30, silent


def test_all_codes_are_listed(ask: Ask) -> None:
    status, result = ask("explain")
    assert status == 0
    assert isinstance(result, ExplainResult)
    assert set(RULES) | {kind.code for kind in kinds()} <= set(result.codes)
    assert len(result.codes) > 250
    assert result.codes == all_codes()


def test_targets(ask: Ask) -> None:
    status, result = ask("targets")
    assert status == 0
    assert isinstance(result, TargetsResult)
    assert [row.name for row in result.targets] == targets.names()
    by_family = {row.family: row for row in result.targets}
    assert by_family["ethos_u"].has_compiler
    assert by_family["ethos_u"].rules > 30
    assert by_family["neutron"].rules > 30
    assert all(row.rules and (row.has_compiler or row.backend) for row in result.targets)
    assert [row.name for row in result.targets if row.where_compiled] == ["ara240", "imx8mp"]
    assert by_family["vip8000"].assumed == ["macs_per_cycle", "clock_hz"]
    assert by_family["vip8000"].cache_bytes is None
    status, result = ask("targets", "imx93")
    assert status == 0
    assert isinstance(result, TargetsResult)
    (row,) = result.targets
    assert {fact.name for fact in row.facts} == set(targets.load("imx93").facts)
    assert all(fact.source and fact.basis for fact in row.facts)
    assert "CONV_2D" in row.operators


def test_an_unknown_target_leads_to_near_ones(ask: Ask) -> None:
    status, result = ask("targets", "imx39")
    assert status == 2
    assert "imx93" in result.findings[0].help
