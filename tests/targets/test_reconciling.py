"""The compiler's result wins over the rules, and a difference is told."""

from __future__ import annotations

import pytest

from vitrify.core.findings import Severity
from vitrify.targets import Reason, Verdict
from vitrify.targets.placement import Place
from vitrify.targets.reconciling import disagreement, reconcile

RULE = Reason(code="ethos-u.stride", headline="its stride is 4, the NPU has 1 to 3", confidence="documented")
PRINTED = Reason(code="ethos-u.constraint", headline="stride out of range")


def verdict(place: Place, *rules: Reason) -> Verdict:
    return Verdict(node="conv", operator="CONV_2D", placement=place, rules=rules)


@pytest.mark.parametrize(("ruled", "compiled", "place", "rules", "differ"), [
    (verdict("npu"), verdict("npu"), "npu", (), 0),
    (verdict("npu"), verdict("folded"), "folded", (), 0),
    (verdict("cpu", RULE), verdict("cpu", PRINTED), "cpu", (RULE,), 0),      # the rules know more than is printed
    (verdict("cpu", RULE), verdict("npu"), "npu", (), 1),
    (verdict("cpu", RULE), verdict("folded"), "folded", (), 1),
    (verdict("npu"), verdict("cpu", PRINTED), "cpu", (PRINTED,), 1)])
def test_the_compiler_wins(ruled: Verdict, compiled: Verdict, place: Place, rules: tuple[Reason, ...],
                           differ: int) -> None:
    (found,), differences = reconcile([ruled], [compiled])
    assert (found.placement, found.rules, len(differences)) == (place, rules, differ)
    assert found.confidence == "compiler"


def test_a_difference_is_told_once_for_each_rule() -> None:
    ruled, compiled = [verdict("cpu", RULE)] * 7, [verdict("npu")] * 7
    _, differences = reconcile(ruled, compiled)
    (finding,) = disagreement(differences, "Vela 5.2.0")
    assert finding.code == "check.disagreement"
    assert finding.severity is Severity.WARNING
    assert "7 nodes" in finding.headline
    assert "ethos-u.stride" in finding.why


def test_what_the_compiler_says_is_told_where_no_rule_knows() -> None:
    _, differences = reconcile([verdict("npu")], [verdict("cpu", PRINTED)])
    (finding,) = disagreement(differences, "Vela 5.2.0")
    assert "CONV_2D 'conv'" in finding.headline
    assert "stride out of range" in finding.why
