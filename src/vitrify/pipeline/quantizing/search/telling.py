"""What a search says when it is over: the goal, what was reached, with how many operators, and what it costs."""

from __future__ import annotations

from math import ceil

import msgspec

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.pipeline.quantizing.search.candidates import Names, Worth
from vitrify.pipeline.quantizing.search.goal import Goal

SHOWN = 5


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: ``first`` and ``first_ms`` are those of all in 8 bits, ``worth`` and ``ms`` of what was chosen.

    ``evaluated`` candidates were tried on ``samples`` samples, ``reused`` were known from before.
    """

    goal: Goal
    chosen: Names
    first: Worth
    worth: Worth
    first_ms: float | None
    ms: float | None
    evaluated: int
    reused: int
    samples: int

    @property
    def is_reached(self) -> bool:
        """True when what was asked for is there; with a budget alone, whatever is within it."""
        return not self.goal.metric or self.worth.quality >= self.goal.least

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.goal.measure.name

    def shown(self, worth: Worth) -> str:
        """A candidate's quality with its unit."""
        return self.goal.measure.show(worth.quality)

    @property
    def asked(self) -> str:
        """What was asked for."""
        return self.goal.measure.show(self.goal.least)


def reached(found: Outcome) -> Finding:
    """Tell of a goal that is reached, or nearly, and what that costs."""
    wide = f"with 16-bit activations in {found.worth.wide} of {found.worth.nodes} operators"
    how = wide if found.chosen else "with all in 8 bits" if not found.worth.wide else f"{wide}, none of them added"
    if found.goal.metric and found.is_reached:
        headline = f"{found.name} >= {found.asked} is reached: {found.shown(found.worth)} {how}{_time(found)}"
    elif found.goal.metric:
        headline = f"{found.name} >= {found.asked} is not reached: {found.shown(found.worth)} {how}{_time(found)}"
    else:
        headline = f"{found.name} is {found.shown(found.worth)} {how}{_time(found)}, {_limit(found.goal)}"
    before = f"all in 8 bits, {found.name} is {found.shown(found.first)}" + (
        "" if found.first_ms is None else f" and an inference takes {found.first_ms:.2f} ms")
    again = f", {found.reused} taken from before" if found.reused else ""
    tried = f"{counted(found.evaluated + found.reused, 'candidate')} on {counted(found.samples, 'sample')}{again}"
    return Finding(
        code="quant.mixed" if found.chosen else "quant.reached", headline=headline, where=_names(found.chosen),
        severity=Severity.INFO if found.is_reached else Severity.WARNING,
        why=f"{before}; compared: {tried}" if found.chosen else f"compared: {tried}",
        help="--save-recipe FILE keeps the choice, so that it need not be searched for again" if found.chosen else "")


def unreached(found: Outcome) -> Finding:
    """Tell that 16 bits win nothing, or nothing that the budget allows."""
    asked = f"{found.name} >= {found.asked} is not reached: " if found.goal.metric else ""
    limit = f", {_limit(found.goal)}" if found.goal.budget_ms else ""
    return Finding(
        code="quant.unreached", severity=Severity.WARNING,
        headline=f"{asked}{found.name} is {found.shown(found.worth)} with all in 8 bits{_time(found)}; 16-bit "
                 f"activations win nothing more{limit}",
        why="the compiler's estimate for more of them is above the budget" if limit else
            "what is lost is lost in the 8-bit weights, or in operators that have no 16-bit kernel",
        help="--effort best rounds the weights with less loss" if not limit else "")


def over_budget(found: Outcome) -> Finding:
    """Tell that not even all in 8 bits is within the budget."""
    goal = found.goal
    quality = "" if not goal.metric else f", {found.asked} was asked for"
    return Finding(
        code="quant.over-budget", severity=Severity.WARNING,
        headline=f"the budget cannot be met: all in 8 bits takes {found.first_ms:.2f} ms on {goal.target} by the "
                 f"compiler's estimate, {goal.budget_ms:g} ms was asked for",
        why=f"8 bits are the fastest that there is, so nothing was put into 16; {found.name} is "
            f"{found.shown(found.first)}{quality}",
        help=f"raise --budget-ms to {ceil(100 * (found.first_ms or 0)) / 100:.2f} or more, or give the model smaller "
             "inputs with --shape")


def _time(found: Outcome) -> str:
    if found.ms is None:
        return ""
    more = "" if found.first_ms is None or not found.chosen else f" ({found.ms - found.first_ms:+.2f})"
    return f", {found.ms:.2f} ms{more} on {found.goal.target} by the compiler's estimate"


def _limit(goal: Goal) -> str:
    return f"{goal.budget_ms:g} ms are the budget"


def _names(chosen: Names) -> str:
    return ", ".join(f"'{name}'" for name in chosen[:SHOWN]) + (f" and {len(chosen) - SHOWN} more"
                                                                if len(chosen) > SHOWN else "")
