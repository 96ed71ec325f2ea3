"""Conditions under which a profile fails: ``latency_ms>+5%`` against another, ``npu_coverage<0.99`` by itself."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.profile.known import FIGURES, figure
from vitrify.results import ProfileResult
from vitrify.results.profiling import GateRow

_FORM = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?)\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(%?)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {">": operator.gt, "<": operator.lt, ">=": operator.ge,
                                                       "<=": operator.le}


_PLACES = 9
"""Decimal places of a difference; what floats leave beyond is no difference."""


class Gate(NamedTuple):
    """One condition. ``signed``: the limit is a difference from the profile before, ``percent``: as a share of it."""

    expression: str
    figure: str
    compare: str
    limit: float
    signed: bool
    percent: bool

    @property
    def needs_other(self) -> bool:
        """True where it judges by another profile."""
        return self.signed or self.percent


def parse_gate(text: str) -> Gate:
    """Read a condition.

    Raises:
        UsageError: it is none, or names a figure that there is not.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise UsageError.of("profile.gate", f"--fail-if {text!r} is no condition", where="--fail-if",
                            help="write it like --fail-if 'latency_ms>+5%' --fail-if 'npu_coverage<0.99'")
    name, compare, sign, number, percent = found.groups()
    if name not in FIGURES:
        near = get_close_matches(name, FIGURES, 1)
        raise UsageError.of("profile.gate", f"--fail-if {text!r}: a profile has no figure '{name}'", where="--fail-if",
                            help=(f"did you mean {near[0]}? " if near else "") + f"there are {', '.join(FIGURES)}")
    limit = float(number) * (-1 if sign == "-" else 1)
    return Gate(text.strip(), name, compare, limit, bool(sign), bool(percent))


def judge_gate(gate: Gate, result: ProfileResult, before: ProfileResult | None) -> GateRow:
    """Judge a profile, by itself or against the one ``before``; ``failed`` is null where a figure is missing."""
    row = GateRow(expression=gate.expression, figure=gate.figure, limit=gate.limit)
    now = figure(result, gate.figure)
    if now is None:
        row.text = f"this profile does not tell {gate.figure}"
        return row
    if not gate.needs_other:
        row.value = now
        row.text = f"{gate.figure} is {_shown(now)}"
    else:
        then = None if before is None else figure(before, gate.figure)
        if then is None or (gate.percent and then == 0):
            row.text = f"there is no {gate.figure} to compare with"
            return row
        row.value = round((now - then) / then * 100 if gate.percent else now - then, _PLACES)
        unit = " %" if gate.percent else ""
        row.text = f"{gate.figure} went from {_shown(then)} to {_shown(now)}, {row.value:+.4g}{unit}"
    row.failed = _COMPARE[gate.compare](row.value, gate.limit)
    return row


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.6g}"


def gate_findings(rows: list[GateRow]) -> list[Finding]:
    """Say which conditions fail the profile: those that hold, and those that could not be judged."""
    found = []
    for row in rows:
        if row.failed:
            found.append(Finding(code="profile.gate-failed", severity=Severity.ERROR, where="--fail-if",
                                 headline=f"{row.expression}: {row.text}",
                                 help="--compare with the earlier profile shows which operators changed"))
        elif row.failed is None:
            found.append(Finding(code="profile.gate-unknown", severity=Severity.ERROR, where="--fail-if",
                                 headline=f"{row.expression} cannot be judged: {row.text}",
                                 why="a gate that is silent would let everything pass",
                                 help="give what it needs: --target for a chip's figures, --compare for changes"))
    return found
