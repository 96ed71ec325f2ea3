"""Stretches between reshapes that compute on the unreshaped tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes import Runner, optimize
from vitrify.passes.reshaping.fewer_reshapes import FewerReshapes


def dense(m: Maker, x: Tensor, channels: int) -> Tensor:
    """Rows as an importer writes them: flattened, multiplied, put back."""
    rows = m.reshape(x, x.size // x.shape[-1], x.shape[-1])
    y = m.op(ops.FullyConnected(), rows, m.weights(channels, x.shape[-1]), m.weights(channels))
    return m.reshape(y, *x.shape[:-1], channels)


def norm(m: Maker, x: Tensor, *axes: int) -> Tensor:
    mean = m.op(ops.Mean(keep_dims=True), x, m.ints(*axes))
    centred = m.op(ops.Sub(), x, mean)
    variance = m.op(ops.Mean(keep_dims=True), m.op(ops.Mul(), centred, centred), m.ints(*axes))
    return m.op(ops.Mul(), centred, m.op(ops.Rsqrt(), m.op(ops.Add(), variance, m.const(1e-5))))


def mlp(m: Maker) -> Model:
    x = m.input(1, 7, 8)
    y = m.op(ops.Gelu(), dense(m, norm(m, m.op(ops.Neg(), x), 2), 12))
    return m.model(m.op(ops.Add(), x, dense(m, y, 8)))


def norm_of_everything(m: Maker) -> Model:
    """A group norm of one group, as reshapes around a norm over one axis."""
    x = m.op(ops.Neg(), m.input(2, 3, 4, 5))
    y = m.reshape(norm(m, m.reshape(x, 2, 60, 1), 1), 2, 3, 4, 5)
    return m.model(m.op(ops.Mul(), y, m.weights(5)))


def softmax_rows(m: Maker) -> Model:
    x = m.op(ops.Neg(), m.input(2, 3, 5))
    return m.model(m.op(ops.Abs(), m.reshape(m.op(ops.Softmax(beta=1.0), m.reshape(x, 6, 5)), 2, 3, 5)))


def joined_rows_with_constant(m: Maker) -> Model:
    """A constant that differs along joined axes follows them apart."""
    x = m.op(ops.Neg(), m.input(2, 3, 5))
    y = m.op(ops.Add(), m.reshape(x, 6, 5), m.weights(6, 1))
    return m.model(m.op(ops.Abs(), m.reshape(y, 2, 3, 5)))


CASES: dict[str, tuple[Callable[[Maker], Model], int]] = {
    "mlp": (mlp, 0), "norm of everything": (norm_of_everything, 0), "softmax": (softmax_rows, 0),
    "constant": (joined_rows_with_constant, 0)}


@pytest.mark.parametrize("case", CASES)
def test_reshapes_left(case: str) -> None:
    build, left = CASES[case]
    model = build(Maker())
    check_kept(model, lambda m: Runner(m).run((FewerReshapes,)), tolerance=1e-5)
    assert sum(isinstance(node.op, ops.Reshape) for node in model.main) == left


def test_classifier_keeps_its_reshape() -> None:
    m = Maker()
    x = m.op(ops.FullyConnected(), m.reshape(m.op(ops.Neg(), m.input(1, 1, 1, 8)), 1, 8), m.weights(5, 8))
    model = m.model(x)
    assert Runner(model).run((FewerReshapes,)) == 0


def test_reader_outside_gets_its_shape() -> None:
    m = Maker()
    x = m.op(ops.Neg(), m.input(2, 3, 5))
    rows = m.op(ops.Exp(), m.op(ops.Abs(), m.reshape(x, 6, 5)))
    one, other = m.reshape(rows, 2, 3, 5), m.reshape(m.op(ops.Neg(), rows), 2, 3, 5)
    model = m.model(one, other, m.op(ops.Cumsum(), rows, m.const(0, np.int32)))
    check_kept(model, optimize, tolerance=1e-5)
    assert sum(isinstance(node.op, ops.Reshape) for node in model.main) == 1
