"""What differs between the nodes of one group, and what that makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from vitrify.ir import Tensor
from vitrify.matching import Group, Item, Matching
from vitrify.matching.inside import is_npu
from vitrify.matching.items import is_free
from vitrify.pipeline.diffing.compiled import DRAWN
from vitrify.pipeline.diffing.constants import constant_changes
from vitrify.pipeline.diffing.wiring import Wiring
from vitrify.results.diffing import ChangeRow, NodeRow
from vitrify.verify.alignment import layouts

ARGUMENTS = {"RESHAPE": (1,), "TRANSPOSE": (1,), "BROADCAST_TO": (1,), "RESIZE_BILINEAR": (1,),
             "RESIZE_NEAREST_NEIGHBOR": (1,), "SLICE": (1, 2), "STRIDED_SLICE": (1, 2, 3), "TRANSPOSE_CONV": (0,),
             "SPLIT_V": (1,), "TILE": (1,)}
"""Constants that say where and how large, not what: with other shapes they must differ."""

BIAS = 2
"""The input of operators with weights that is added to what they sum up."""

STORED = ("pot_scale_int16", "quantized_bias_type", "asymmetric_quantize_inputs")
"""Attributes that say something of integers only."""

TOLERANCE = 1e-6
"""Of attributes and scales, as a share; a file may have them from another order of float operations."""


def node_rows(matching: Matching) -> list[NodeRow]:
    """Return a row for each group, in running order."""
    wiring = Wiring(matching)
    shared = any(group.how == "origin" for group in matching.groups)       # else passes of one say nothing of the other
    return [_row(group, matching, wiring, shared) for group in matching.groups]


def _row(group: Group, matching: Matching, wiring: Wiring, shared: bool) -> NodeRow:
    row = NodeRow(relation="", how=group.how, a=[i.node.name for i in group.left], b=[i.node.name for i in group.right],
                  a_operators=[i.kind for i in group.left], b_operators=[i.kind for i in group.right])
    boxed = any(map(is_npu, (*group.left, *group.right))) and not group.is_pair
    drawn = any(DRAWN in t.extras for i in (*group.left, *group.right) for t in i.node.outputs)
    if group.left and group.right and not boxed and not drawn:
        for a, b in _counterparts(group):
            row.changes += _changes(a, b, matching)
        row.changes += wiring.changes(group)
    row.passes = _passes(group) if shared and not boxed else []
    row.relation = _relation(group, row)
    return row


def _passes(group: Group) -> list[str]:
    """The passes that touched one side and not the other."""
    left = dict.fromkeys(p for i in group.left for p in i.node.origin.passes)
    right = dict.fromkeys(p for i in group.right for p in i.node.origin.passes)
    return [p for p in (*right, *left) if (p in left) != (p in right)]


def _counterparts(group: Group) -> list[tuple[Item, Item]]:
    """Nodes of one kind in a group, paired in order."""
    if group.is_pair:
        return [(group.left[0], group.right[0])]
    rest = list(group.right)
    pairs = []
    for a in group.left:
        b = next((i for i in rest if i.kind == a.kind), None)
        if b is not None:
            rest.remove(b)
            pairs.append((a, b))
    return pairs


def _changes(a: Item, b: Item, matching: Matching) -> Iterator[ChangeRow]:
    if a.kind != b.kind:
        yield ChangeRow(kind="operator", before=a.kind, after=b.kind, text=f"{a.kind} became {b.kind}")
    relaid = False
    for x, y in zip(a.node.outputs, b.node.outputs, strict=False):
        shape = _shape(x, y, matching)
        relaid |= x.shape != y.shape
        if shape is not None:
            yield shape
        yield from _types(x, y)
    if a.kind == b.kind:
        yield from _attributes(a, b, relaid)
    yield from _constants(a, b, relaid)


def _shape(a: Tensor, b: Tensor, matching: Matching) -> ChangeRow | None:
    if a.shape == b.shape or is_free(a) or is_free(b):
        return None
    before, after = list(a.shape), list(b.shape)
    is_layout = bool(layouts(a.shape, b.shape)) or a.size == b.size
    expected = not is_layout and (matching.is_resized or matching.left.batch != matching.right.batch)
    kind = "layout" if is_layout else "extent" if expected else "shape"
    return ChangeRow(kind=kind, what="output", before=before, after=after, text=f"its output is {before}, then {after}")


def _types(a: Tensor, b: Tensor) -> Iterator[ChangeRow]:
    if a.dtype is not b.dtype:
        yield ChangeRow(kind="type", what="output", before=a.dtype.label, after=b.dtype.label,
                        text=f"it computes {a.dtype.label}, then {b.dtype.label}")
        return
    yield from scale_changes(a, b)


def scale_changes(a: Tensor, b: Tensor) -> Iterator[ChangeRow]:
    """How the scales of two tensors of one type differ."""
    p, q = a.quantization, b.quantization
    has_p, has_q = p is not None and p.scale.size > 0, q is not None and q.scale.size > 0
    if not (has_p and has_q and p is not None and q is not None):
        if has_p != has_q and a.dtype.bits <= 16 and not a.dtype.is_float:
            yield ChangeRow(kind="scale", what="output", before=str(p) if has_p else None,
                            after=str(q) if has_q else None, text=f"it has {'a' if has_p else 'no'} scale, then "
                                                                  f"{'one' if has_q else 'none'}")
        return
    if p.scale.size != q.scale.size:
        yield ChangeRow(kind="granularity", what="output", before=str(p), after=str(q), text=f"it has {p}, then {q}")
        return
    if any(abs(float(x) - float(y)) > TOLERANCE * abs(float(x)) for x, y in zip(p.scale, q.scale, strict=True)):
        yield ChangeRow(kind="scale", what="output", before=_number(p.scale), after=_number(q.scale),
                        text=f"its scale is {_shown(p.scale)}, then {_shown(q.scale)}")
    if p.zero_point.tolist() != q.zero_point.tolist():
        yield ChangeRow(kind="zero-point", what="output", before=_number(p.zero_point), after=_number(q.zero_point),
                        text=f"its zero point is {_shown(p.zero_point)}, then {_shown(q.zero_point)}")


def _number(values: Any) -> Any:
    return values.tolist()[0] if values.size == 1 else values.tolist()


def _shown(values: Any) -> str:
    return f"{float(values[0]):.6g}" if values.size == 1 else f"{values.size} values"


def _attributes(a: Item, b: Item, relaid: bool) -> Iterator[ChangeRow]:
    for field in fields(a.node.op):
        if not field.compare or not hasattr(b.node.op, field.name):
            continue
        before, after = getattr(a.node.op, field.name), getattr(b.node.op, field.name)
        if field.name in STORED and a.node.output.dtype is not b.node.output.dtype:
            continue
        if field.name == "padding" and _pads_alike(a, b):
            continue
        if _alike(before, after) or (relaid and field.name in ("axis", "new_shape", "squeeze_dims", "begin_mask",
                                                               "end_mask")):
            continue
        x, y = _plain(before), _plain(after)
        yield ChangeRow(kind="attribute", what=field.name, before=x, after=y, text=f"{field.name} is {x}, then {y}")


def _pads_alike(a: Item, b: Item) -> bool:
    """True where VALID and SAME are one: from equal extents to equal extents neither adds anything."""
    x, y = a.node.optional(0), b.node.optional(0)
    return x is not None and y is not None and x.shape == y.shape and a.node.output.shape == b.node.output.shape


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= TOLERANCE * abs(a)
    return bool(a == b)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if hasattr(value, "name") and not isinstance(value, str):
        return value.name
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:8].hex()}"
    return value if isinstance(value, bool | int | float | str | None) else \
        [_plain(v) for v in value] if isinstance(value, list | tuple) else str(value)


def _constants(a: Item, b: Item, relaid: bool) -> Iterator[ChangeRow]:
    theirs = dict(b.constants)
    ours = dict(a.constants)
    if a.kind != b.kind:
        return
    skipped = ARGUMENTS.get(a.kind, ()) if relaid else ()
    if len(ours) == len(theirs) == 1 and ours.keys() != theirs.keys():
        theirs = dict(zip(ours, theirs.values(), strict=True))          # an ADD with its inputs the other way round
    for slot in sorted(ours.keys() | theirs.keys()):
        if slot in skipped:
            continue
        what = f"constant '{(ours.get(slot) or theirs[slot]).name}'"
        if slot in ours and slot in theirs:
            yield from constant_changes(what, ours[slot], theirs[slot], is_relaid=relaid,
                                        step=_output_step(b) if slot == BIAS else 0.0)
        elif not _is_neutral(ours.get(slot) or theirs[slot]):
            gone = slot in ours
            yield ChangeRow(kind="constant", what=what, before="there" if gone else None,
                            after=None if gone else "there",
                            text=f"{what} is {'no longer' if gone else 'newly'} among its inputs")


def _output_step(item: Item) -> float:
    quantization = item.node.output.quantization
    return float(quantization.scale.max()) if quantization is not None and quantization.scale.size else 0.0


def _is_neutral(tensor: Tensor) -> bool:
    """A bias of zeros, which some write and some leave out."""
    return tensor.data is not None and not tensor.data.any()


_QUIET = {"float-rounding", "type", "layout", "extent", "rounding", "quantization"}


def _relation(group: Group, row: NodeRow) -> str:
    if not group.left:
        return "added"
    if not group.right:
        return "removed"
    if not group.is_pair:
        if any(map(is_npu, (*group.left, *group.right))):
            return "compiled"
        if len(group.right) == 1:
            return "fused"
        return "split" if len(group.left) == 1 else "rewritten"
    kinds = {change.kind for change in row.changes}
    if is_npu(group.left[0]) != is_npu(group.right[0]):
        return "compiled"
    if "place" in kinds:
        return "moved"
    if kinds - _QUIET:
        return "changed"
    if any(c.kind == "type" and not str(c.before).startswith("float") and str(c.after).startswith("float")
           for c in row.changes):
        return "changed"
    if kinds & {"type", "rounding", "quantization"}:
        return "quantized"
    if "extent" in kinds:
        return "resized"
    return "layout" if kinds - {"float-rounding"} else "same"
