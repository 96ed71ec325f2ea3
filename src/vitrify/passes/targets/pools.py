"""Windows of pools that are too large for the NPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ops.window import Window
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_HEIGHT = 256


class _Region(NamedTuple):
    """Results that see windows of one size: where the first begins, its size, the step, how many there are."""

    begin: int
    size: int
    step: int
    results: int


@fix("large-pools", ops.AveragePool2D, ops.MaxPool2D, mends=("ethos-u.pool-window", "neutron.pool-padding"),
     says="takes the averages at each border apart, where fewer pixels are seen, each without padding; takes a maximum "
     "along columns first, then along the rows of what is left",
     wins="a padded average beyond 8x8, or a maximum over more than 256 rows or 65536 pixels, that would be left to "
     "the CPU")
def large_pools(place: Place) -> Tensor | None:
    """By operator."""
    return averages(place) if isinstance(place.node.op, ops.AveragePool2D) else _maxima(place)


def averages(place: Place) -> Tensor | None:
    """One pool for each size of window that the padding leaves."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.AveragePool2D)
    if len(x.shape) != 4 or not place.is_static or op.padding is not ops.Padding.SAME:
        return None
    high, wide = (_regions(x.shape[i + 1], window, place.output.shape[i + 1]) for i, window in enumerate(op.windows))
    place.count(len(high) * len(wide))
    return place.concat([place.concat([_average(place, op, row, column) for column in wide], 2) for row in high], 1)


def _regions(extent: int, window: Window, results: int) -> list[_Region]:
    before = window.pads(extent, ops.Padding.SAME)[0]
    spans = [(max(i * window.stride - before, 0), min(i * window.stride - before + window.taps, extent))
             for i in range(results)]
    found = []
    for size, group in groupby(spans, key=lambda span: span[1] - span[0]):
        members = list(group)
        step = members[1][0] - members[0][0] if len(members) > 1 else 1
        if step == 0:           # all see the whole axis
            found += [_Region(begin, size, 1, 1) for begin, _ in members]
        else:
            found.append(_Region(members[0][0], size, step, len(members)))
    return found


def _average(place: Place, op: ops.AveragePool2D, row: _Region, column: _Region) -> Tensor:
    x = place.x
    size = [(r.results - 1) * r.step + r.size for r in (row, column)]
    part = place.slice(x, (0, row.begin, column.begin, 0), (x.shape[0], *size, x.shape[3]))
    pool = replace(op, padding=ops.Padding.VALID, filter_height=row.size, filter_width=column.size,
                   stride_h=row.step, stride_w=column.step)
    return place.add(pool, [part], place.output)


def _maxima(place: Place) -> Tensor | None:
    """Rows, then columns; a window beyond 256 rows only where it covers them all."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.MaxPool2D)
    if len(x.shape) != 4 or not place.is_static:
        return None
    amounts = [window.pads(x.shape[i + 1], op.padding) for i, window in enumerate(op.windows)]
    x = lowest_around(place, x, amounts)
    plain = replace(op, padding=ops.Padding.VALID, fused_activation_function=ops.Activation.NONE)
    across = place.add(replace(plain, filter_height=1, stride_h=1), [x], place.output)
    whole = replace(plain, filter_width=1, stride_w=1, fused_activation_function=op.fused_activation_function)
    if op.filter_height <= _HEIGHT:
        return place.add(whole, [across], place.output)
    if place.output.shape[1] != 1:
        return None
    rows = op.filter_height
    parts = [place.add(replace(plain, filter_height=min(_HEIGHT, rows - begin), filter_width=1, stride_h=1, stride_w=1),
                       [place.cut(across, 1, begin, min(_HEIGHT, rows - begin))], place.output)
             for begin in range(0, place.count(-(-rows // _HEIGHT)) * _HEIGHT, _HEIGHT)]
    joined = place.concat(parts, 1)
    return place.add(replace(whole, filter_height=len(parts), stride_h=1), [joined], place.output)


def lowest_around(place: Place, x: Tensor, amounts: list[tuple[int, int]]) -> Tensor:
    """The smallest step around ``x``, which no maximum sees."""
    if not any(map(any, amounts)):
        return x
    kind = x.dtype.numpy
    assert kind is not None
    lowest = place.constant(np.array([np.iinfo(kind).min], kind), x.quantization, "lowest")
    table = place.constant(np.array([(0, 0), *amounts, (0, 0)], np.int32), what="padding")
    return place.add(ops.PadV2(), [x, table, lowest])
