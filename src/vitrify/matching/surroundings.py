"""Pairs by what stands around a node: from sure pairs outward, by rings of neighbours, by order in what is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from vitrify.ir import Tensor
from vitrify.matching.items import COMMUTATIVE, Item, Side
from vitrify.matching.state import Key, State, bucketed

RINGS = (4, 2, 1)
"""How far the surroundings are looked at; the wider they are, the surer is what they tell."""

LARGEST_TABLE = 400_000
"""Cells of the table in which two stretches of nodes are aligned; beyond it they are paired by kind in order."""

FARTHEST = 6
"""Forms of a value that are looked through to find a neighbour."""


def by_surroundings(state: State) -> None:
    """Pair what is not paired yet."""
    spread(state, state.exact)
    for rings in RINGS:
        if by_rings(state, rings):
            spread(state, state.exact)
    by_gaps(state, state.exact)
    spread(state, state.exact)
    spread(state, state.kind, everything=True)
    by_gaps(state, state.kind)
    by_elimination(state)


# outward from pairs


def spread(state: State, key: Key, *, everything: bool = False) -> None:
    """Go from each pair to its neighbours on both sides and pair those that are alike."""
    if everything or not state.fresh:
        state.fresh = [(a, state.partner[a]) for a in state.how]
    _seed(state, key)
    waiting = deque(state.fresh)
    state.fresh = []
    while waiting:
        a, b = waiting.popleft()
        _makers(state, a, b, key)
        _pair_readers(state, a.readers, b.readers, key)
        waiting.extend(state.fresh)
        state.fresh = []


def _seed(state: State, key: Key) -> None:
    """Start from the inputs and outputs of the graphs."""
    left, right = state.left, state.right
    for i, j in state.inputs:
        _pair_readers(state, left.input_readers[left.graph.inputs[i]], right.input_readers[right.graph.inputs[j]], key)
    for i, j in state.outputs:
        a, b = left.maker(left.graph.outputs[i]), right.maker(right.graph.outputs[j])
        if a is not None and b is not None:
            _pair_feeds(state, a, b, key)


def _makers(state: State, a: Item, b: Item, key: Key) -> None:
    if a.kind in COMMUTATIVE and b.kind == a.kind:
        state.pair_buckets(_free(state, a), _free(state, b), key, "neighbourhood", equal_counts=True)
    for mine, other in zip(a.feeds, b.feeds, strict=False):
        if isinstance(mine, Item) and isinstance(other, Item):
            _pair_feeds(state, mine, other, key)


def _free(state: State, item: Item) -> list[Item]:
    return [feed for feed in item.feeds if isinstance(feed, Item) and feed not in state.partner]


def _pair_feeds(state: State, mine: Item, other: Item, key: Key) -> None:
    """Pair two makers, or what stands behind the forms that one of them only brings a value into."""
    if mine not in state.partner and other not in state.partner and key(mine) == key(other):
        state.pair(mine, other, "neighbourhood")
        return
    behind, beyond = _behind(state, mine), _behind(state, other)
    for x, y in ((mine, beyond), (behind, other), (behind, beyond)):
        if x is not None and y is not None and x not in state.partner and y not in state.partner and key(x) == key(y):
            state.pair(x, y, "neighbourhood")
            return


def _behind(state: State, item: Item) -> Item | None:
    """The maker behind forms without a partner."""
    current: Item | Tensor | None = item
    for _ in range(FARTHEST):
        if not isinstance(current, Item) or not current.is_plumbing or current in state.partner:
            break
        current = current.feeds[0] if current.feeds else None
    return current if isinstance(current, Item) and current is not item else None


def _pair_readers(state: State, left: list[tuple[Item, int]], right: list[tuple[Item, int]], key: Key) -> None:
    ours, theirs = state.unmatched(i for i, _ in left), state.unmatched(i for i, _ in right)
    if ours and theirs:
        slots = {id(i): slot for i, slot in (*left, *right)}
        state.pair_buckets(dict.fromkeys(ours), dict.fromkeys(theirs), lambda i: (key(i), slots[id(i)]),
                           "neighbourhood", equal_counts=True)
    ours, theirs = _past(state, left), _past(state, right)
    if ours and theirs:
        state.pair_buckets(ours, theirs, key, "neighbourhood", equal_counts=True)


def _past(state: State, readers: Iterable[tuple[Item, int]]) -> list[Item]:
    """Readers without a partner, those of forms without one in their place."""
    found: dict[Item, None] = {}
    waiting = [(item, 0) for item, _ in readers]
    while waiting and len(found) < 64:
        item, depth = waiting.pop()
        if item in state.partner:
            continue
        if item.is_plumbing and depth < FARTHEST:
            waiting += [(reader, depth + 1) for reader, _ in item.readers]
        else:
            found[item] = None
    return sorted(found, key=lambda item: item.place)


# what is left


def by_elimination(state: State) -> None:
    """Pair what is left once on both sides: it stands somewhere else now."""
    ours, theirs = (bucketed((i for i in state.unmatched(side.items) if not i.is_plumbing), state.exact)
                    for side in (state.left, state.right))
    for key, mine in ours.items():
        other = theirs.get(key, [])
        if len(mine) == len(other) == 1:
            state.pair(mine[0], other[0], "order")


# rings of neighbours


def by_rings(state: State, rings: int) -> int:
    """Pair nodes whose neighbours up to a distance are alike, in order where several are."""
    left, right = _labels(state, state.left, rings), _labels(state, state.right, rings)
    return state.pair_buckets(state.left.items, state.right.items,
                              lambda i: left.get(i) or right.get(i), "neighbourhood", equal_counts=True)


def _labels(state: State, side: Side, rings: int) -> dict[Item, int]:
    number = {a: n for n, a in enumerate(state.how)}
    number.update({state.partner[a]: n for a, n in list(number.items())})
    labels = {i: hash(("pair", number[i]) if i in number else state.exact(i)) | 1 for i in side.items}
    for _ in range(rings):
        labels = {i: hash((labels[i], tuple(labels[f] if isinstance(f, Item) else f is None for f in i.feeds),
                           tuple(sorted((labels[r], slot) for r, slot in i.readers)))) | 1 for i in side.items}
    return labels


# stretches between pairs


def by_gaps(state: State, key: Key) -> None:
    """Align the nodes that stand between two pairs, in order."""
    for ours, theirs in _gaps(state):
        if len(ours) * len(theirs) <= LARGEST_TABLE:
            for a, b in _common(ours, theirs, key):
                state.pair(a, b, "order")
        else:
            state.pair_buckets(ours, theirs, key, "order", equal_counts=True)


def _gaps(state: State) -> list[tuple[list[Item], list[Item]]]:
    """The unpaired nodes of both sides between pairs that have the same order on both."""
    pairs = _rising([(a.place, state.partner[a].place) for a in state.left.items if a in state.partner])
    found = []
    start_a = start_b = 0
    for end_a, end_b in (*pairs, (len(state.left.items), len(state.right.items))):
        ours = state.unmatched(state.left.items[start_a:end_a])
        theirs = state.unmatched(state.right.items[start_b:end_b])
        if ours and theirs:
            found.append((ours, theirs))
        start_a, start_b = end_a + 1, end_b + 1
    return found


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of pairs, ordered by the first, whose second numbers rise too."""
    from bisect import bisect_left

    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(at[length - 1] if length else -1)
        ends[length:length + 1], at[length:length + 1] = [place], [number]
    found = []
    number = at[-1] if at else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _common(ours: list[Item], theirs: list[Item], key: Key) -> list[tuple[Item, Item]]:
    """The longest common sequence of keys."""
    shared = bucketed(ours, key).keys() & bucketed(theirs, key).keys()
    ours, theirs = [i for i in ours if key(i) in shared], [i for i in theirs if key(i) in shared]
    mine, other = [key(i) for i in ours], [key(i) for i in theirs]
    table = [[0] * (len(other) + 1) for _ in range(len(mine) + 1)]
    for i in range(len(mine) - 1, -1, -1):
        row, below = table[i], table[i + 1]
        for j in range(len(other) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if mine[i] == other[j] else max(below[j], row[j + 1])
    found, i, j = [], 0, 0
    while i < len(mine) and j < len(other):
        if mine[i] == other[j]:
            found.append((ours[i], theirs[j]))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
