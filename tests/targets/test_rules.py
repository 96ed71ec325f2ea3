"""The rules find what each probe breaks, all of it, with the values; and every rule has a probe that breaks it."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from vitrify.targets import ethos_u, load, names
from vitrify.targets.ethos_u.cores import core
from vitrify.targets.ethos_u.probes import Probe, probes
from vitrify.targets.ethos_u.settling import variant
from vitrify.targets.placement import Reason
from vitrify.targets.rules import judge, reasons, rules_of

CORES = {"u55": "ethos-u55-128", "u65": "imx93", "u85": "ethos-u85-256"}
PROBES = {f"{name}: {one.name}": (name, one) for name in CORES for one in probes(variant(name))}
NOT_PROBED = {
    "ethos-u.bias-type": "LiteRT refuses such a file before the compiler sees it",
    "ethos-u.bias-shape": "shape inference refuses it", "ethos-u.weights-shape": "shape inference refuses it",
    "ethos-u.split-count": "shape inference refuses it",
    "ethos-u.table-shape": "shape inference refuses it"}


def found(name: str, one: Probe) -> tuple[Reason, ...]:
    graph = one.graph()
    return reasons(graph, load(CORES[name])).get(list(graph)[-1], ())


@pytest.mark.parametrize(("name", "one"), PROBES.values(), ids=PROBES)
def test_all_broken_rules_are_found(name: str, one: Probe) -> None:
    got = found(name, one)
    assert sorted(reason.code for reason in got) == sorted(one.codes)
    for key, value in one.values.items():
        assert any(reason.values.get(key) == value for reason in got), (key, value)
    assert all(all((reason.headline, reason.why, reason.source, reason.versions)) for reason in got)


def test_there_are_enough_probes() -> None:
    for name in CORES:
        some = probes(variant(name))
        assert len(some) >= 200, name
        assert len({one.name for one in some}) == len(some), name
        assert sum(len(set(one.codes)) > 1 for one in some) >= 2, name


@pytest.mark.parametrize("name", CORES)
def test_every_rule_is_broken_by_a_probe(name: str) -> None:
    broken = {code for one in probes(variant(name)) for code in one.codes}
    codes = {rule.code for rule in rules_of("ethos_u") if not rule.cores or name in rule.cores}
    assert codes - broken == set(NOT_PROBED)


@pytest.mark.parametrize("name", CORES)
def test_every_operator_with_a_rule_has_a_legal_probe(name: str) -> None:
    legal = {list(one.graph())[-1].op.kind for one in probes(variant(name)) if not one.codes}
    ruled = {kind for rule in rules_of("ethos_u") if not rule.cores or name in rule.cores for kind in rule.operators}
    without = set() if name == "u85" else {"REVERSE_V2"}        # reversing nothing is all that the small cores do
    assert ruled & core(name).operators <= legal | without


def test_rules_say_all_that_a_user_needs() -> None:
    for rule in rules_of("ethos_u"):
        assert rule.code.startswith("ethos-u.")
        assert all((rule.says, rule.why, rule.source, rule.versions)), rule.code
        assert rule.operators <= core("u85").operators, rule.code
    counts = Counter((rule.code, rule.operators, rule.cores) for rule in rules_of("ethos_u"))
    assert not [key for key, count in counts.items() if count > 1]


@pytest.mark.parametrize("name", [name for name in names() if load(name).family == "ethos_u"])
def test_every_target_of_the_family_is_judged(name: str) -> None:
    good = next(one for one in probes(variant(load(name).core)) if one.name == "mean over height and width")
    bad = next(one for one in probes(variant(load(name).core)) if one.name == "mean of batch 2 over depth")
    assert [verdict.placement for verdict in judge(good.graph(), load(name))] == ["npu"]
    (verdict,) = judge(bad.graph(), load(name))
    assert verdict.placement == "cpu"
    assert {reason.code for reason in verdict.rules} == {"ethos-u.batch", "ethos-u.depth-reduction"}
    assert verdict.confidence == "documented"


def test_limits_stand_in_the_sentences() -> None:
    one = next(one for one in probes(variant("u65")) if one.name == "mean over 4097")
    (reason,) = found("u65", one)
    assert "4097" in reason.headline
    assert "4096" in reason.headline
    assert reason.nearest


def test_what_differs_from_published_limits_has_a_legal_probe() -> None:
    text = (Path(ethos_u.__file__).parent / "published.toml").read_text(encoding="utf-8")
    known = {one.name: one for one in probes(variant("u65"))}
    rows = tomllib.loads(text)["difference"]
    assert rows
    for row in rows:
        assert known[row["probe"]].codes == (), row
