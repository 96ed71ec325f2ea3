"""The graphs of a profile as the page draws them: the places of operators and source nodes, the bends of long edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitrify.report.page.layout import lay_out
from vitrify.results import ProfileResult

MOST_NODES = 20_000
"""Graphs with more operators are not drawn: their table is all that anybody reads."""


def graph(profile: ProfileResult) -> dict[str, Any] | None:
    """Return the places of the operators, None where there are none to draw."""
    return _places([row.after for row in profile.operators])


def source(profile: ProfileResult) -> dict[str, Any] | None:
    """Return the places of the source's nodes, None where there are none to draw."""
    return _places([row.after for row in profile.mapping.nodes])


def _places(after: Sequence[Sequence[int]]) -> dict[str, Any] | None:
    if not 0 < len(after) <= MOST_NODES:
        return None
    found = lay_out(after)
    return {"x": [round(x, 2) for x in found.x], "layer": found.layer,
            "bends": [[maker, user, [round(x, 2) for x in bends]] for (maker, user), bends in found.bends.items()]}
