"""Inputs and outputs of two models side by side."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import Tensor
from vitrify.matching import Matching
from vitrify.matching.items import is_free
from vitrify.pipeline.diffing.compiled import DRAWN
from vitrify.pipeline.diffing.nodes import scale_changes
from vitrify.results import TensorRow
from vitrify.results.diffing import ChangeRow, DiffSide, EndRow
from vitrify.verify.alignment import layouts


def end_rows(matching: Matching, a: DiffSide, b: DiffSide) -> tuple[list[EndRow], list[EndRow]]:
    """Return the rows of inputs and of outputs."""
    left, right = matching.left.graph, matching.right.graph
    return (_rows("in", matching.inputs, (left.inputs, right.inputs), (a.inputs, b.inputs)),
            _rows("out", matching.outputs, (left.outputs, right.outputs), (a.outputs, b.outputs)))


def _rows(side: str, pairs: list[tuple[int, int]], tensors: tuple[list[Tensor] | tuple[Tensor, ...], ...],
          rows: tuple[list[TensorRow], list[TensorRow]]) -> list[EndRow]:
    found = []
    for i, j in pairs:
        row = EndRow(side=side, a=rows[0][i], b=rows[1][j])
        row.changes = list(_changes(rows[0][i], rows[1][j], tensors[0][i], tensors[1][j]))
        found.append(row)
    found += [EndRow(side=side, a=row) for i, row in enumerate(rows[0]) if i not in {p for p, _ in pairs}]
    found += [EndRow(side=side, b=row) for j, row in enumerate(rows[1]) if j not in {q for _, q in pairs}]
    return found


def _changes(a: TensorRow, b: TensorRow, x: Tensor, y: Tensor) -> Iterator[ChangeRow]:
    if a.name != b.name:
        yield ChangeRow(kind="name", before=a.name, after=b.name, text=f"'{a.name}' is called '{b.name}'")
    if DRAWN in x.extras or DRAWN in y.extras:
        return
    if a.dtype != b.dtype:
        yield ChangeRow(kind="type", before=a.dtype, after=b.dtype, text=f"{a.dtype}, then {b.dtype}")
    before, after = _shape(a, x), _shape(b, y)
    if before != after:
        kind = "layout" if _is_relaid(a, b) else "shape"
        yield ChangeRow(kind=kind, before=before, after=after, text=f"{before}, then {after}")
    if x.dtype is y.dtype:
        yield from scale_changes(x, y)


def _shape(row: TensorRow, tensor: Tensor) -> list[int | str]:
    """The shape, with -1 for extents that are left to the run."""
    return list(tensor.shape_signature) if is_free(tensor) else row.shape


def _is_relaid(a: TensorRow, b: TensorRow) -> bool:
    before, after = ([d for d in row.shape if isinstance(d, int)] for row in (a, b))
    return len(before) == len(a.shape) and len(after) == len(b.shape) and bool(layouts(before, after))
