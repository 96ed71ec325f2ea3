"""Stretches without partners on both sides that take their values from the same place: one was written as the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from vitrify.ir import Tensor
from vitrify.matching.items import Item

MOST_BORDERS = 32
MOST_WRITTEN = 24
"""Nodes of a stretch that is taken for another form of one; more are another network."""


class Known(Protocol):
    """Says which group an item is in; None for one without a counterpart."""

    def __call__(self, item: Item) -> int | None:
        """Return the number of the group."""


def rewritten(left: list[Item], right: list[Item], known: Known, ends: dict[Tensor, int]
              ) -> list[tuple[list[Item], list[Item]]]:
    """Return pairs of stretches, neither of them plumbing alone, that begin behind the same groups."""
    ours, theirs = _by_border(left, known, ends), _by_border(right, known, ends)
    return [(items, theirs[border]) for border, items in ours.items()
            if border in theirs and max(len(items), len(theirs[border])) <= MOST_WRITTEN
            and not all(i.is_plumbing for i in items)
            and not all(i.is_plumbing for i in theirs[border])]


def _by_border(lonely: list[Item], known: Known, ends: dict[Tensor, int]) -> dict[frozenset[int], list[Item]]:
    """Connected stretches of lonely nodes by the groups they read; stretches of one border go together."""
    found: dict[frozenset[int], list[Item]] = {}
    for stretch in _connected(lonely):
        border = frozenset(number for item in stretch for feed in item.feeds
                           if (number := _number(feed, known, ends)) is not None)
        if border and len(border) <= MOST_BORDERS:
            found.setdefault(border, []).extend(stretch)
    return found


def _number(feed: Item | Tensor | None, known: Known, ends: dict[Tensor, int]) -> int | None:
    return known(feed) if isinstance(feed, Item) else ends.get(feed) if feed is not None else None


def _connected(lonely: Iterable[Item]) -> list[list[Item]]:
    open_ = dict.fromkeys(lonely)
    found = []
    while open_:
        first = next(iter(open_))
        del open_[first]
        stretch, waiting = [first], [first]
        while waiting:
            item = waiting.pop()
            beside = [f for f in item.feeds if isinstance(f, Item)] + [r for r, _ in item.readers]
            for other in beside:
                if other in open_:
                    del open_[other]
                    stretch.append(other)
                    waiting.append(other)
        found.append(stretch)
    return found
