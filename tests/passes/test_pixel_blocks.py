"""Pixels to channels and back: one operator, its order of channels in the weights beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes import optimize


def moved(m: Maker, x: Tensor, split: Sequence[int], perm: Sequence[int], result: Sequence[int]) -> Tensor:
    return m.reshape(m.transpose(m.reshape(x, *split), *perm), *result)


NCHW = {
    "shuffle": ((1, 3, 2, 2, 5, 7), (0, 1, 4, 2, 5, 3), (1, 3, 10, 14)),
    "shuffle, block first": ((1, 2, 2, 3, 5, 7), (0, 3, 4, 1, 5, 2), (1, 3, 10, 14)),
    "shuffle without a batch": ((3, 2, 2, 5, 7), (0, 3, 1, 4, 2), (1, 3, 10, 14)),
}


@pytest.mark.parametrize("name", NCHW)
def test_pixel_shuffle_after_a_convolution(name: str) -> None:
    m = Maker()
    y = m.op(ops.Relu(), m.nchw_conv(m.input(1, 3, 5, 7), 12))
    model = m.model(moved(m, y, *NCHW[name]))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model) == ["CONV_2D", "DEPTH_TO_SPACE"]


UNSHUFFLES = {
    "channel first": ((1, 2, 3, 2, 4, 2), (0, 1, 3, 5, 2, 4), (1, 8, 3, 4)),
    "block first": ((1, 2, 3, 2, 4, 2), (0, 3, 5, 1, 2, 4), (1, 8, 3, 4)),
}


@pytest.mark.parametrize("name", UNSHUFFLES)
def test_pixel_unshuffle_before_a_convolution(name: str) -> None:
    m = Maker()
    x = m.nchw_conv(m.input(1, 3, 6, 8), 2)
    model = m.model(m.nchw_conv(moved(m, x, *UNSHUFFLES[name]), 5))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model) == ["CONV_2D", "SPACE_TO_DEPTH", "CONV_2D"]


NHWC = {
    "shuffle": ((1, 4, 6, 8), (1, 4, 6, 2, 2, 2), (0, 1, 3, 2, 4, 5), (1, 8, 12, 2), "DEPTH_TO_SPACE"),
    "unshuffle": ((1, 4, 6, 3), (1, 2, 2, 3, 2, 3), (0, 1, 3, 2, 4, 5), (1, 2, 3, 12), "SPACE_TO_DEPTH"),
}


@pytest.mark.parametrize("name", NHWC)
def test_channels_last(name: str) -> None:
    shape, split, perm, result, kind = NHWC[name]
    m = Maker()
    model = m.model(moved(m, m.input(*shape), split, perm, result))
    check_kept(model, optimize)
    assert kinds(model) == [kind]


OTHERS = {
    "rows and columns turned": ((1, 3, 2, 2, 4, 4), (0, 1, 5, 2, 4, 3), (1, 3, 8, 8)),
    "columns within rows": ((1, 3, 2, 2, 4, 4), (0, 1, 4, 3, 5, 2), (1, 3, 8, 8)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_block_stays(name: str) -> None:
    m = Maker()
    model = m.model(moved(m, m.input(1, 12, 4, 4), *OTHERS[name]))
    check_kept(model, optimize)
    assert "DEPTH_TO_SPACE" not in kinds(model)


def test_shuffle_that_a_second_reader_sees_unshuffled() -> None:
    m = Maker()
    y = m.nchw_conv(m.input(1, 3, 5, 7), 12)
    model = m.model(moved(m, y, *NCHW["shuffle"]), m.op(ops.Exp(), y))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model).count("DEPTH_TO_SPACE") == 1


def taken(m: Maker, x: Tensor, row: int, column: int, *, first: bool, at_once: bool) -> Tensor:
    rank, axes = 4, (2, 3) if first else (1, 2)

    def slice_(t: Tensor, begins: dict[int, int]) -> Tensor:
        begin = [begins.get(i, 0) for i in range(rank)]
        step = [2 if i in begins else 1 for i in range(rank)]
        return m.op(ops.StridedSlice(), t, m.ints(*begin), m.ints(*t.shape), m.ints(*step))

    places = dict(zip(axes, (row, column), strict=True))
    return slice_(x, places) if at_once else slice_(slice_(x, {axes[0]: row}), {axes[1]: column})


ROWS_FIRST = [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("order", [ROWS_FIRST, sorted(ROWS_FIRST), ROWS_FIRST[::-1]])
def test_focus_stem(order: list[tuple[int, int]], at_once: bool) -> None:
    m = Maker()
    x = m.input(1, 3, 8, 6)
    parts = [taken(m, x, *place, first=True, at_once=at_once) for place in order]
    model = m.model(m.nchw_conv(m.op(ops.Concatenation(axis=1), *parts), 4))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model) == ["SPACE_TO_DEPTH", "CONV_2D"]


def test_focus_stem_with_channels_last() -> None:
    m = Maker()
    x = m.input(1, 8, 6, 3)
    parts = [taken(m, x, *place, first=False, at_once=True) for place in ROWS_FIRST]
    model = m.model(m.conv(m.op(ops.Concatenation(axis=3), *parts), 4))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model) == ["SPACE_TO_DEPTH", "CONV_2D"]


NO_STEMS = {
    "a place twice": [(0, 0), (1, 0), (0, 0), (1, 1)],
    "an order that nobody takes over": ROWS_FIRST,
}


@pytest.mark.parametrize("name", NO_STEMS)
def test_what_is_no_focus_stem(name: str) -> None:
    m = Maker()
    x = m.input(1, 3, 8, 6)
    y = m.op(ops.Concatenation(axis=1), *(taken(m, x, *p, first=True, at_once=True) for p in NO_STEMS[name]))
    model = m.model(m.op(ops.Exp(), y) if "order" in name else m.nchw_conv(y, 4))
    check_kept(model, optimize, tolerance=1e-5)
    assert "SPACE_TO_DEPTH" not in kinds(model)
