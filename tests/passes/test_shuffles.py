"""Channel shuffles: no TRANSPOSE, the channels in their order."""

from __future__ import annotations

import numpy as np
import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes import optimize


def shuffle(m: Maker, x: Tensor, groups: int) -> Tensor:
    """As exporters write it, on NCHW."""
    n, c, h, w = x.shape
    return m.reshape(m.transpose(m.reshape(x, n, groups, c // groups, h, w), 0, 2, 1, 3, 4), n, c, h, w)


def kinds(model: Model) -> list[str]:
    return [node.op.kind for node in model.main]


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_shuffle_before_a_convolution(groups: int) -> None:
    m = Maker()
    x = m.nchw_conv(m.input(1, 3, 5, 4), 12)
    model = m.model(m.nchw_conv(shuffle(m, x, groups), 7, 3))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model) == ["CONV_2D", "CONV_2D"]


@pytest.mark.parametrize("how", ["split", "slice", "split_v"])
def test_half_goes_through_a_convolution(how: str) -> None:
    """ShuffleNet: a half is kept, the other computed on, and both are joined and shuffled again."""
    m = Maker()
    x = m.nchw_conv(m.input(1, 3, 5, 4), 8)
    for _ in range(2):
        y = shuffle(m, x, 2)
        if how == "split":
            kept, other = m.outs(ops.Split(num_splits=2), m.const(1, np.int32), y)
        elif how == "split_v":
            kept, other = m.outs(ops.SplitV(num_splits=2), y, m.ints(4, 4), m.const(1, np.int32))
        else:
            kept, other = (m.op(ops.Slice(), y, m.ints(0, i, 0, 0), m.ints(1, 4, 5, 4)) for i in (0, 4))
        x = m.op(ops.Concatenation(axis=1), kept, m.op(ops.Relu(), m.nchw_conv(other, 4, 1)))
    model = m.model(m.nchw_conv(x, 3, 1))
    check_kept(model, optimize, tolerance=1e-5)
    assert kinds(model) == ["CONV_2D", *["CONV_2D", "CONV_2D", "CONCATENATION"] * 2, "CONV_2D"]


def test_shuffle_that_others_read() -> None:
    m = Maker()
    y = shuffle(m, m.nchw_conv(m.input(1, 3, 5, 4), 6), 3)
    model = m.model(m.op(ops.Relu(), y), m.nchw_conv(y, 2, 3), m.op(ops.Exp(), y))
    check_kept(model, optimize, tolerance=1e-5)
    assert "TRANSPOSE" not in kinds(model)


def test_shuffle_of_channels_and_rows_stays() -> None:
    m = Maker()
    x = m.nchw_conv(m.input(1, 3, 4, 4), 6)
    y = m.reshape(m.transpose(m.reshape(x, 1, 6, 2, 2, 4), 0, 2, 1, 3, 4), 1, 6, 4, 4)
    check_kept(m.model(m.nchw_conv(y, 2, 3)), optimize, tolerance=1e-5)
