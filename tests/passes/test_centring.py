"""Layer normalization as TensorFlow writes it: the mean taken out first, gamma and beta in the weights behind."""

from __future__ import annotations

import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes import optimize


def layer_norm(m: Maker, x: Tensor, *, turned: bool = False) -> Tensor:
    mean = m.op(ops.Mean(keep_dims=True), x, m.ints(2))
    squares = m.op(ops.SquaredDifference(), x, mean)
    variance = m.op(ops.Add(), m.op(ops.Mean(keep_dims=True), squares, m.ints(2)), m.const(1e-3))
    root = m.op(ops.Rsqrt(), variance)
    scale = m.op(ops.Mul(), *((m.weights(8), root) if turned else (root, m.weights(8))))
    scaled = m.op(ops.Mul(), *((scale, x) if turned else (x, scale)))
    shift = m.op(ops.Sub(), m.weights(8), m.op(ops.Mul(), *((scale, mean) if turned else (mean, scale))))
    return m.op(ops.Add(), *((shift, scaled) if turned else (scaled, shift)))


LAYER = ["MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL"]


@pytest.mark.parametrize("turned", [False, True])
def test_layer_norm(turned: bool) -> None:
    m = Maker()
    model = m.model(layer_norm(m, m.input(1, 6, 8), turned=turned))
    check_kept(model, optimize)
    assert kinds(model) == [*LAYER, "MUL", "ADD"]


def test_layer_norm_before_weights() -> None:
    m = Maker()
    y = layer_norm(m, m.input(1, 6, 8))
    model = m.model(m.op(ops.FullyConnected(), y, m.weights(4, 8), m.weights(4)))
    check_kept(model, optimize)
    assert kinds(model) == [*LAYER, "FULLY_CONNECTED"]


def test_mean_of_another_stays() -> None:
    m = Maker()
    x, other = m.input(1, 6, 8), m.input(1, 6, 8, name="other")
    mean = m.op(ops.Mean(keep_dims=True), other, m.ints(2))
    scale = m.op(ops.Exp(), mean)
    shift = m.op(ops.Sub(), m.weights(8), m.op(ops.Mul(), mean, scale))
    model = m.model(m.op(ops.Add(), m.op(ops.Mul(), x, scale), shift))
    check_kept(model, optimize)
    assert sorted(kinds(model)) == ["ADD", "EXP", "MEAN", "MUL", "MUL", "SUB"]


def test_squared_difference_alone_stays() -> None:
    m = Maker()
    x = m.input(1, 6, 8)
    model = m.model(m.op(ops.SquaredDifference(), x, m.op(ops.Mean(keep_dims=True), x, m.ints(2))))
    check_kept(model, optimize)
    assert kinds(model) == ["MEAN", "SQUARED_DIFFERENCE"]
