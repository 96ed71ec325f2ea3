"""The sure pairs: equal constants that nothing else has, then names, where names mean the same on both sides."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from vitrify.matching.items import Item, plain_name
from vitrify.matching.state import State, bucketed

LEAST_AGREEING = 0.7
"""Share of the names found on both sides that must stand for the same thing; numbered names shift with a node."""

FEW = 4
CONTRADICTED = 0.02
"""Share of the numbered names found on both sides that may stand for another operator; a shift by one gives most."""

_NUMBERED = re.compile(r"^[A-Za-z:_]*\d+$|(?:^|/)node_\w*?\d+$")
"""Names that are no more than a kind and a running number, as exporters give to nodes without one."""
MANY_OF_ONE_NAME = 256


def by_content(state: State) -> None:
    """Pair nodes of one kind whose large constants are equal, where no other node has the same."""
    ours = bucketed((i for i in state.left.items if i.constants and i.digest), lambda i: (i.kind, i.digest))
    theirs = bucketed((i for i in state.right.items if i.constants and i.digest), lambda i: (i.kind, i.digest))
    for key, mine in ours.items():
        other = theirs.get(key, [])
        if len(mine) == len(other) == 1:
            state.pair(mine[0], other[0], "content")


def by_name(state: State) -> bool:
    """Pair nodes by what they were in the user's file, then by their own names; False where names say nothing."""
    _drop_numbered(state)
    if not names_agree(state):
        return False
    for names, how in ((_whole, "origin"), (_own, "name"), (_sources, "origin"), (_all, "name")):
        _pair_named(state, names, how)
    return True


def _drop_numbered(state: State) -> None:
    """Forget numbered names where one and the same stands for other operators on the two sides."""
    ours, theirs = _operators(state.left.items), _operators(state.right.items)
    shared = ours.keys() & theirs.keys()
    wrong = sum(_contradict(ours[name], theirs[name]) for name in shared)
    if wrong <= CONTRADICTED * len(shared):
        return
    for item in (*state.left.items, *state.right.items):
        item.names = frozenset(name for name in item.names if not _NUMBERED.search(name))
        item.sources = frozenset(name for name in item.sources if not _NUMBERED.search(name))


def _operators(items: Iterable[Item]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for item in items:
        for source in item.node.origin.sources:
            if source.operator and _NUMBERED.search(source.name):
                found[source.name].add(source.operator)
    return found


def _contradict(ours: set[str], theirs: set[str]) -> bool:
    """True where operators differ; those of an ONNX file and of a TFLite file are not the same words."""
    return ours.isdisjoint(theirs) and all(map(str.isupper, ours)) == all(map(str.isupper, theirs))


def by_leftover_names(state: State) -> None:
    """Pair what is left and has the same name on both sides alone: its operator became another."""
    ours, theirs = (bucketed((i for i in state.unmatched(side.items) if i.names),
                             lambda i: (i.node.name, i.shape, i.is_plumbing)) for side in (state.left, state.right))
    for key, mine in ours.items():
        other = theirs.get(key, [])
        if len(mine) == len(other) == 1:
            state.pair(mine[0], other[0], "name")


def _whole(item: Item) -> Iterable[object]:
    return ((item.sources, item.names),) if item.sources else ()


def _own(item: Item) -> Iterable[object]:
    return item.names


def _sources(item: Item) -> Iterable[object]:
    return item.sources


def _all(item: Item) -> Iterable[object]:
    return {*item.names, *map(plain_name, item.sources)}


def _pair_named(state: State, names: Callable[[Item], Iterable[object]], how: str) -> None:
    theirs = _index(state.unmatched(state.right.items), names)
    ours = _index(state.unmatched(state.left.items), names)
    for name, mine in ours.items():
        other = theirs.get(name)
        if other and max(len(mine), len(other)) <= MANY_OF_ONE_NAME:
            state.pair_buckets(mine, other, state.exact, how)


def _index(items: Iterable[Item], names: Callable[[Item], Iterable[object]]) -> dict[object, list[Item]]:
    found: dict[object, list[Item]] = defaultdict(list)
    for item in items:
        for name in names(item):
            found[name].append(item)
    return found


def names_agree(state: State) -> bool:
    """True when a name on one side stands for the same on the other, as far as constants and kinds tell.

    Exporters that number their nodes give other nodes the same names when one node is more or less.
    """
    theirs = _index(state.right.items, _all)
    agreed = told = 0
    for a, b in list(state.partner.items()):
        if a not in state.how:
            continue
        seen = {other for name in _all(a) for other in theirs.get(name, ()) if other.kind == a.kind}
        if seen:
            told += 1
            agreed += b in seen
    if told >= FEW:
        return agreed >= LEAST_AGREEING * told
    ours = _index(state.left.items, _all)
    shared = [(mine, theirs[name]) for name, mine in ours.items() if name in theirs]
    alike = sum(not {state.exact(i) for i in mine}.isdisjoint(map(state.exact, other)) for mine, other in shared)
    return bool(shared) and alike >= LEAST_AGREEING / 2 * len(shared)
