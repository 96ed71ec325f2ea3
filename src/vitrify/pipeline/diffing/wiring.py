"""Whether nodes read the same values on both sides, looking past what has no counterpart and past plumbing."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import Tensor
from vitrify.matching import Group, Item, Matching
from vitrify.matching.items import COMMUTATIVE
from vitrify.results.diffing import ChangeRow

MOST = 24
"""Makers that are followed; a node behind more of them is not judged."""

Ends = frozenset[int]


class Wiring:
    """The groups that each group reads, on both sides."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._numbers = {id(group): number for number, group in enumerate(matching.groups)}
        self._behind: dict[Item, Ends | None] = {}
        a, b = matching.left.graph.inputs, matching.right.graph.inputs
        self._inputs: dict[Tensor, int] = {}
        for number, (i, j) in enumerate(matching.inputs):
            self._inputs[a[i]] = self._inputs[b[j]] = -1 - number
        for side in (matching.left, matching.right):
            for item in side.items:                       # in running order, so that what is read is known
                self._behind[item] = self._seen_from(item)

    def _seen_from(self, item: Item) -> Ends | None:
        """The groups that a reader of ``item`` sees."""
        group = self._matching.of[item]
        if group.left and group.right and not (item.is_plumbing and group.is_pair):
            return frozenset((self._numbers[id(group)],))
        return self._joined(item.feeds)

    def _joined(self, feeds: list[Item | Tensor | None]) -> Ends | None:
        found: set[int] = set()
        for feed in feeds:
            seen = self._of(feed)
            if seen is None:
                return None
            found |= seen
        return frozenset(found) if len(found) <= MOST else None

    def _of(self, feed: Item | Tensor | None) -> Ends | None:
        if isinstance(feed, Item):
            return self._behind[feed]
        return frozenset((self._inputs[feed],)) if feed is not None and feed in self._inputs else frozenset()

    def changes(self, group: Group) -> Iterator[ChangeRow]:
        """Yield a change where the two sides of a group read other values."""
        own = self._numbers[id(group)]
        left = self._joined([f for i in group.left for f in i.feeds])
        right = self._joined([f for i in group.right for f in i.feeds])
        if left is None or right is None:
            return
        left, right = left - {own}, right - {own}
        if left != right:
            apart = bool(left) and bool(right) and not left & right
            yield ChangeRow(kind="place" if apart else "inputs", what="inputs", before=self._names(left, 0),
                            after=self._names(right, 1), text=f"it reads {self._told(left, 0)}, then "
                                                              f"{self._told(right, 1)}")
        elif group.is_pair and group.left[0].kind == group.right[0].kind and group.left[0].kind not in COMMUTATIVE:
            a, b = group.left[0], group.right[0]
            first = [s for f in a.feeds if f is not None and (s := self._of(f)) is not None]
            second = [s for f in b.feeds if f is not None and (s := self._of(f)) is not None]
            if len(first) == len(second) and first != second and sorted(map(sorted, first)) == sorted(
                    map(sorted, second)):
                yield ChangeRow(kind="inputs", what="order", text="it reads the same values in another order")

    def _names(self, ends: Ends, side: int) -> list[str]:
        return [self._name(number, side) for number in sorted(ends)]

    def _name(self, number: int, side: int) -> str:
        if number < 0:
            pair = self._matching.inputs[-1 - number]
            graph = (self._matching.left, self._matching.right)[side].graph
            return graph.inputs[pair[side]].name
        group = self._matching.groups[number]
        return (group.right if side else group.left)[-1].node.name

    def _told(self, ends: Ends, side: int) -> str:
        names = self._names(ends, side)
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        return ", ".join(f"'{name}'" for name in names[:4]) + more if names else "nothing"
