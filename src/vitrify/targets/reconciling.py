"""The verdicts of rules beside what the target's own compiler did: its result wins, and where they differ is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from vitrify.core.findings import Finding, Severity
from vitrify.targets.placement import Verdict

SHOWN = 5


class Difference(NamedTuple):
    """A node that the rules and the compiler put on different sides."""

    ruled: Verdict
    compiled: Verdict


def reconcile(ruled: Sequence[Verdict], compiled: Sequence[Verdict]) -> tuple[list[Verdict], list[Difference]]:
    """Return the compiler's verdicts with the rules' reasons, and where the two differ.

    A reason that a compiler prints counts only where no rule knows one: it stops at the first broken rule and speaks of
    operators that it coped with in the end.
    """
    verdicts, differences = [], []
    for rule, fact in zip(ruled, compiled, strict=True):
        if (rule.placement == "cpu") != (fact.placement == "cpu"):
            differences.append(Difference(rule, fact))
        reasons = rule.rules if rule.rules and fact.placement == "cpu" else fact.rules
        verdicts.append(msgspec.structs.replace(fact, rules=reasons))
    return verdicts, differences


def disagreement(differences: Sequence[Difference], compiler: str) -> list[Finding]:
    """Say where rules and compiler differ: one finding for each side and rule."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for one in differences:
        codes = ", ".join(dict.fromkeys(reason.code for reason in (one.ruled.rules or one.compiled.rules)))
        groups.setdefault((one.compiled.placement, codes), []).append(one)
    return [_told(members, compiler) for members in groups.values()]


def _told(members: Sequence[Difference], compiler: str) -> Finding:
    first, count = members[0], len(members)
    reasons = first.ruled.rules or first.compiled.rules
    codes = ", ".join(dict.fromkeys(reason.code for reason in reasons))
    what = f"{first.ruled.operator} '{first.ruled.node}'" if count == 1 else f"{count} nodes"
    if first.compiled.placement == "cpu":
        headline, why = f"{compiler} leaves {what} on the CPU, against the rules", "no rule forbids it"
        said = f"; the compiler says: {reasons[0].headline}" if reasons else ""
    else:
        headline, why, said = f"{compiler} takes {what} that the rules leave to the CPU", f"the rules say {codes}", ""
    names = ", ".join(f"'{one.ruled.node}'" for one in members[:SHOWN])
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return Finding(code="check.disagreement", severity=Severity.WARNING, headline=headline,
                   where=f"node{'s' * (count > 1)} {names}{more}",
                   why=f"{why}{said}; the verdicts here are the compiler's")
