"""Einsum as matrix products: labels summed early, operands joined pair by pair, with as few transposes as there can be.

A label of extent 1 is no label: it is left out before and put back at the end, which is a RESHAPE. A repeated label is
a diagonal: a slice with a step through two joined axes. Of two operands, the labels are those of both that stay
(batch), those of both that go (contracted), and those of one alone. Source: ONNX operator reference, Einsum-12.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.matmul import dense
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor

Labels = tuple[str, ...]
FLAG_COST = 0.1
"""What a transposed first operand costs against a TRANSPOSE: the kernel reorders it, in its own memory."""


@dataclass(frozen=True)
class Term:
    """A tensor and the label of each axis."""

    x: Tensor
    labels: Labels

    @property
    def extents(self) -> dict[str, int]:
        """The extent of each label."""
        return dict(zip(self.labels, self.x.shape, strict=True))


@lowering("Einsum")
def einsum(ctx: Context, node: SourceNode) -> None:
    """Sums of products, named by letters."""
    tensors = [float_input(ctx, node, i) for i in range(len(node.inputs))]
    labels, result = _parsed(node, [len(t.shape) for t in tensors])
    terms = [_plain(ctx, Term(t, names)) for t, names in zip(tensors, labels, strict=True)]
    extents = _extents(node, terms)
    while len(terms) > 1:
        wanted = {*result, *(name for t in terms[2:] for name in t.labels)}
        left, right = (_summed(ctx, terms[i], {*wanted, *terms[1 - i].labels}) for i in (0, 1))
        last = tuple(n for n in result if n in extents) if len(terms) == 2 else None
        terms[:2] = [_joined(ctx, left, right, wanted, last)]
    total = _summed(ctx, terms[0], set(result))
    order = tuple(n for n in result if n in total.labels)
    y = _ordered(ctx, total, order)
    ctx.bind(node, ctx.reshape(y, [total.extents.get(n, 1) for n in result]))


def _parsed(node: SourceNode, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result; an ellipsis becomes labels counted from the last axis."""
    equation = node.string("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise node.problem(f"equation '{equation}' has {len(texts)} terms for {len(ranks)} inputs")
    terms: list[Labels] = []
    for text, rank in zip((_letters(node, t) for t in texts), ranks, strict=True):
        hidden = rank - len(text.replace("...", ""))
        if hidden < 0 or (hidden and "..." not in text):
            raise node.problem(f"term '{text}' of the equation does not fit {rank} dimensions")
        terms.append(_labels(text, hidden))
    widest = max((sum(n.isdigit() for n in term) for term in terms), default=0)
    if not arrow:
        counts = Counter(n for term in terms for n in term)
        right = "..." * bool(widest) + "".join(sorted(n for n in counts if counts[n] == 1 and not n.isdigit()))
    result = _labels(_letters(node, right), widest)
    known = {n for term in terms for n in term}
    if len(set(result)) < len(result) or not set(result) <= known:
        raise node.problem(f"equation '{equation}' asks for labels that are repeated or that no input has")
    return terms, result


def _letters(node: SourceNode, text: str) -> str:
    """A term, which is made of letters around one ellipsis."""
    if not re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", text):
        raise node.problem(f"term '{text}' of the equation is none of letters with one ellipsis")
    return text


def _labels(text: str, hidden: int) -> Labels:
    before, dots, after = text.partition("...")
    return (*before, *((str(i) for i in range(hidden - 1, -1, -1)) if dots else ()), *after)


def _plain(ctx: Context, term: Term) -> Term:
    """Without labels of extent 1 and without repeated ones."""
    kept = [i for i, d in enumerate(term.x.shape) if d != 1]
    term = Term(ctx.reshape(term.x, [term.x.shape[i] for i in kept]), tuple(term.labels[i] for i in kept))
    while repeated := next((n for n, count in Counter(term.labels).items() if count > 1), None):
        term = _diagonal(ctx, term, repeated)
    return term


def _diagonal(ctx: Context, term: Term, label: str) -> Term:
    """Take two axes of one label as one: every (n + 1)th element of the two joined."""
    first, second = [i for i, n in enumerate(term.labels) if n == label][:2]
    rest = [i for i in range(len(term.labels)) if i not in (first, second)]
    x = ctx.transpose(term.x, (*rest, first, second))
    outer, extent = x.shape[:-2], x.shape[-1]
    rows = ctx.reshape(x, (math.prod(outer), extent * extent))
    begin, end = np.array([0, 0], np.int32), np.array(rows.shape, np.int32)
    picked = ctx.emit(ops.StridedSlice(), [rows, begin, end, np.array([1, extent + 1], np.int32)], aside=True)
    return Term(ctx.reshape(picked, (*outer, extent)), (*(term.labels[i] for i in rest), label))


def _extents(node: SourceNode, terms: Sequence[Term]) -> dict[str, int]:
    found: dict[str, int] = {}
    for term in terms:
        for name, extent in term.extents.items():
            if found.setdefault(name, extent) != extent:
                raise node.problem(f"label '{name}' has the extents {found[name]} and {extent}")
    return found


def _summed(ctx: Context, term: Term, wanted: Iterable[str]) -> Term:
    """Sum over what nobody asks for."""
    gone = [i for i, n in enumerate(term.labels) if n not in wanted]
    if not gone:
        return term
    y = ctx.emit(ops.Sum(keep_dims=False), [term.x, np.array(gone, np.int32)])
    return Term(y, tuple(n for n in term.labels if n in wanted))


def _ordered(ctx: Context, term: Term, order: Labels) -> Tensor:
    return ctx.transpose(term.x, [term.labels.index(n) for n in order])


def _joined(ctx: Context, left: Term, right: Term, wanted: set[str], last: Labels | None) -> Term:
    """The sum of products of two terms over what both have and nobody wants."""
    both = [n for n in left.labels if n in right.labels]
    contracted = tuple(n for n in both if n not in wanted)
    if not contracted:
        return _multiplied(ctx, left, right, last)
    if len(both) == len(contracted) and (left.x.is_constant or right.x.is_constant):
        return _dense(ctx, left, right, contracted)
    return _product(ctx, left, right, _cheapest(left, right, contracted, last))


def _multiplied(ctx: Context, left: Term, right: Term, last: Labels | None) -> Term:
    """Element by element, the axes of both side by side; the first of them in the order wanted, or the left's."""
    names = (*left.labels, *(n for n in right.labels if n not in left.labels))
    order = names if last is None else tuple(n for n in last if n in names)
    shapes = []
    for term in (left, right):
        own = tuple(n for n in order if n in term.labels)
        shapes.append(ctx.reshape(_ordered(ctx, term, own), [term.extents.get(n, 1) for n in order]))
    return Term(ctx.emit(ops.Mul(), shapes), order)


def _dense(ctx: Context, left: Term, right: Term, contracted: Labels) -> Term:
    """FULLY_CONNECTED with the constant one as weights."""
    x, weights = (left, right) if right.x.is_constant else (right, left)
    inner = tuple(n for n in x.labels if n in contracted)
    outer, others = (tuple(n for n in t.labels if n not in contracted) for t in (x, weights))
    matrix = _ordered(ctx, weights, (*others, *inner)).data
    assert matrix is not None
    columns = math.prod(x.extents[n] for n in inner)
    rows = ctx.reshape(_ordered(ctx, x, (*outer, *inner)), (x.x.size // max(columns, 1), columns))
    y = dense(ctx, rows, matrix.reshape(-1, columns), None)
    extents = {**weights.extents, **x.extents}
    return Term(ctx.reshape(y, [extents[n] for n in (*outer, *others)]), (*outer, *others))


@dataclass(frozen=True)
class Plan:
    """One way to write a product as BATCH_MATMUL: the order of labels in both operands, and their flags."""

    swapped: bool
    batch: Labels
    rows: Labels
    inner: Labels
    columns: Labels
    adj_x: bool
    adj_y: bool

    @property
    def first(self) -> Labels:
        """The labels of the first operand."""
        return (*self.batch, *((*self.inner, *self.rows) if self.adj_x else (*self.rows, *self.inner)))

    @property
    def second(self) -> Labels:
        """The labels of the second operand."""
        return (*self.batch, *((*self.columns, *self.inner) if self.adj_y else (*self.inner, *self.columns)))

    @property
    def result(self) -> Labels:
        """The labels of the product."""
        return (*self.batch, *self.rows, *self.columns)


def _cheapest(left: Term, right: Term, contracted: Labels, last: Labels | None) -> Plan:
    """Return the plan that moves the fewest elements."""

    def orders(term: Term, names: Iterable[str]) -> set[Labels]:
        chosen = set(names)
        found = {tuple(n for n in t.labels if n in chosen) for t in (left, right) if chosen <= set(t.labels)}
        return found | ({tuple(n for n in last if n in chosen)} if last and chosen <= set(last) else set())

    plans = []
    for swapped in (False, True):
        a, b = (right, left) if swapped else (left, right)
        batch = {n for n in a.labels if n in b.labels} - {*contracted}
        alone = [{*t.labels} - batch - {*contracted} for t in (a, b)]
        groups = (batch, alone[0], {*contracted}, alone[1])
        batches, rows, inner, columns = (
            sorted(orders(t, names)) for t, names in zip((a, a, a, b), groups, strict=True)
        )
        plans += [
            Plan(swapped, *labels, *flags)
            for labels in product(batches, rows, inner, columns)
            for flags in product((False, True), repeat=2)
        ]

    def cost(plan: Plan) -> float:
        a, b = (right, left) if plan.swapped else (left, right)
        moved = (plan.first != a.labels) * a.x.size + (plan.second != b.labels) * b.x.size
        extents = {**left.extents, **right.extents}
        result = math.prod(extents[n] for n in plan.result)
        moved += (last is not None and plan.result != last) * result
        return moved + FLAG_COST * plan.adj_x * a.x.size + FLAG_COST**2 * (plan.swapped + plan.adj_y)

    return min(plans, key=cost)


def _product(ctx: Context, left: Term, right: Term, plan: Plan) -> Term:
    """BATCH_MATMUL on three axes (two without a batch)."""
    a, b = (right, left) if plan.swapped else (left, right)
    extents = {**left.extents, **right.extents}

    def size(names: Labels) -> int:
        return math.prod(extents[n] for n in names)

    batch = (size(plan.batch),) if plan.batch else ()
    inner = size(plan.inner)
    rows, columns = size(plan.rows), size(plan.columns)
    x = ctx.reshape(_ordered(ctx, a, plan.first), (*batch, *((inner, rows) if plan.adj_x else (rows, inner))))
    y = ctx.reshape(_ordered(ctx, b, plan.second), (*batch, *((columns, inner) if plan.adj_y else (inner, columns))))
    z = ctx.emit(ops.BatchMatMul(adj_x=plan.adj_x, adj_y=plan.adj_y), [x, y])
    return Term(ctx.reshape(z, [extents[n] for n in plan.result]), plan.result)
