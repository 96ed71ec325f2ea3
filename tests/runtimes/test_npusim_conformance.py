"""The functional model of the NPU against the right oracle, over all that Vela takes: a spread of it, or the whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from npusim_cases.compilers import COMPILERS, FIRST, SMALL, Compiler, Setting, settings
from npusim_cases.exceptions import FAULTS, fault_of
from npusim_cases.judging import Judge, Outcome
from npusim_cases.pen import Case, all_cases

CASES = all_cases()
EVERY = 24
"""Of the default suite: each case of two dozen, every one of an operator's first two, with one setting in turn."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    found = Judge(tmp_path_factory.mktemp("conformance"))
    yield found
    found.close()


def spread() -> list[tuple[Case, Setting]]:
    """Some cases, each with one setting of an installed release."""
    seen: dict[str, int] = {}
    chosen = []
    for place, case in enumerate(CASES):
        seen[case.operator] = seen.get(case.operator, 0) + 1
        if seen[case.operator] <= 2 or place % EVERY == 0:
            installed = [FIRST, *(one for one in settings(place) if one.compiler.version.startswith("5"))]
            chosen.append((case, installed[place % len(installed)]))
    return chosen


def told(outcomes: list[Outcome]) -> list[str]:
    """Outcomes that are no known fault, in words."""
    return [f"{one.case} ({one.setting.name}): {one.state}, {one.said}" for one in outcomes
            if one.bad and fault_of(one) is None]


def test_a_spread_of_cases_is_exact(judge: Judge) -> None:
    outcomes = [judge.judge(*one) for one in spread()]
    assert told(outcomes) == []
    exact = [one for one in outcomes if one.state == "exact"]
    assert len(exact) >= 120
    assert len({one.case.partition(" ")[0] for one in exact}) >= 40


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda one: one.name)
def test_every_case_is_exact(compiler: Compiler, judge: Judge) -> None:
    if not compiler.installed:
        pytest.skip("Vela 4.5.0 is not there: make .cache/peers/vela45/complete")
    outcomes = [judge.judge(case, setting) for place, case in enumerate(CASES) for setting in settings(place)
                if setting.compiler == compiler]
    assert told(outcomes) == []
    assert sum(one.state == "exact" for one in outcomes) >= 1500
    faults = {fault.name for one in outcomes if one.bad and (fault := fault_of(one)) is not None}
    assert faults == {fault.name for fault in FAULTS[:-1] if compiler.name in EXPECTED[fault.name]}


def test_a_cascade_of_one_row_too_few_is_seen(judge: Judge) -> None:
    case = next(one for one in CASES if one.name == FAULTS[-1].cases)
    assert fault_of(judge.judge(case, SMALL)) is FAULTS[-1]


_REGOR, _LEGACY = {"5.2 Regor", "4.5 Regor"}, {"5.2 legacy", "4.5 legacy"}
EXPECTED = {"ethos-u.sum-wrong": _REGOR, "ethos-u.neg-scales": {"5.2 Regor"}, "ethos-u.dropped-axis": {"5.2 Regor"},
            "ethos-u.mirrored-depth": _REGOR, "ethos-u.lstm-clip": _REGOR, "tables": _REGOR | _LEGACY,
            "negative slopes": _REGOR | _LEGACY,
            "sums by shifts": _REGOR | _LEGACY, "pools with a scale": {"4.5 Regor"}, "a sum's scale": {"4.5 Regor"}}


def test_no_two_cases_are_alike_and_each_operator_has_some() -> None:
    from ethosu import regor

    names = {"ARGMAX": "ARG_MAX"}
    known = {names.get(one, one) for one in regor.tflite_operator_constraints("EthosU65")}
    assert known - {case.operator for case in CASES} == set()
    assert len(CASES) >= 300
