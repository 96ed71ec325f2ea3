"""Gates: what they read, when they fail, and that one which cannot be judged does not pass in silence."""

from __future__ import annotations

import pytest

from vitrify.core.errors import UsageError
from vitrify.profile.gates import gate_findings, judge_gate, parse_gate
from vitrify.profile.known import FIGURES, figure
from vitrify.results import Coverage, Estimate, ProfileResult
from vitrify.results.profiling import EstimatedRow, MemoryPlan


def profile(ms: float | None = 10.0, coverage: float | None = 0.98, arena: int = 1000) -> ProfileResult:
    rows = [EstimatedRow(index=0, node="a", operator="CONV_2D", placement="npu", time_ms=ms, macs=5, far_bytes=7)]
    return ProfileResult(basis="estimated", total_ms=ms, operators=list(rows), nodes=1,
                         coverage=Coverage(nodes=coverage), memory=MemoryPlan(arena_bytes=arena),
                         estimate=Estimate(latency_ms=ms, npu_ms=ms))


CASES = {
    # expression: (before, after, failed, what is said)
    "latency_ms>+5%": (profile(10.0), profile(10.6), True, "+6 %"),
    "latency_ms>+6.5%": (profile(10.0), profile(10.6), False, "+6 %"),
    "latency_ms>=+6%": (profile(10.0), profile(10.6), True, "+6 %"),
    "latency_ms > +0.5": (profile(10.0), profile(10.6), True, "+0.6"),
    "latency_ms<-20%": (profile(10.0), profile(7.0), True, "-30 %"),
    "latency_ms>12": (None, profile(10.6), False, "is 10.6"),
    "npu_coverage<0.99": (None, profile(), True, "is 0.98"),
    "npu_coverage<-0.01": (profile(coverage=1.0), profile(coverage=0.98), True, "-0.02"),
    "arena_bytes>1e3": (None, profile(arena=1001), True, "is 1,001"),
    "nodes<=.5": (None, profile(), False, "is 1"),
}


@pytest.mark.parametrize("expression", CASES)
def test_a_gate_is_judged(expression: str) -> None:
    before, after, failed, said = CASES[expression]
    row = judge_gate(parse_gate(expression), after, before)
    assert row.failed is failed
    assert said in row.text
    assert [f.code for f in gate_findings([row])] == (["profile.gate-failed"] if failed else [])


@pytest.mark.parametrize(("expression", "before", "after"), [
    ("npu_cycles>5", None, profile()), ("latency_ms>+5%", None, profile()),
    ("latency_ms>+5%", profile(None), profile()), ("latency_ms>+5%", profile(0.0), profile()),
    ("npu_coverage<0.9", None, profile(coverage=None))], ids=["none here", "no other", "none there", "zero", "unknown"])
def test_what_cannot_be_judged_fails_too(expression: str, before: ProfileResult | None, after: ProfileResult) -> None:
    row = judge_gate(parse_gate(expression), after, before)
    assert row.failed is None
    assert [f.code for f in gate_findings([row])] == ["profile.gate-unknown"]


@pytest.mark.parametrize("text", ["", "latency_ms", "latency_ms>", "latency>+5%", "latency_ms>5%%", "latency_ms==5",
                                  "latency_ms>nan", "latency_ms>--5", "__class__>1", "latency_ms>+5% and nodes<3"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-if"):
        parse_gate(text)


def test_a_near_name_is_offered() -> None:
    with pytest.raises(UsageError, match="did you mean npu_coverage"):
        parse_gate("npu_coverag<0.9")


def test_every_figure_can_be_asked_of_an_empty_profile() -> None:
    assert {name: figure(ProfileResult(), name) for name in FIGURES}["latency_ms"] is None
