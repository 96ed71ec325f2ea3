"""The first paragraph of a comparison: what a person would want to hear first, the weightiest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vitrify.core.words import counted, percent, shape_text
from vitrify.results.diffing import DiffSide, EndRow, NodeRow

FEW = 3


def sentences(a: DiffSide, b: DiffSide, ends: list[EndRow], rows: list[NodeRow], alike: float,
              unrelated: bool) -> list[str]:
    """Say how B differs from A."""
    if unrelated:
        return [_unrelated(a, b, rows, alike)]
    found = [*_kinds(a, b), *_ends(ends), *_boxes(a, b), *_hosts(a, b), *_transposes(a, b), *_granularity(a, b),
             *_nodes(rows)]
    return found or ["A and B are the same: inputs, outputs, operators, attributes, constants and scales"]


def _unrelated(a: DiffSide, b: DiffSide, rows: list[NodeRow], alike: float) -> str:
    if not a.nodes or not b.nodes:
        empty = "A" if not a.nodes else "B"
        return f"{empty} has no nodes" if a.nodes or b.nodes else "A and B have no nodes"
    shared = Counter(op for row in rows if row.a and row.b for op in row.a_operators)
    what = ", ".join(f"{n} {op}" for op, n in shared.most_common(FEW)) or "no node"
    return (f"A and B are different models: of {a.nodes} and {b.nodes} nodes {percent(alike)} of the smaller one stand "
            f"alike; they share nothing but {what}, matched by kind alone")


def _kinds(a: DiffSide, b: DiffSide) -> Iterator[str]:
    if a.kind != b.kind:
        yield f"A is {a.kind}, B is {b.kind}"
    if a.npu_graphs != b.npu_graphs:
        yield f"A holds {counted(a.npu_graphs, 'NPU graph')}, B {b.npu_graphs}"
    fewer, more, name = (a, b, "B") if a.float_operators < b.float_operators else (b, a, "A")
    if fewer.float_operators != more.float_operators:
        beside = f" ({_listed(more.float_nodes)})" if more.float_operators <= FEW else ""
        yield (f"{name} computes {counted(more.float_operators, 'operator')} in float{beside}, the other "
               f"{fewer.float_operators or 'none'}")


def _ends(ends: list[EndRow]) -> Iterator[str]:
    for side, word in (("in", "input"), ("out", "output")):
        rows = [row for row in ends if row.side == side]
        only = [(sum(r.b is None for r in rows), "A"), (sum(r.a is None for r in rows), "B")]
        for number, name in only:
            if number:
                yield f"{counted(number, word)} {'is' if number == 1 else 'are'} in {name} only"
        for row in rows[:6]:
            told = [c.text for c in row.changes if c.kind != "name"]
            if told and row.a is not None:
                yield f"{word} '{row.a.name}': {'; '.join(told)}"


def _boxes(a: DiffSide, b: DiffSide) -> Iterator[str]:
    if len(a.nms) != len(b.nms):
        name, more = ("A", a) if len(a.nms) > len(b.nms) else ("B", b)
        yield f"{name} selects boxes inside the graph ({_listed(more.nms)})"
    if bool(a.decode) != bool(b.decode):
        name, more = ("A", a) if a.decode else ("B", b)
        yield (f"{name} decodes boxes inside the graph, in {counted(len(more.decode), 'operator')} behind the last "
               "weights")


def _hosts(a: DiffSide, b: DiffSide) -> Iterator[str]:
    for name, side, other in (("A", a, b), ("B", b, a)):
        if side.host_steps and not other.host_steps:
            yield f"{name} leaves {counted(side.host_steps, 'step')} of arithmetic behind its outputs to the host"


def _transposes(a: DiffSide, b: DiffSide) -> Iterator[str]:
    if a.transposes != b.transposes:
        name, number = ("A", a.transposes - b.transposes) if a.transposes > b.transposes else (
            "B", b.transposes - a.transposes)
        yield f"{name} has {counted(number, 'TRANSPOSE')} more ({a.transposes}, then {b.transposes})"


def _granularity(a: DiffSide, b: DiffSide) -> Iterator[str]:
    if (a.per_axis > 0) != (b.per_axis > 0) and a.per_axis + a.per_tensor and b.per_axis + b.per_tensor:
        name, other = ("A", "B") if a.per_axis else ("B", "A")
        yield f"weights have a scale for each channel in {name}, one for all in {other}"
    if bool(a.stored_float16) != bool(b.stored_float16):
        yield f"{'A' if a.stored_float16 else 'B'} stores weights as float16"


def _nodes(rows: list[NodeRow]) -> Iterator[str]:
    counts = Counter(row.relation for row in rows)
    for relation, verb in (("compiled", "compiled into NPU graphs"), ("fused", "fused"), ("split", "split"),
                           ("rewritten", "rewritten"), ("moved", "moved")):
        chosen = [row for row in rows if row.relation == relation]
        if chosen:
            nodes = sum(max(len(row.a), 1) for row in chosen)
            names = "" if relation == "compiled" else f" ({_listed([(row.a or row.b)[0] for row in chosen])})"
            yield f"{counted(nodes, 'node')} of A {'is' if nodes == 1 else 'are'} {verb}{names}"
    for relation, where in (("removed", "A"), ("added", "B")):
        kinds = Counter(op for row in rows if row.relation == relation
                        for op in (row.a_operators or row.b_operators))
        if kinds:
            told = ", ".join(f"{n} {op}" for op, n in kinds.most_common(FEW + 2))
            more = "" if len(kinds) <= FEW + 2 else " and others"
            yield f"only in {where}: {told}{more}"
    moved = [(change.error or 0.0, row.a[0]) for row in rows for change in row.changes
             if change.kind == "quantization"]
    if moved:
        error, name = max(moved)
        touched = counted(len({name for _, name in moved}), "node")
        yield (f"quantizing changed constants of {touched} by more than rounding, at most by {error:.2g} of their size "
               f"('{name}')")
    finer = sum(change.kind == "float-rounding" for row in rows for change in row.changes)
    if finer:
        yield f"{counted(finer, 'constant')} differ{'s' if finer == 1 else ''} by rounding of float32 alone"
    if counts["resized"]:
        yield f"{counted(counts['resized'], 'node')} of A have other extents in B, as the inputs have"
    if counts["changed"]:
        quiet = ("layout", "rounding", "quantization", "float-rounding")
        kinds = Counter(kind for row in rows if row.relation == "changed"
                        for kind in {c.kind: None for c in row.changes} if kind not in quiet)
        told = ", ".join(f"{_CALLED.get(kind, kind)} of {n}" for kind, n in kinds.most_common())
        yield f"{counted(counts['changed'], 'node')} differ{'s' if counts['changed'] == 1 else ''}: {told}"


_CALLED = {"constant": "constants", "attribute": "attributes", "scale": "the scale", "zero-point": "the zero point",
           "inputs": "inputs", "type": "the type", "shape": "the shape", "operator": "the operator",
           "granularity": "the granularity"}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(f"'{name}'" for name in names[:FEW]) + more


def end_text(row: EndRow) -> str:
    """An input or output of one side or both, as a line."""
    def one(side: str) -> str:
        found = row.a if side == "a" else row.b
        return "-" if found is None else f"{found.name} {found.dtype}{shape_text(found.shape)}"

    return f"{one('a')} | {one('b')}"
