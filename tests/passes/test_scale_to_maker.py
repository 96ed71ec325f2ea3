"""Scalar factors folded into weights behind slices and products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes import optimize


def parts(m: Maker) -> tuple[Tensor, ...]:
    """Rows of 4 + 4 + 4 channels, split."""
    x = m.op(ops.FullyConnected(keep_num_dims=True), m.input(2, 5, 6), m.weights(12, 6), m.weights(12))
    return m.outs(ops.Split(num_splits=3), m.const(2, np.int32), x)


def times(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Mul(), x, m.const(0.125))


def queries(m: Maker) -> Model:
    q, k, v = parts(m)
    return m.model(m.op(ops.BatchMatMul(), m.op(ops.BatchMatMul(adj_y=True), times(m, q), k), v))


def scores(m: Maker) -> Model:
    q, k, v = parts(m)
    return m.model(m.op(ops.BatchMatMul(), times(m, m.op(ops.BatchMatMul(adj_y=True), q, k)), v))


def also_read(m: Maker) -> Model:
    """The queries are values too: their factor must stay."""
    q, k, _ = parts(m)
    return m.model(m.op(ops.BatchMatMul(), m.op(ops.BatchMatMul(adj_y=True), times(m, q), k), q))


def overlapping(m: Maker) -> Model:
    x = m.op(ops.FullyConnected(), m.input(5, 6), m.weights(12, 6), m.weights(12))
    a, b = (m.op(ops.Slice(), x, m.ints(0, i), m.ints(5, 7)) for i in (0, 5))
    return m.model(times(m, a), m.op(ops.Exp(), b))


def activated(m: Maker) -> Model:
    x = m.op(ops.FullyConnected(fused_activation_function=ops.Activation.RELU6), m.input(5, 6), m.weights(12, 6))
    return m.model(times(m, m.reshape(x, 5, 3, 4)))


CASES: dict[str, tuple[Callable[[Maker], Model], int]] = {
    "queries": (queries, 0), "scores": (scores, 0), "also read": (also_read, 1), "overlapping": (overlapping, 1),
    "activated": (activated, 1)}


@pytest.mark.parametrize("case", CASES)
def test_factors_left(case: str) -> None:
    build, left = CASES[case]
    model = build(Maker())
    check_kept(model, optimize, tolerance=1e-5)
    assert sum(isinstance(node.op, ops.Mul) for node in model.main) == left
