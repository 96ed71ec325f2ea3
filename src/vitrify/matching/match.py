"""The whole matching: sure pairs, then surroundings, then what became part of something else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vitrify.ir import Graph
from vitrify.matching.anchors import by_content, by_leftover_names, by_name
from vitrify.matching.ends import match_ends
from vitrify.matching.fusing import homes
from vitrify.matching.inside import insides
from vitrify.matching.items import Item, Side, in_order
from vitrify.matching.regions import rewritten
from vitrify.matching.state import State
from vitrify.matching.surroundings import by_surroundings


@dataclass
class Group:
    """Nodes of the left graph and the nodes of the right one that they are; one side is empty where nothing is.

    ``how`` they were found: ``content``, ``origin``, ``name``, ``neighbourhood``, ``order``, ``inside`` (of a compiled
    node), or "" where a side is empty.
    """

    left: list[Item]
    right: list[Item]
    how: str = ""

    @property
    def is_pair(self) -> bool:
        """One node on both sides."""
        return len(self.left) == len(self.right) == 1


@dataclass
class Matching:
    """Groups in running order; each node stands in exactly one."""

    left: Side
    right: Side
    groups: list[Group]
    inputs: list[tuple[int, int]]
    outputs: list[tuple[int, int]]
    names_agree: bool
    is_resized: bool = False
    of: dict[Item, Group] = field(default_factory=dict)

    @property
    def alike(self) -> float:
        """The share of nodes, of the graph that has fewer, that have a counterpart."""
        matched = [g for g in self.groups if g.left and g.right]
        if len(self.left.items) <= len(self.right.items):
            return sum(len(g.left) for g in matched) / max(len(self.left.items), 1)
        return sum(len(g.right) for g in matched) / max(len(self.right.items), 1)


def match(left: Graph, right: Graph) -> Matching:
    """Say which nodes of two graphs are each other."""
    a, b = Side(left), Side(right)
    batches = (a.batch, b.batch)
    ends = match_ends(left.inputs, right.inputs, batches), match_ends(left.outputs, right.outputs, batches)
    state = State(a, b, ends)
    boxes = insides(a, b), insides(b, a)
    by_content(state)
    named = by_name(state)
    _forget(state, [i for box in boxes for items in box.values() for i in items])
    by_surroundings(state)
    if named:
        by_leftover_names(state)
    groups = _groups(state, named, boxes)
    found = Matching(a, b, groups, *ends, named, state.is_resized)
    found.of = {item: group for group in groups for item in (*group.left, *group.right)}
    return found


def _forget(state: State, boxed: Iterable[Item]) -> None:
    for item in boxed:
        other = state.partner.pop(item, None)
        if other is not None:
            state.partner.pop(other, None)
            state.how.pop(item, None)
            state.how.pop(other, None)


def _groups(state: State, named: bool, boxes: tuple[dict[Item, list[Item]], dict[Item, list[Item]]]) -> list[Group]:
    groups: dict[Item, Group] = {}
    for a, how in state.how.items():
        groups[a] = groups[state.partner[a]] = Group([a], [state.partner[a]], how)
    for box, items in boxes[0].items():
        _box(groups, box, Group([i for i in items if i not in groups], [box], "inside"))
    for box, items in boxes[1].items():
        _box(groups, box, Group([box], [i for i in items if i not in groups], "inside"))
    lonely = [i for i in state.left.items if i not in groups]
    theirs = [i for i in state.right.items if i not in groups]
    _join(groups, homes(state, lonely, state.right, by_origin=named), on_left=True)
    _join(groups, {i: h for i, h in homes(state, theirs, state.left, by_origin=named).items() if i not in groups},
          on_left=False)
    _rewritten(groups, state, [i for i in lonely if i not in groups], [i for i in theirs if i not in groups])
    for item in lonely:
        groups.setdefault(item, Group([item], []))
    for item in theirs:
        groups.setdefault(item, Group([], [item]))
    each = {id(group): group for group in groups.values()}
    for group in each.values():
        group.left, group.right = in_order(group.left), in_order(group.right)
    return sorted(each.values(), key=lambda g: (g.right or g.left)[0].place)


def _rewritten(groups: dict[Item, Group], state: State, lonely: list[Item], theirs: list[Item]) -> None:
    numbers = {id(group): number for number, group in enumerate(groups.values())}
    left, right = state.left.graph.inputs, state.right.graph.inputs
    ends = {tensor: -1 - number for number, (i, j) in enumerate(state.inputs) for tensor in (left[i], right[j])}

    def known(item: Item) -> int | None:
        group = groups.get(item)
        return None if group is None else numbers[id(group)]

    for ours, others in rewritten(lonely, theirs, known, ends):
        group = Group(ours, others, "neighbourhood")
        for item in (*ours, *others):
            groups[item] = group


def _box(groups: dict[Item, Group], box: Item, group: Group) -> None:
    if box in groups or not (group.left and group.right):
        return
    for item in (*group.left, *group.right):
        groups[item] = group


def _join(groups: dict[Item, Group], found: dict[Item, Item], *, on_left: bool) -> None:
    """Put lonely nodes into the group of the node in which they live on."""
    for item, home in found.items():
        group = groups.get(home)
        if group is None:
            group = groups[home] = Group([], [home], "origin") if on_left else Group([home], [], "origin")
        (group.left if on_left else group.right).append(item)
        groups[item] = group
