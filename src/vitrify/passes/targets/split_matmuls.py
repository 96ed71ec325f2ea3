"""BATCH_MATMUL in the arrangement that an NPU without a unit for it computes in the least time.

A core that ``matmuls_by_columns`` multiplies all rows of the left factor by one column of the right, number by number,
and adds up each row. Source: command streams of Vela 5.2. Its estimate for an i.MX93, cycles for one product of two
numbers, of [n, k] by [k, 32] in 1, 2, 4 and 8 matrices: n 64, k 32: 1.52, 0.89, 0.73, 0.82; n 196, k 64: 1.15, 0.86,
0.72, 0.71; n 197, k 64: 0.76, 0.68, 0.65, 0.63; n 256, k 32: 1.59, 1.06, 0.80, 0.79; n 256, k 256: 0.76, 0.63, 0.57 and
0.82, where the left factors do not fit into the memory beside the NPU.
"""

from __future__ import annotations

from math import prod

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_MATRICES = 4
"""Beyond these nothing is won: the sums have two rows and two columns of units, which one matrix leaves idle."""
_ROOM = 1 << 18
"""Bytes that the copies of the left factor may take; the fast memory holds more than them."""
_FAST = 3 << 17
"""Bytes of a left factor that would be read from far memory again for each column."""
_FEWEST = 8
"""Columns of a group, and rows of a part."""
_SMALLEST = 1 << 14
"""Products of two numbers; fewer are not worth the copies."""
_ROWS, _DEEP = 197, 206
"""Rows for which the compiler takes larger blocks, from that depth on."""


@fix("split-matmuls", ops.BatchMatMul, cheaper=True,
     says="multiplies by several groups of columns at once, each a matrix of its own",
     wins="the units that sum work on several matrices at a time; one alone leaves most of them idle")
def split(place: Place) -> Tensor | None:
    """As many rows as there is room for, several times; the columns in groups, which then stand side by side again."""
    op, x, y = place.node.op, place.x, place.node.input(1)
    assert isinstance(op, ops.BatchMatMul)
    if not place.limits.get("matmuls_by_columns") or not _is_plain(place):
        return None
    (rows, depth), columns, batch = x.shape[-2:], place.output.shape[-1], prod(x.shape[:-2])
    if op.adj_x or rows * depth * columns < _SMALLEST or (rows, depth) in ((_ROWS, _ROWS), (_ROWS, _DEEP)):
        return None
    groups = max(1, min(_MATRICES // batch, columns // _FEWEST))
    parts = -(-x.size * groups // _ROOM) if x.size > _FAST else 1
    if parts == 1:
        groups = min(groups, max(1, _ROOM // x.size))
    if (parts == 1 and not _pays(place, batch, groups)) or rows // parts < _FEWEST:
        return None
    width, height = -(-columns // groups), -(-rows // place.count(parts))
    left = place.reshape(x, (batch, rows, depth))
    right = _grouped(place, y, batch, groups, width, op.adj_y)
    products = [_product(place, place.cut(left, 1, row, min(height, rows - row)), right, groups)
                for row in range(0, rows, height)]
    return place.reshape(place.concat(products, 1), place.output.shape)


def _pays(place: Place, batch: int, groups: int) -> bool:
    """True when the sums save more cycles than the copies take: 12 or more per row and column, and 1.5 per number."""
    rows, depth = place.x.shape[-2:]
    columns = place.output.shape[-1]
    saved = max(12.0, 0.12 * depth) * (1 / batch - 1 / (batch * groups)) / (1 - 1 / _MATRICES) * rows * columns
    turned = 0 if place.node.op == ops.BatchMatMul(adj_y=True) else depth * columns
    return groups > 1 and saved > 1.5 * (groups * rows * depth + rows * columns + turned)


def _product(place: Place, left: Tensor, right: Tensor, groups: int) -> Tensor:
    """Some rows by all groups of columns, which stand side by side again."""
    batch, rows, depth = left.shape
    columns = place.output.shape[-1]
    width = -(-columns // groups)
    left = place.concat([place.reshape(left, (batch, 1, rows, depth))] * groups, 1)
    product = place.add(place.node.op, [left, right], place.output)
    parts = [place.slice(product, (0, group, 0, 0), (batch, 1, rows, min(width, columns - group * width)))
             for group in range(groups)]
    return place.reshape(place.concat(parts, 3), (batch, rows, columns))


def _is_plain(place: Place) -> bool:
    x, y, output = place.x, place.node.input(1), place.output
    return place.is_static and x.dtype is DType.INT8 and y.dtype is DType.INT8 and output.dtype is DType.INT8 \
        and x.data is None and y.data is None and len(x.shape) > 1 and x.shape[:-2] == y.shape[:-2] \
        and all(t.quantization is not None for t in (x, y, output))


def _grouped(place: Place, y: Tensor, batch: int, groups: int, width: int, by_rows: bool) -> Tensor:
    """The right factor as [batch, groups, ...], the last group filled up with zeros."""
    axis = 1 if by_rows else 2
    whole = place.reshape(y, (batch, *y.shape[-2:]))
    missing = groups * width - whole.shape[axis]
    amounts = [(0, 0)] * 3
    amounts[axis] = (0, missing)
    whole = place.pad(whole, amounts)
    depth = whole.shape[3 - axis]
    if by_rows:
        return place.reshape(whole, (batch, groups, width, depth))
    parts = [place.cut(whole, 2, group * width, width) for group in range(groups)]
    return place.concat([place.reshape(part, (batch, 1, depth, width)) for part in parts], 1)


@fix("deep-matmuls", ops.BatchMatMul, cheaper=True,
     says="fills the rows of a product up with zeros",
     wins="the compiler works on blocks of 22 rows instead of 4: 0.62 cycles for a product of two numbers, not 0.81")
def deep(place: Place) -> Tensor | None:
    """197 rows (a class token and 14 x 14 patches) by as many.

    A quirk of Vela 5.2: of 50, 101, 145, 196, 197, 198, 257 and 290 rows by as many, only 197 gain, by a depth of 206
    and more; all others take 1 % longer for each 1 % that is filled up.
    """
    op, x, y = place.node.op, place.x, place.node.input(1)
    assert isinstance(op, ops.BatchMatMul)
    if not place.limits.get("matmuls_by_columns") or not _is_plain(place) or op.adj_x or prod(x.shape[:-2]) != 1 \
            or x.shape[-2:] != (_ROWS, _ROWS) or place.output.shape[-1] < _FEWEST:
        return None
    missing = _DEEP - _ROWS
    axis = len(y.shape) - (1 if op.adj_y else 2)
    left = place.pad(x, [*[(0, 0)] * (len(x.shape) - 1), (0, missing)])
    amounts = np.zeros((len(y.shape), 2), int)
    amounts[axis, 1] = missing
    return place.add(op, [left, place.pad(y, [(int(a), int(b)) for a, b in amounts])], place.output)

