"""The graph of a profile as the page draws it: the places of its operators, and the bends of long edges."""

from __future__ import annotations

from typing import Any

from vitrify.report.page.layout import lay_out
from vitrify.results import ProfileResult

MOST_NODES = 20_000
"""Graphs with more operators are not drawn: their table is all that anybody reads."""


def graph(profile: ProfileResult) -> dict[str, Any] | None:
    """Return the places, None where there are none to draw."""
    if not 0 < len(profile.operators) <= MOST_NODES:
        return None
    found = lay_out([row.after for row in profile.operators])
    return {"x": [round(x, 2) for x in found.x], "layer": found.layer,
            "bends": [[maker, user, [round(x, 2) for x in bends]] for (maker, user), bends in found.bends.items()]}
