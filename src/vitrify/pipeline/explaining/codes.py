"""Explains a code by the rules of all targets, the diagnoses, and the findings that the program's source makes."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from vitrify.core.errors import UsageError
from vitrify.pipeline.checking.diagnosing import kinds
from vitrify.pipeline.explaining.mentions import mentioned, rows_of
from vitrify.results import ExplainResult, ExplanationRow

NEAREST = 5


def explain(code: str = "") -> ExplainResult:
    """Return all that is known of a code; without one, the list of all.

    Raises:
        UsageError: there is no such code; names those that are near.
    """
    rules = _rules()
    if not code:
        return ExplainResult(codes=all_codes())
    rows = [*(row for row in rules if row.code == code), *_diagnoses(code), *_own(code)]
    if not rows:
        raise _unknown(code)
    return ExplainResult(code=code, explanations=rows)


def all_codes() -> list[str]:
    """Return the codes of all findings, sorted."""
    return sorted({row.code for row in _rules()} | {kind.code for kind in kinds()} | set(mentioned()))


def _own(code: str) -> list[ExplanationRow]:
    """What the program says with a code that is neither a rule nor a diagnosis."""
    if code in {row.code for row in _rules()} | {kind.code for kind in kinds()}:
        return []
    return rows_of(code)


@cache
def _rules() -> list[ExplanationRow]:
    from vitrify.passes.targets import catalogue
    from vitrify.targets import base as targets
    from vitrify.targets.rules import rules_of

    chips = [targets.load(name) for name in targets.names()]
    fixes = {one.name: f"{one.name}: {one.says} ({one.exactness.value})" for one in catalogue()}
    rows = []
    for family in sorted({chip.family for chip in chips}):
        for rule in rules_of(family):
            on = [chip.name for chip in chips if chip.family == family and (not rule.cores or chip.core in rule.cores)]
            rows.append(ExplanationRow(
                code=rule.code, kind="rule", says=rule.says, why=rule.why, help=rule.help,
                fix=fixes.get(rule.fix, rule.fix), source=rule.source, confidence=rule.confidence,
                versions=rule.versions, operators=sorted(rule.operators), targets=on))
    return rows


def _diagnoses(code: str) -> list[ExplanationRow]:
    return [ExplanationRow(code=kind.code, kind="diagnosis", says=kind.says, why=kind.why, help=kind.help,
                           rules=list(kind.rules)) for kind in kinds() if kind.code == code]


def _unknown(code: str) -> UsageError:
    known = all_codes()
    tails = {name.rpartition(".")[2]: name for name in reversed(known)}
    near = get_close_matches(code, known, NEAREST, 0.75)
    near += [] if "." in code else [tails[tail] for tail in get_close_matches(code, tails, NEAREST, 0.8)]
    within = [name for name in known if code and code.lower() in name]
    listed = list(dict.fromkeys([*within, *near]))[:NEAREST]
    return UsageError.of("explain.unknown", f"there is no code '{code}'",
                         help=f"perhaps {', '.join(listed)}" if listed else "`vitrify explain` lists all codes")
