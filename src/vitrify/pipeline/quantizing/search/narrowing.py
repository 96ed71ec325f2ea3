"""The search itself: which sets of operators are tried, given what each that was tried is worth.

Sets are tried a few at a time, always the same few however many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from vitrify.pipeline.quantizing.search.candidates import Names, Worth

AT_ONCE = 4
"""Sets that are tried in one round."""

FINENESS = 48
"""Along an order, the place is found to this share of its operators."""

PARTS, ROUNDS = 8, 3
"""Of what was found, this many parts are tried to be left out, so many times, each time in smaller parts."""

SHORTER = 0.75
"""The other order is looked into when a set of this share of the operators does."""

Tried = Callable[[Sequence[Names]], list[Worth]]


def shortest(sets: Sequence[Names], tried: Tried, good: Callable[[Worth], bool], guess: int | None = None,
             upper: int | None = None) -> int | None:
    """Return the first of growing sets that is good, to within a share of them; None when the last is not.

    Args:
        sets: each holds all operators of the one before.
        tried: says what sets are worth.
        good: whether that is enough.
        guess: where the place is expected.
        upper: one that is known to be good.
    """
    low, high = -1, len(sets) - 1 if upper is None else upper
    if not sets:
        return None
    grain = max(1, len(sets) // FINENESS)
    if upper is None and not good(tried([sets[high]])[0]):
        return None
    while high - low > grain:
        places = _places(low, high, guess)
        guess = None
        results = [good(worth) for worth in tried([sets[place] for place in places])]
        for place, is_good in zip(places, results, strict=True):
            if is_good:
                high = place
                break
            low = place
    return high


def _places(low: int, high: int, guess: int | None) -> list[int]:
    """The places to try between two: spread evenly, or closely around the guess."""
    width = high - low
    if guess is not None:
        wished = [round(low + (guess - low) * share) for share in (0.6, 0.85, 1.1, 1.5)]
    else:
        wished = [low + round(width * (n + 1) / (AT_ONCE + 1)) for n in range(AT_ONCE)]
    return sorted({min(high - 1, max(low + 1, place)) for place in wished})


def pruned(names: Sequence[str], tried: Tried, good: Callable[[Worth], bool]) -> Names:
    """Leave out parts of a set that are not needed; ``names`` begins with what is needed most."""
    kept = list(names)
    for number in range(ROUNDS):
        count = min(len(kept), PARTS * 2 ** number)
        if count < 2:
            break
        pieces = _pieces(kept, count)
        alone = tried([_without(kept, [piece]) for piece in pieces])
        spare = sorted((i for i, worth in enumerate(alone) if good(worth)), key=lambda i: (-alone[i].quality, -i))
        left = _most(kept, [pieces[i] for i in spare], tried, good)
        if left:
            kept = list(_without(kept, left))
        elif len(pieces) == len(kept):
            break
    return tuple(kept)


def _most(kept: Sequence[str], spare: Sequence[Sequence[str]], tried: Tried,
          good: Callable[[Worth], bool]) -> list[Sequence[str]]:
    """Return as many of the first pieces as can be left out together."""
    for count in range(len(spare), 0, -max(1, len(spare) // AT_ONCE)):
        if count == 1 or good(tried([_without(kept, spare[:count])])[0]):
            return list(spare[:count])
    return list(spare[:1])


def _without(kept: Sequence[str], pieces: Sequence[Sequence[str]]) -> Names:
    gone = {name for piece in pieces for name in piece}
    return tuple(name for name in kept if name not in gone)


def _pieces(kept: Sequence[str], count: int) -> list[list[str]]:
    bounds = [round(len(kept) * i / count) for i in range(count + 1)]
    return [list(kept[a:b]) for a, b in pairwise(bounds) if b > a]
