"""What to change in the model: the hot spots with their causes, each leading to its operators."""

from __future__ import annotations

from collections.abc import Mapping

from vitrify.core.words import bytes_text, percent
from vitrify.report.page.markup import Html, tag
from vitrify.report.page.section import Section
from vitrify.results import ProfileResult
from vitrify.results.profiling import AdviceRow

SHOWN = 4
MOST = 60
MOST_LED = 200
"""Operators that one piece of advice leads to, at most."""


def numbers_by_name(profile: ProfileResult) -> dict[str, list[int]]:
    """Return the numbers of the operators of each name."""
    found: dict[str, list[int]] = {}
    for number, row in enumerate(profile.operators):
        found.setdefault(row.node, []).append(number)
    return found


def advice(profile: ProfileResult) -> Section | None:
    """Return the advice, the first few at once."""
    if not profile.advice:
        return None
    known = numbers_by_name(profile)
    rows = [_row(row, known) for row in profile.advice[:MOST]]
    more = rows[SHOWN:]
    rest = tag("details", tag("summary", f"{len(more)} more"), tag("ul", more, class_="advice")) if more else None
    return Section.of("advice", "What to do next", tag("ul", rows[:SHOWN], class_="advice"), rest,
                      short="What to do")


def _row(row: AdviceRow, known: Mapping[str, list[int]]) -> Html:
    numbers = [number for name in row.nodes for number in known.get(name, [])][:MOST_LED]
    said = tag("button", row.headline, type="button", class_="link said", data_ops=",".join(map(str, numbers))) \
        if numbers else tag("div", row.headline, class_="said")
    notes = [tag("p", tag("b", f"{label} "), text) for label, text in (("Why:", row.why), ("Change:", row.help),
                                                                      ("Source:", row.source)) if text]
    return tag("li", tag("div", _gain(row), tag("small", row.kind), class_="gain"), tag("div", said, notes))


def _gain(row: AdviceRow) -> str:
    if row.share is not None:
        return percent(row.share)
    if row.time_ms is not None:
        return f"{row.time_ms:.3g} ms"
    return "" if row.bytes is None else bytes_text(row.bytes)
