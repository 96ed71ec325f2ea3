"""Which values a model's inputs may have: rows of a table that is looked into, and numbers where there is no NaN.

A token above the vocabulary is no error to a runtime: it reads what lies behind the table, or wraps around.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.ir.interface import Interface
from vitrify.ops import (
    Cast,
    Concatenation,
    EmbeddingLookup,
    ExpandDims,
    FloorMod,
    Gather,
    Reshape,
    Slice,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Transpose,
)

Array = np.ndarray[Any, np.dtype[Any]]

MOVES = (Cast, Concatenation, ExpandDims, Reshape, Slice, Split, SplitV, Squeeze, StridedSlice, Transpose)
"""Operators that hand whole numbers on as they are."""


class Limit(NamedTuple):
    """The least and the greatest index that a table takes, and what looks into it."""

    low: int
    high: int
    reader: str


def index_limits(model: Model, interface: Interface) -> dict[str, Limit]:
    """The limits of inputs that are indices, by the source model's name of the input."""
    graph = model.main
    found: dict[str, Limit] = {}
    for binding in interface.inputs:
        if 0 <= binding.position < len(graph.inputs) and np.dtype(binding.dtype).kind in "iu":
            limits = list(_limits(graph, graph.inputs[binding.position]))
            if limits:
                found[binding.name] = Limit(max(one.low for one in limits), min(one.high for one in limits),
                                            min(limits, key=lambda one: one.high).reader)
    return found


def _limits(graph: Graph, source: Tensor) -> Iterator[Limit]:
    """Follow an input to the tables that it is an index of."""
    waiting, seen = [source], {source}
    while waiting:
        tensor = waiting.pop()
        for node in tensor.users:
            limit = _limit(node, tensor)
            if limit is not None:
                yield limit
            elif isinstance(node.op, MOVES):
                fresh = [t for t in node.outputs if t not in seen]
                seen.update(fresh)
                waiting += fresh


def _limit(node: Node, index: Tensor) -> Limit | None:
    rows = _rows(node, index)
    if rows is not None:
        return Limit(0, rows - 1, node.name)
    if not isinstance(node.op, FloorMod) or node.input(0) is not index:
        return None
    for reader in node.output.users:       # indices from the end, as ONNX counts them, come from the start by that
        rows = _rows(reader, node.output)
        divisor = node.input(1).data
        if rows is not None and divisor is not None and divisor.size == 1 and int(divisor.reshape(-1)[0]) == rows \
                and node.origin.sources == reader.origin.sources:
            return Limit(-rows, rows - 1, reader.name)
    return None


def _rows(node: Node, index: Tensor) -> int | None:
    """How many rows the table has that a node looks into at ``index``."""
    if isinstance(node.op, Gather) and node.input(1) is index:
        shape = node.input(0).shape
        return int(shape[node.op.axis]) if -len(shape) <= node.op.axis < len(shape) else None
    if isinstance(node.op, EmbeddingLookup) and node.input(0) is index and node.input(1).shape:
        return int(node.input(1).shape[0])
    return None


def beyond(limits: Mapping[str, Limit], sample: Mapping[str, Array], where: str = "") -> list[Finding]:
    """Tell of indices that are outside of their table."""
    found = []
    for name, limit in limits.items():
        array = np.asarray(sample[name]) if name in sample else np.zeros(0)
        wrong = (array < limit.low) | (array > limit.high)
        if array.size and wrong.any():
            first = [int(i) for i in np.argwhere(wrong)[0]]
            more = f", and {int(wrong.sum()) - 1} more" if wrong.sum() > 1 else ""
            found.append(Finding(
                code="data.index", where=where or f"input '{name}'",
                headline=f"input '{name}' holds {int(array[tuple(first)])} at {first}{more}: it is an index of "
                         f"{limit.low}..{limit.high}",
                why=f"'{limit.reader}' looks it up in a table of {limit.high + 1} rows; a runtime would read something "
                    "else, or end", help="use the tokenizer, or the list of classes, that the model was made with"))
    return found


def not_numbers(name: str, array: Array) -> str:
    """Say how many values of an input are NaN, and where; nothing when none is."""
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return ""
    bad = np.isnan(array)
    first = [int(i) for i in np.argwhere(bad)[0]]
    return f"input '{name}' holds NaN: {int(bad.sum())} of {array.size} values, the first at {first}"
