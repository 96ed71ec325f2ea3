"""Rows that nobody reads are not computed; each that is read is computed as before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes.base import Runner
from vitrify.passes.cleanup.needed_rows import NeededRows

ROWS, CHANNELS = 12, 8


def rows(m: Maker, x: Tensor, begin: int = 0, size: int = 1) -> Tensor:
    sizes = [*x.shape[:-2], size, x.shape[-1]]
    return m.op(ops.Slice(), x, m.ints(*[0] * (len(x.shape) - 2), begin, 0), m.ints(*sizes))


def dense(m: Maker, x: Tensor, channels: int = CHANNELS) -> Tensor:
    return m.op(ops.FullyConnected(keep_num_dims=True), x, m.weights(channels, x.shape[-1]), m.weights(channels))


def norm(m: Maker, x: Tensor) -> Tensor:
    last = m.ints(2)
    centred = m.op(ops.Sub(), x, m.op(ops.Mean(keep_dims=True), x, last))
    variance = m.op(ops.Mean(keep_dims=True), m.op(ops.Mul(), centred, centred), last)
    scale = m.op(ops.Rsqrt(), m.op(ops.Add(), variance, m.const(1e-3)))
    return m.op(ops.Add(), m.op(ops.Mul(), m.op(ops.Mul(), centred, scale), m.weights(CHANNELS)), m.weights(CHANNELS))


def attention(m: Maker, x: Tensor) -> Tensor:
    parts = m.outs(ops.Split(num_splits=6), m.ints(2), dense(m, x, 24))
    heads = [m.op(ops.BatchMatMul(), m.op(ops.Softmax(beta=1.0), m.op(ops.BatchMatMul(adj_y=True), q, k)), v)
             for q, k, v in zip(parts[:2], parts[2:4], parts[4:], strict=True)]
    return dense(m, m.op(ops.Concatenation(axis=2), *heads))


def block(m: Maker, x: Tensor) -> Tensor:
    x = m.op(ops.Add(), x, attention(m, norm(m, x)))
    return m.op(ops.Add(), x, dense(m, m.op(ops.Gelu(), dense(m, norm(m, x), 16))))


def classifier(last: Callable[[Maker, Tensor], Tensor] = rows) -> Model:
    m = Maker()
    return m.model(dense(m, last(m, norm(m, block(m, m.input(1, ROWS, CHANNELS)))), 5))


def positions() -> Model:
    """A constant of one value for each row is cut too."""
    m = Maker()
    x = m.op(ops.Add(), dense(m, m.input(1, ROWS, CHANNELS)), m.weights(ROWS, CHANNELS))
    return m.model(rows(m, x, begin=3, size=2))


def twice() -> Model:
    """Two slices of the same rows."""
    m = Maker()
    x = dense(m, m.input(1, ROWS, CHANNELS))
    return m.model(m.op(ops.Add(), dense(m, rows(m, x)), m.op(ops.Tanh(), rows(m, x))))


def two_tokens(m: Maker, x: Tensor) -> Tensor:
    """A class token and a distilled one, each with a head."""
    return m.op(ops.Add(), dense(m, rows(m, x)), dense(m, rows(m, x, begin=1)))


def extents(model: Model, *kinds: type) -> list[int]:
    return [node.output.shape[-2] for node in model.main.nodes_of(*kinds)]


def test_the_last_block_of_a_classifier_computes_one_token() -> None:
    model = classifier()
    check_kept(model, lambda model: Runner(model).run((NeededRows,), rounds=1))
    assert extents(model, ops.FullyConnected) == [ROWS, 1, 1, 1, 1]
    assert extents(model, ops.BatchMatMul) == [1] * 4
    assert extents(model, ops.Gelu) == [1]


def test_two_tokens_are_computed_together() -> None:
    model = classifier(two_tokens)
    check_kept(model, lambda model: Runner(model).run((NeededRows,), rounds=1))
    assert extents(model, ops.FullyConnected) == [ROWS, 2, 2, 2, 1, 1, 1]
    assert extents(model, ops.BatchMatMul) == [2] * 4


@pytest.mark.parametrize(("build", "wanted"), [
    (positions, ["SLICE", "FULLY_CONNECTED", "ADD"]),
    (twice, ["SLICE", "FULLY_CONNECTED", "FULLY_CONNECTED", "TANH", "ADD"])], ids=["positions", "twice"])
def test_form(build: Callable[[], Model], wanted: list[str]) -> None:
    model = build()
    check_kept(model, lambda model: Runner(model).run((NeededRows,), rounds=1))
    assert kinds(model) == wanted


def far_rows() -> Model:
    m = Maker()
    x = dense(m, m.input(1, ROWS, CHANNELS))
    return m.model(m.op(ops.Add(), rows(m, x), rows(m, x, begin=ROWS - 1)))


def read_whole() -> Model:
    m = Maker()
    x = dense(m, m.input(1, ROWS, CHANNELS))
    return m.model(rows(m, x), m.op(ops.Tanh(), x))


def given_out() -> Model:
    m = Maker()
    x = dense(m, m.input(1, ROWS, CHANNELS))
    return m.model(rows(m, x), x)


def most_rows() -> Model:
    m = Maker()
    return m.model(rows(m, dense(m, m.input(1, ROWS, CHANNELS)), size=ROWS - 1))


def across_rows() -> Model:
    m = Maker()
    x = m.op(ops.Mean(keep_dims=True), m.input(1, ROWS, CHANNELS, 3), m.ints(3))
    return m.model(m.op(ops.Slice(), m.op(ops.Softmax(beta=1.0), m.op(ops.Reshape(new_shape=(1, CHANNELS, ROWS)), x,
                                                                     m.ints(1, CHANNELS, ROWS))),
                        m.ints(0, 0, 0), m.ints(1, CHANNELS, 2)))


@pytest.mark.parametrize("build", [far_rows, read_whole, given_out, most_rows, across_rows])
def test_what_others_read_stays(build: Callable[[], Model]) -> None:
    model = build()
    before = kinds(model)
    assert Runner(model).run((NeededRows,), rounds=1) == 0
    assert kinds(model) == before
