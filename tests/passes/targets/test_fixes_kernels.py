"""Fixes of dilated and grouped convolutions: exact, and fewer cycles by the compiler's estimate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from quantized_maker import Maker, check_fix

from vitrify import ops
from vitrify.backends.vela import check_model
from vitrify.ir import DType, Model
from vitrify.targets import base as targets

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID
Pair = tuple[int, int]


def conv(shape: tuple[int, ...], kernel: Pair, dilation: Pair = (1, 1), padding: ops.Padding = SAME, outputs: int = 8,
         groups: int = 1, dtype: DType = DType.INT8) -> Model:
    m = Maker(dtype)
    x = m.input(*shape)
    op = ops.Conv2D(padding=padding, stride_h=1, stride_w=1, dilation_h_factor=dilation[0],
                    dilation_w_factor=dilation[1])
    return m.model(m.op(op, x, *m.weights(outputs, *kernel, shape[3] // groups, x=x), scale=0.04))


CASES: dict[str, tuple[str, float, Callable[[], Model]]] = {
    "dilation_16": ("dilated-phases", 0.4, lambda: conv((1, 56, 56, 32), (3, 3), (16, 16), outputs=32)),
    "dilation_12_uneven": ("dilated-phases", 0.7, lambda: conv((1, 33, 35, 24), (3, 3), (12, 12))),
    "dilation_of_time": ("dilated-phases", 0.4, lambda: conv((1, 1, 512, 64), (1, 3), (1, 32), VALID, outputs=64)),
    "dilation_even_kernel": ("dilated-phases", 1.0, lambda: conv((1, 50, 61, 32), (4, 2), (15, 19))),
    "dilation_of_rows": ("dilated-phases", 1.0, lambda: conv((1, 80, 30, 64), (3, 3), (27, 1))),
    "dilation_int16": ("dilated-phases", 0.4, lambda: conv((1, 40, 40, 16), (3, 3), (9, 9), dtype=DType.INT16)),
    "dilation_beyond": ("dilated-taps", 0.1, lambda: conv((1, 20, 20, 96), (3, 3), (24, 24), outputs=32)),
    "dilation_beyond_some": ("dilated-taps", 0.6, lambda: conv((1, 20, 30, 16), (5, 7), (12, 12))),
    "dilation_beyond_rows": ("dilated-taps", 0.6, lambda: conv((1, 8, 40, 16), (3, 3), (8, 2))),
    "groups_of_4": ("narrow-groups", 0.3, lambda: conv((1, 28, 28, 64), (3, 3), outputs=64, groups=16)),
    "groups_of_2": ("narrow-groups", 0.3, lambda: conv((1, 14, 14, 48), (3, 3), outputs=48, groups=24)),
    "groups_of_3": ("narrow-groups", 0.7, lambda: conv((1, 14, 14, 48), (1, 5), outputs=32, groups=16)),
    "groups_of_4_to_6": ("narrow-groups", 0.5, lambda: conv((1, 14, 15, 32), (3, 3), padding=VALID, outputs=48,
                                                            groups=8)),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_keep_every_value(name: str, tmp_path: Path) -> None:
    fix, _, build = CASES[name]
    check_fix(build, fix, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_compiler_needs_fewer_cycles(name: str, tmp_path: Path) -> None:
    fix, most, build = CASES[name]
    check_fix(build, fix, tmp_path)
    before, after = (check_model(tmp_path / f"{which}.tflite", targets.load("imx93")) for which in ("before", "after"))
    assert after.placement.count("cpu") == 0
    assert after.estimate.npu_cycles <= most * before.estimate.npu_cycles
