"""Fixes of what only moves values: exact, and wholly on the NPU afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from quantized_maker import Maker, check_fix

from vitrify import ops
from vitrify.ir import DType, Model


def depth_to_space(block: int, *shape: int, dtype: DType = DType.INT8) -> Model:
    m = Maker(dtype)
    return m.model(m.op(ops.DepthToSpace(block_size=block), m.input(*shape)))


def space_to_depth(block: int, *shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.SpaceToDepth(block_size=block), m.input(*shape)))


def reverse(axes: tuple[int, ...], *shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.ReverseV2(), m.input(*shape), m.ints(*axes)))


CASES: dict[str, tuple[str, Callable[[], Model]]] = {
    "depth_to_space_2": ("depth-to-space", lambda: depth_to_space(2, 1, 5, 6, 12)),
    "depth_to_space_3": ("depth-to-space", lambda: depth_to_space(3, 1, 7, 4, 9)),
    "depth_to_space_uint8": ("depth-to-space", lambda: depth_to_space(2, 1, 4, 4, 8, dtype=DType.UINT8)),
    "depth_to_space_one_row": ("depth-to-space", lambda: depth_to_space(2, 1, 1, 6, 8)),
    "space_to_depth_2": ("space-to-depth", lambda: space_to_depth(2, 1, 8, 6, 3)),
    "space_to_depth_4": ("space-to-depth", lambda: space_to_depth(4, 1, 8, 12, 2)),
    "reverse_time": ("reversals", lambda: reverse((0,), 9, 1, 16)),
    "reverse_two_axes": ("reversals", lambda: reverse((1, 2), 1, 4, 5, 6)),
    "reverse_channels": ("reversals", lambda: reverse((-1,), 1, 3, 4, 8)),
    "reverse_many_channels": ("reversals", lambda: reverse((2,), 1, 6, 200)),
}


@pytest.mark.parametrize("name", CASES)
def test_moves_keep_every_value(name: str, tmp_path: Path) -> None:
    fix, build = CASES[name]
    check_fix(build, fix, tmp_path)


def gather(indices: list[int], axis: int, *shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.Gather(axis=axis), m.input(*shape), m.ints(*indices)))


def strided(begin: tuple[int, ...], end: tuple[int, ...], steps: tuple[int, ...], *shape: int, shrink: int = 0,
            masks: int = 0) -> Model:
    m = Maker()
    op = ops.StridedSlice(shrink_axis_mask=shrink, end_mask=masks, begin_mask=masks)
    return m.model(m.op(op, m.input(*shape), m.ints(*begin), m.ints(*end), m.ints(*steps)))


def transpose(perm: tuple[int, ...], *shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.Transpose(), m.input(*shape), m.ints(*perm)))


def nearest(shape: tuple[int, ...], size: tuple[int, int], corners: bool = False, centres: bool = False) -> Model:
    m = Maker()
    op = ops.ResizeNearestNeighbor(align_corners=corners, half_pixel_centers=centres)
    return m.model(m.op(op, m.input(*shape), m.ints(*size)))


def same_size() -> Model:
    m = Maker()
    x = m.op(ops.Relu(), m.input(1, 6, 6, 4))
    return m.model(m.op(ops.Relu(), m.op(ops.ResizeBilinear(half_pixel_centers=True), x, m.ints(6, 6))))


CASES |= {
    "gather_runs": ("gathers", lambda: gather([3, 4, 5, 0, 1, 7], 1, 1, 9, 4)),
    "gather_one": ("gathers", lambda: gather([2], 2, 1, 4, 5)),
    "gather_steps": ("gathers", lambda: gather([1, 3, 5, 7], 3, 1, 3, 3, 9)),
    "gather_again": ("gathers", lambda: gather([1, 1, 0, 1], -1, 2, 3)),
    "slice_channels": ("slices", lambda: strided((0, 0, 0, 1), (1, 4, 4, 8), (1, 1, 1, 3), 1, 4, 4, 8)),
    "slice_backwards": ("slices", lambda: strided((0, 9, 0), (1, 0, 3), (1, -2, 1), 1, 10, 3)),
    "slice_batch_shrink": ("slices", lambda: strided((0, 0, 2, 0), (4, 3, 3, 6), (2, 1, 1, 1), 4, 3, 5, 6, shrink=4)),
    "slice_masked": ("slices", lambda: strided((0, 0, 0), (0, 0, 0), (1, 1, 2), 1, 5, 7, masks=7)),
    "transpose_large": ("transposes", lambda: transpose((2, 1, 0), 66000, 2, 2)),
    "transpose_long": ("transposes", lambda: transpose((0, 2, 1), 1, 70000, 3)),
    "transpose_outer": ("transposes", lambda: transpose((3, 1, 0, 2), 3, 400, 5, 300)),
    "transpose_six_axes": ("transposes", lambda: transpose((0, 1, 3, 2, 4, 5), 1, 4, 7, 4, 7, 8)),
    "nearest_batch": ("batches", lambda: nearest((3, 4, 5, 2), (8, 10))),
    "nearest_3": ("resizes", lambda: nearest((1, 4, 5, 3), (12, 15))),
    "nearest_16": ("resizes", lambda: nearest((1, 2, 3, 8), (32, 48), centres=True)),
    "nearest_2_by_4": ("resizes", lambda: nearest((1, 4, 5, 3), (8, 20))),
    "nearest_uneven": ("resizes", lambda: nearest((1, 3, 3, 16), (5, 5))),
    "nearest_corners": ("resizes", lambda: nearest((1, 4, 4, 3), (9, 7), corners=True)),
    "nearest_smaller": ("resizes", lambda: nearest((1, 9, 9, 3), (4, 3))),
    "bilinear_same_size": ("resizes", same_size),
}
