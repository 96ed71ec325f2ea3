"""Sequences and optionals: lists of values while the model is imported. Source: ONNX operator reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.bundles import ABSENT, Absent, Bundle
from vitrify.importers.onnx.context import Poison
from vitrify.importers.onnx.controls.loops import one_round, spend
from vitrify.importers.onnx.controls.registry import Walk, control, give, poison
from vitrify.importers.onnx.parts.joints import joined, parts, pieces, stacked
from vitrify.importers.onnx.registry import axis_of
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import SourceNode

MOST_ITEMS = 20_000
"""Of one sequence."""


def _items(walk: Walk, node: SourceNode, index: int = 0) -> tuple[Any, ...]:
    """The elements of a sequence input.

    Raises:
        ModelError: the input is no sequence.
    """
    found = walk.context.values[node.inputs[index]] if walk.context.present(node, index) else None
    if not isinstance(found, Bundle):
        raise node.problem(f"input {index} is no sequence")
    return found.items


def _place(walk: Walk, node: SourceNode, index: int, count: int, default: int) -> int:
    """A position, negative from the end; ``count`` is one past the last that is allowed."""
    if not walk.context.present(node, index):
        return default
    given = int(walk.context.known(node, index, "the position").reshape(-1)[0])
    length = count if node.kind != "SequenceInsert" else count - 1
    if not -length <= given < count:
        raise node.problem(f"position {given} of a sequence of {length}")
    return given + length if given < 0 else given


@control("SequenceEmpty", "SequenceConstruct")
def construct(walk: Walk, node: SourceNode) -> None:
    """The inputs as a sequence."""
    give(walk, node, [Bundle(tuple(walk.context.value(node, i) for i in range(len(node.inputs))))])


@control("SequenceInsert")
def insert(walk: Walk, node: SourceNode) -> None:
    """One element more, at the end or before a position."""
    items = _items(walk, node)
    if len(items) >= MOST_ITEMS:
        raise node.unsupported(f"a sequence of more than {MOST_ITEMS:,} elements")
    place = _place(walk, node, 2, len(items) + 1, len(items))
    give(walk, node, [Bundle((*items[:place], walk.context.value(node, 1), *items[place:]))])


@control("SequenceErase")
def erase(walk: Walk, node: SourceNode) -> None:
    """One element less, the last or that at a position."""
    items = _items(walk, node)
    if not items:
        raise node.problem("the sequence is empty")
    place = _place(walk, node, 1, len(items), len(items) - 1)
    give(walk, node, [Bundle((*items[:place], *items[place + 1 :]))])


@control("SequenceAt")
def at(walk: Walk, node: SourceNode) -> None:
    """One element."""
    items = _items(walk, node)
    give(walk, node, [items[_place(walk, node, 1, len(items), 0)]])


@control("SequenceLength")
def length(walk: Walk, node: SourceNode) -> None:
    """How many elements there are."""
    give(walk, node, [np.array(len(_items(walk, node)), np.int64)])


@control("SplitToSequence")
def split(walk: Walk, node: SourceNode) -> None:
    """Parts of given sizes, of one size with the rest as the last, or of one index each."""
    context, value = walk.context, walk.context.value(node, 0)
    axis = axis_of(node, node.integer("axis"), len(value.shape))
    extent = value.shape[axis]
    if not context.present(node, 1):
        limit(node, [extent])
        single = node.integer("keepdims", 1)
        found = parts(context, node, value, [1] * extent, axis) if single else pieces(context, node, value, axis)
        return give(walk, node, [Bundle(tuple(found))])
    given = context.known(node, 1, "the sizes")
    sizes = [int(s) for s in given.reshape(-1)]
    if given.ndim == 0 and sizes[0] > 0:
        sizes = [min(sizes[0], extent - start) for start in range(0, extent, sizes[0])]
    if sum(sizes) != extent or min(sizes, default=0) < 0 or len(sizes) > MOST_ITEMS:
        raise node.problem(f"parts of {sizes[:8]} do not make up an extent of {extent}")
    return give(walk, node, [Bundle(tuple(parts(context, node, value, sizes, axis)))])


@control("ConcatFromSequence")
def concat(walk: Walk, node: SourceNode) -> None:
    """The elements joined along an axis, or stacked along a new one."""
    items = _items(walk, node)
    if not items:
        raise node.problem("the sequence is empty")
    fresh = node.integer("new_axis")
    axis = axis_of(node, node.integer("axis"), len(items[0].shape) + fresh)
    give(walk, node, [(stacked if fresh else joined)(walk.context, node, items, axis)])


@control("SequenceMap")
def map_(walk: Walk, node: SourceNode) -> None:
    """The body once per element; further sequences are walked along, tensors are given to every round."""
    first, body = _items(walk, node), node.graph("body")
    others = [walk.context.values[name] for name in node.inputs[1:]]
    if len(body.inputs) != len(node.inputs):
        raise node.problem(f"its body takes {len(body.inputs)} values, it has {len(node.inputs)} inputs")
    if any(isinstance(o, Bundle) and len(o.items) != len(first) for o in others):
        raise node.problem("its sequences have different lengths")
    rounds: list[list[Any]] = []
    for number, item in enumerate(first):
        spend(walk, node, body, len(first))
        given = [item, *(o.items[number] if isinstance(o, Bundle) else o for o in others)]
        rounds.append(one_round(walk, node, body, given))
        if any(isinstance(value, Poison) for value in rounds[-1]):
            return poison(walk, node)
    columns = zip(*rounds, strict=True) if rounds else [() for _ in node.outputs]
    return give(walk, node, [Bundle(tuple(column)) for column in columns])


@control("Optional")
def optional(walk: Walk, node: SourceNode) -> None:
    """The value itself, or none."""
    give(walk, node, [walk.context.values[node.inputs[0]] if walk.context.present(node, 0) else ABSENT])


@control("OptionalHasElement")
def has_element(walk: Walk, node: SourceNode) -> None:
    """Whether there is a value."""
    there = walk.context.present(node, 0) and not isinstance(walk.context.values[node.inputs[0]], Absent)
    give(walk, node, [np.array(there)])


@control("OptionalGetElement")
def get_element(walk: Walk, node: SourceNode) -> None:
    """The value, which must be there."""
    found = walk.context.values[node.inputs[0]] if walk.context.present(node, 0) else ABSENT
    if isinstance(found, Absent):
        raise node.problem("the optional has no value")
    give(walk, node, [found])
