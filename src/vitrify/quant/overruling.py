"""Overrides of a recipe that say different things of the same nodes.

A later override comes before an earlier one, so that a few nodes can be taken out of what a wider pattern says. Two
that select the same contradict each other; one that a later takes all of, or a part of without being within it, is
told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.quant.recipe import Override, Recipe

Selected = frozenset[str]
"""The nodes, or the tensors, that an override selects, by name."""


def refuse_contradictions(recipe: Recipe, selected: Sequence[Selected]) -> None:
    """Refuse overrides that choose differently for exactly the same nodes.

    Raises:
        UsageError: there are some; names them all.
    """
    problems = [
        Finding(code="recipe.contradiction", where=f"overrides {first} and {second}",
                headline=f"override {first} says {key} = {one}, override {second} says {key} = {other}, of the same "
                         f"{_counted(rule, nodes)}",
                why=_named(nodes), help=f"leave one of the two [[overrides]] out, or select fewer in override {second}")
        for first, second, rule, key, one, other, nodes, same in _conflicts(recipe, selected) if same]
    if problems:
        raise UsageError(problems)


def overruled(recipe: Recipe, selected: Sequence[Selected]) -> list[Finding]:
    """Tell of overrides of which a later one takes all, or a part without being within them."""
    return [
        Finding(code="recipe.overruled", severity=Severity.WARNING, where=f"overrides {first} and {second}",
                headline=f"override {first} says {key} = {one}, override {second} says {key} = {other}, of "
                         f"{_counted(rule, nodes)}: the later one holds",
                why=_named(nodes), help="put the override that selects fewer last, or leave out of one what the other "
                                        "selects")
        for first, second, rule, key, one, other, nodes, same in _conflicts(recipe, selected) if not same]


def _conflicts(recipe: Recipe, selected: Sequence[Selected],
               ) -> Iterator[tuple[int, int, Override, str, object, object, Selected, bool]]:
    """Yield pairs of overrides that choose differently for some nodes, unless the later one selects fewer of them."""
    for (first, earlier), (second, later) in combinations(enumerate(recipe.overrides), 2):
        shared = selected[first] & selected[second]
        if not shared or bool(earlier.tensor) != bool(later.tensor) or selected[second] < selected[first]:
            continue
        for key, one in earlier.given.items():
            other = later.given.get(key, one)
            if one != other:
                yield first + 1, second + 1, earlier, key, one, other, shared, selected[first] == selected[second]


def _counted(rule: Override, nodes: Selected) -> str:
    return counted(len(nodes), "tensor" if rule.tensor else "node")


def _named(nodes: Selected) -> str:
    shown = sorted(nodes)[:3]
    return ", ".join(map(repr, shown)) + (f" and {len(nodes) - len(shown)} more" if len(nodes) > len(shown) else "")
