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
