"""What a search for the fewest 16-bit operators is to reach, read from what the user says."""

from __future__ import annotations

import math
import re

import msgspec

from vitrify.core.errors import UsageError
from vitrify.tasks.agreement import METRICS, Metric

DROP = 0.5
"""What may be lost of a metric where nothing is said."""

FORM = re.compile(r"\s*([a-z0-9]+)\s*(?:>=|=|:)\s*([-+0-9.e]+)\s*")


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The least value of a metric; ``budget_ms`` is the most time that ``target`` may take by its compiler's estimate.

    ``metric`` empty: as good as the budget allows, by SQNR. A ``target`` without a budget: the time is told of.
    """

    metric: str = ""
    least: float = 0.0
    budget_ms: float = 0.0
    target: str = ""

    @property
    def is_asked(self) -> bool:
        """True when there is something to reach."""
        return bool(self.metric or self.budget_ms)

    @property
    def measure(self) -> Metric:
        """The metric that candidates are compared by."""
        return METRICS[self.metric or "sqnr"]

    def __str__(self) -> str:
        parts = [f"{self.metric} >= {self.measure.show(self.least)}"] if self.metric else []
        return ", ".join([*parts, *([f"{self.budget_ms:g} ms on {self.target}"] if self.budget_ms else [])])


def read_goal(quality: str = "", metric: str = "", max_drop: float | None = None, budget_ms: float | None = None,
              target: str = "") -> Goal:
    """Read ``sqnr>=35``, or a metric and how much of its best value may be lost, and a limit of time.

    Raises:
        UsageError: there is no such metric, or what belongs together is not given together.
    """
    if quality and metric:
        raise UsageError.of("search.goal", f"both target_quality '{quality}' and metric '{metric}' are given",
                            help="give one of them: --target-quality 'sqnr>=35', or --metric top1 --max-drop 0.5")
    if max_drop is not None and not metric:
        raise UsageError.of("search.goal", "--max-drop is given without --metric",
                            help="for example --metric top1 --max-drop 0.5")
    if budget_ms is not None and (not 0 < budget_ms < math.inf or not target):
        raise UsageError.of("search.budget", "--budget-ms needs a time above 0 and a --target",
                            help="for example --budget-ms 12 --target imx93")
    name, least = metric, 0.0
    if quality:
        found = FORM.fullmatch(quality.lower())
        if found is None:
            raise UsageError.of("search.goal", f"--target-quality '{quality}' is not METRIC>=NUMBER",
                                help="for example 'sqnr>=35'")
        name, least = found[1], _number(found[2], quality)
    if name and name not in METRICS:
        raise UsageError.of("search.metric", f"there is no metric '{name}'", help=f"there are {_known()}")
    if metric:
        least = METRICS[metric].most - _drop(METRICS[metric], max_drop)
    if name:
        _refuse_nonsense(METRICS[name], least)
    asked = bool(name or budget_ms)
    if asked and target:
        from vitrify.targets import base as targets

        targets.load(target)            # before any work is done for a chip that there is not
    return Goal(metric=name, least=least, budget_ms=budget_ms or 0.0, target=target if asked else "")


def _drop(metric: Metric, given: float | None) -> float:
    """How much of a metric's best value may be lost.

    Raises:
        UsageError: nothing is to be left of it, or it has no best value to lose from.
    """
    drop = DROP if given is None else given
    if not metric.is_bounded:
        raise UsageError.of("search.goal", f"{metric.name} has no best value that --max-drop could begin at",
                            why="equal answers have no noise at all", help=f"--target-quality '{metric.name}>=35'")
    if not 0 <= drop < metric.most:
        raise UsageError.of("search.goal", f"--max-drop must be from 0 to below {metric.most:g} of {metric.name}, got "
                            f"{drop:g}", help="it says how much may be lost, for example 0.5")
    return drop


def _refuse_nonsense(metric: Metric, least: float) -> None:
    """Refuse what every model reaches, or none.

    Raises:
        UsageError: it is that.
    """
    example = f"for example '{metric.name}>={metric.example:g}'"
    if least > metric.most:
        raise UsageError.of("search.goal", f"{metric.name} is at most {metric.most:g}{metric.unit and ' '}{metric.unit}"
                            f"{'' if metric.is_bounded else ' with 16 bits'}, {least:g} is asked for", help=example)
    if least <= 0:
        raise UsageError.of("search.goal", f"{metric.name} >= {least:g} asks for nothing", help=example)
    if metric.is_share and least <= 1:
        raise UsageError.of("search.goal", f"{metric.name} is in percent, {least:g} asks for nearly nothing",
                            help=f"for {100 * least:g} %, say '{metric.name}>={100 * least:g}'")


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError.of("search.goal", f"'{text}' in --target-quality '{whole}' is no number",
                            help="for example 'sqnr>=35'") from error


def _known() -> str:
    return ", ".join(METRICS)
