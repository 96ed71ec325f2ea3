"""The searches of a bisection, over any question that takes a while to answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

One = TypeVar("One")


def first_bad(count: int, is_bad: Callable[[int], bool]) -> int:
    """The least number in 1..count that is bad, where 0 is known to be good and ``count`` to be bad."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_bad(middle):
            bad = middle
        else:
            good = middle
    return bad


def shortest_start(count: int, is_enough: Callable[[int], bool]) -> int | None:
    """How many of ``count`` from the start are enough, by doubling and then halving; None when all are not."""
    known, asked = 0, 1
    while not is_enough(min(asked, count)):
        if asked >= count:
            return None
        known, asked = asked, 2 * asked
    return known + first_bad(min(asked, count) - known, lambda more: is_enough(known + more))


def without_needless(chosen: Sequence[One], is_enough: Callable[[Sequence[One]], bool]) -> list[One]:
    """Leave out what is not needed, in halves and then in smaller parts; all of ``chosen`` is known to be enough."""
    left, parts = list(chosen), 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        pieces = [left[start:start + size] for start in range(0, len(left), size)]
        for number in reversed(range(len(pieces))):
            rest = [one for n, piece in enumerate(pieces) if n != number for one in piece]
            if rest and is_enough(rest):
                left, parts = rest, max(2, parts - 1)
                break
        else:
            if parts >= len(left):
                break
            parts = min(len(left), 2 * parts)
    return left
