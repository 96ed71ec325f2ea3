"""The pairs found so far; each node stands in one pair at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from vitrify.matching.items import Item, Side, is_free

Key = Callable[[Item], Hashable]


class State:
    """Both sides, the pairs between them and how each was found."""

    def __init__(self, left: Side, right: Side, ends: tuple[list[tuple[int, int]], list[tuple[int, int]]]) -> None:
        self.left, self.right = left, right
        self.inputs, self.outputs = ends
        self.partner: dict[Item, Item] = {}
        self.how: dict[Item, str] = {}
        self.fresh: list[tuple[Item, Item]] = []
        a, b = left.graph.inputs, right.graph.inputs
        self.is_resized = any(sorted(_inner(a[i].shape, left.batch)) != sorted(_inner(b[j].shape, right.batch))
                              for i, j in self.inputs) or any(is_free(t) for side in (left, right)
                                                              for item in side.items for t in item.node.outputs)

    def pair(self, a: Item, b: Item, how: str) -> bool:
        """Note a pair; False when one of them has a partner already."""
        if a in self.partner or b in self.partner:
            return False
        self.partner[a], self.partner[b] = b, a
        self.how[a] = how
        self.fresh.append((a, b))
        return True

    def exact(self, item: Item) -> Hashable:
        """What two nodes must share to be the same by their surroundings."""
        return (item.kind, item.weights) if self.is_resized else (item.kind, item.shape, item.weights)

    def kind(self, item: Item) -> Hashable:
        """The same where shapes have changed."""
        return item.kind

    def unmatched(self, items: Iterable[Item]) -> list[Item]:
        """Those without a partner."""
        return [item for item in items if item not in self.partner]

    def pair_buckets(self, left: Iterable[Item], right: Iterable[Item], key: Key, how: str, *,
                     equal_counts: bool = False) -> int:
        """Pair nodes of equal keys in their order; with ``equal_counts`` only where both sides have as many."""
        ours, theirs = bucketed(self.unmatched(left), key), bucketed(self.unmatched(right), key)
        made = 0
        for value, mine in ours.items():
            other = theirs.get(value, [])
            if other and (not equal_counts or len(mine) == len(other)):
                made += sum(self.pair(a, b, how) for a, b in zip(mine, other, strict=False))
        return made


def bucketed(items: Iterable[Item], key: Key) -> dict[Hashable, list[Item]]:
    """Items by key, those of one key in order."""
    found: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def _inner(shape: tuple[int, ...], batch: int) -> tuple[int, ...]:
    return tuple(d for d in (shape[1:] if shape[:1] == (batch,) else shape) if d != 1)
