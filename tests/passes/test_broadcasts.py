"""Repetitions before operators that broadcast."""

from __future__ import annotations

import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import optimize


def kinds(model: Model) -> list[str]:
    return [node.op.kind for node in model.main]


@pytest.mark.parametrize("op", [ops.Add(), ops.Sub(), ops.Mul(), ops.Maximum()], ids=lambda op: op.kind)
@pytest.mark.parametrize("how", ["broadcast", "tile"])
def test_reader_repeats_by_itself(op: ops.Add, how: str) -> None:
    m = Maker()
    x, y = m.input(1, 3, 1), m.input(2, 3, 4, name="y")
    wide = m.op(ops.BroadcastTo(), x, m.ints(2, 3, 4)) if how == "broadcast" else m.op(ops.Tile(), x, m.ints(2, 1, 4))
    model = m.model(m.op(op, y, wide))
    check_kept(model, optimize)
    assert kinds(model) == [op.kind]


def test_repetition_that_makes_the_shape_stays() -> None:
    m = Maker()
    x = m.input(1, 3, 1)
    wide = m.op(ops.BroadcastTo(), x, m.ints(2, 3, 4))
    model = m.model(m.op(ops.Mul(), wide, m.weights(1, 1, 4)))
    check_kept(model, optimize)
    assert kinds(model) == ["BROADCAST_TO", "MUL"]


def test_other_readers_keep_it() -> None:
    m = Maker()
    x, y = m.input(1, 3, 1), m.input(2, 3, 4, name="y")
    wide = m.op(ops.BroadcastTo(), x, m.ints(2, 3, 4))
    model = m.model(m.op(ops.Add(), y, wide), m.op(ops.Softmax(beta=1.0), wide))
    check_kept(model, optimize)
    assert kinds(model).count("BROADCAST_TO") == 1


def test_tile_of_more_than_one_element_stays() -> None:
    m = Maker()
    x, y = m.input(1, 3), m.input(1, 6, name="y")
    model = m.model(m.op(ops.Add(), y, m.op(ops.Tile(), x, m.ints(1, 2))))
    check_kept(model, optimize)
    assert "TILE" in kinds(model)


def test_products_broadcast_their_matrices() -> None:
    m = Maker()
    x, y = m.input(1, 2, 4, 5), m.input(3, 2, 5, 4, name="y")
    model = m.model(m.op(ops.BatchMatMul(), m.op(ops.Tile(), x, m.ints(3, 1, 1, 1)), y))
    check_kept(model, optimize)
    assert kinds(model) == ["BATCH_MATMUL"]
