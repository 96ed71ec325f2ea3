"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Iterator

from npusim_cases.pen import Case, Draw, Pen, both, table
from vitrify import ops
from vitrify.ir import DType, Tensor

Shape = tuple[int, ...]


def mean(shape: Shape, axes: tuple[int, ...], keep: bool = True, scale: float | None = None) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape)
        op = ops.Mean(keep_dims=keep)
        if scale is None:
            return pen.op(op, [x, pen.ints(*axes)], like=x)
        return pen.op(op, [x, pen.ints(*axes)], scale / 166 if pen.wide else scale)
    return draw


def total(shape: Shape, axes: tuple[int, ...], scale: float = 0.3, keep: bool = True) -> Draw:
    return lambda pen: pen.op(ops.Sum(keep_dims=keep), [pen.x(*shape), pen.ints(*axes)], scale)


def halves(pen: Pen) -> Tensor:
    """Scales that are powers of two: a quarter of the sums lie between two steps."""
    x = pen.x(1, 6, 5, 20, scale=0.0625, zero=0)
    return pen.op(ops.Sum(keep_dims=True), [x, pen.ints(3)], 0.25, 0)


def extreme(kind: type[ops.Operator], shape: Shape, axes: tuple[int, ...], keep: bool = True) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape)
        return pen.op(kind(keep_dims=keep), [x, pen.ints(*axes)], like=x)
    return draw


def place(shape: Shape, wide: bool = False) -> Draw:
    def draw(pen: Pen) -> Tensor:
        kind = DType.INT64 if wide else DType.INT32
        return pen.op(ops.ArgMax(output_type=4 if wide else 2), [pen.x(*shape), pen.table(len(shape) - 1)], dtype=kind)
    return draw


@table
def means() -> Iterator[Case]:
    """MEAN."""
    cases = {"h, w": mean((1, 9, 7, 12), (1, 2)), "h, w without dims": mean((1, 9, 7, 12), (1, 2), keep=False),
             "h": mean((1, 9, 7, 12), (1,)), "w": mean((1, 9, 7, 12), (2,)),
             "h, w finer": mean((1, 9, 7, 12), (1, 2), scale=0.01),
             "h, w coarser": mean((1, 9, 7, 12), (1, 2), scale=0.2),
             "large": mean((1, 40, 33, 5), (1, 2)), "largest window": mean((1, 64, 64, 4), (1, 2)),
             "more than a window": mean((1, 70, 70, 3), (1, 2)), "depth of one row": mean((1, 1, 8, 12), (3,)),
             "rank 3": mean((1, 9, 14), (1,)), "depth": mean((1, 1, 1, 30), (3,)),
             "nothing": mean((1, 1, 1, 12), (1, 2))}
    for name, draw in cases.items():
        yield from both("MEAN", name, draw)


@table
def totals() -> Iterator[Case]:
    """SUM, and extremes with their places."""
    for name, draw in {"depth": total((1, 6, 5, 20), (3,)), "h": total((1, 6, 5, 20), (1,)),
                       "w": total((1, 6, 5, 20), (2,)), "fine": total((1, 6, 5, 20), (3,), 0.05),
                       "rank 2": total((7, 20), (1,)), "without dims": total((1, 6, 5, 20), (3,), keep=False),
                       "two axes": total((1, 6, 5, 20), (1, 2)), "halves": halves}.items():
        yield Case("SUM", name, draw)
    for operator, kind in (("REDUCE_MAX", ops.ReduceMax), ("REDUCE_MIN", ops.ReduceMin)):
        for name, shape, axes in (("depth", (1, 6, 5, 20), (3,)), ("h", (1, 6, 5, 20), (1,)),
                                  ("w", (1, 6, 5, 20), (2,)), ("h, w", (1, 6, 5, 20), (1, 2)),
                                  ("rank 2", (7, 20), (1,)), ("rank 3", (3, 7, 20), (1,)),
                                  ("all", (1, 6, 5, 9), (1, 2, 3))):
            yield from both(operator, name, extreme(kind, shape, axes))
        yield Case(operator, "without dims", extreme(kind, (1, 6, 5, 20), (3,), keep=False))
    for name, shape in {"image": (1, 6, 5, 20), "row": (1, 20), "rows": (7, 11), "largest": (1, 3, 3, 127)}.items():
        yield Case("ARG_MAX", name, place(shape))
    yield Case("ARG_MAX", "64 bits", place((1, 6, 5, 20), wide=True))
