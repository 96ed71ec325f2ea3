"""Whether nodes read the same values on both sides, looking past what has no counterpart and past plumbing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from vitrify.ir import Tensor
from vitrify.matching import Group, Item, Matching
from vitrify.matching.items import COMMUTATIVE
from vitrify.results.diffing import ChangeRow

MOST = 24
"""Makers that are followed; a node behind more of them is not judged."""

MOST_MOVED = 16
"""Moved nodes that are told from what stands around them; with more, all that read other values are told."""

Ends = frozenset[int]


class Wiring:
    """The groups that each group reads, on both sides.

    Where a node was moved, those around it read other values than before; it alone is told, as what is moved, and the
    others are judged by what they read past it.
    """

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._numbers = {id(group): number for number, group in enumerate(matching.groups)}
        self._clear = {number for number, group in enumerate(matching.groups) if _is_plumbing(group)}
        a, b = matching.left.graph.inputs, matching.right.graph.inputs
        self._inputs: dict[Tensor, int] = {}
        for number, (i, j) in enumerate(matching.inputs):
            self._inputs[a[i]] = self._inputs[b[j]] = -1 - number
        self._behind: dict[Item, Ends | None] = {}
        self._moved: dict[int, ChangeRow] = {}
        self._look()
        for _ in range(MOST_MOVED):
            if not self._find_moved():
                break

    def _look(self) -> None:
        for side in (self._matching.left, self._matching.right):
            for item in side.items:                       # in running order, so that what is read is known
                self._behind[item] = self._seen_from(item)

    def _find_moved(self) -> bool:
        """Look through the node that explains most of what reads other values; False when none explains any."""
        changed: dict[int, tuple[Ends, Ends]] = {}
        for number, group in enumerate(self._matching.groups):
            if group.left and group.right and number not in self._moved and number not in self._clear:
                left, right = self._read(group)
                if left is not None and right is not None and self._tells(left, right):
                    changed[number] = (left, right)
        blamed = Counter(one for left, right in changed.values() for one in left ^ right if one in changed)
        if not blamed:
            return False
        number = max(blamed, key=lambda one: (blamed[one], -one))
        change = self._change(*changed[number])
        self._moved[number] = structs.replace(change, kind="place")
        self._clear.add(number)
        self._look()
        return True

    def _seen_from(self, item: Item) -> Ends | None:
        """The groups that a reader of ``item`` sees."""
        group = self._matching.of[item]
        number = self._numbers[id(group)]
        if group.left and group.right and number not in self._clear:
            return frozenset((number,))
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

    def _read(self, group: Group) -> tuple[Ends | None, Ends | None]:
        """What both sides of a group read, itself left out."""
        own = {self._numbers[id(group)]}
        left, right = (self._joined([f for i in items for f in i.feeds]) for items in (group.left, group.right))
        return None if left is None else left - own, None if right is None else right - own

    def _another_form(self, group: Group) -> Iterator[ChangeRow]:
        """Of what only brings values into another form: it reads another form of the same value, both being there."""
        mine, other = (items[0].feeds[0] if items[0].feeds else None for items in (group.left, group.right))
        if not isinstance(mine, Item) or not isinstance(other, Item):
            return
        first, second = self._matching.of[mine], self._matching.of[other]
        if first is second or not (first.is_pair and second.is_pair) or self._reads_others(first) or \
                self._reads_others(second):
            return
        before, after = (frozenset((self._numbers[id(one)],)) for one in (first, second))
        yield structs.replace(self._change(before, after), kind="inputs")

    def _reads_others(self, group: Group) -> bool:
        """True for a group that is told itself, as what reads other values or was moved."""
        left, right = self._read(group)
        return left is not None and right is not None and self._tells(left, right)

    def _tells(self, left: Ends, right: Ends) -> bool:
        """True where one is more than the other by nodes that stand on both sides as they are.

        Which node of several that became several others is read follows from how they were written.
        """
        return any(number < 0 or self._matching.groups[number].is_pair for number in left ^ right)

    def _change(self, left: Ends, right: Ends) -> ChangeRow:
        apart = bool(left) and bool(right) and not left & right
        return ChangeRow(kind="place" if apart else "inputs", what="inputs", before=self._names(left, 0),
                         after=self._names(right, 1),
                         text=f"it reads {self._told(left, 0)}, then {self._told(right, 1)}")

    def changes(self, group: Group) -> Iterator[ChangeRow]:
        """Yield a change where the two sides of a group read other values."""
        number = self._numbers[id(group)]
        moved = self._moved.get(number)
        if moved is not None:
            yield moved
            return
        left, right = self._read(group)
        if left is None or right is None:
            return
        if self._tells(left, right):
            yield self._change(left, right)
        elif number in self._clear and group.is_pair:
            yield from self._another_form(group)
        elif left == right and _is_ordered(group):
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


def _is_plumbing(group: Group) -> bool:
    """True where one side only brings values into another form, and the other computes in one node at most."""
    computing = [sum(not i.is_plumbing for i in items) for items in (group.left, group.right)]
    return any(items and not computing[k] and computing[1 - k] < 2
               for k, items in enumerate((group.left, group.right)))


def _is_ordered(group: Group) -> bool:
    """True for one operator on both sides whose inputs have an order."""
    return group.is_pair and group.left[0].kind == group.right[0].kind and group.left[0].kind not in COMMUTATIVE
