"""Products over columns become tall convolutions."""

from __future__ import annotations

import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import Runner
from vitrify.passes.weights.columns import TALLEST, Columns

WINDOWS = ["RESHAPE", "CONV_2D", "RESHAPE"]
LEFT = ["TRANSPOSE", "FULLY_CONNECTED"]
CASES = {
    "columns": ((1, 5, 12), (0, 2, 1), WINDOWS),
    "several": ((3, 5, 12), (0, 2, 1), WINDOWS),
    "no batch": ((5, 12), (1, 0), WINDOWS),
    "axes of one": ((1, 5, 1, 12), (0, 3, 2, 1), WINDOWS),
    "two axes of columns": ((1, 5, 3, 4), (0, 2, 3, 1), WINDOWS),
    "tallest": ((1, TALLEST, 3), (0, 2, 1), WINDOWS),
    "too tall": ((1, TALLEST + 1, 3), (0, 2, 1), LEFT),
    "rows in another order": ((2, 5, 12), (1, 0, 2), LEFT),
    "batch behind": ((2, 5, 12), (1, 2, 0), WINDOWS),
    "batch inside": ((2, 5, 12), (2, 0, 1), LEFT),
}


def product(shape: tuple[int, ...], order: tuple[int, ...], *, bias: bool = True, twice: bool = False,
            activation: ops.Activation = ops.Activation.NONE) -> Model:
    m = Maker()
    rows = m.op(ops.Transpose(), m.input(*shape), m.const(order, "int32"))
    op = ops.FullyConnected(keep_num_dims=True, fused_activation_function=activation)
    out = m.op(op, rows, m.weights(7, rows.shape[-1]), *([m.weights(7)] if bias else []))
    return m.model(out, *([m.op(ops.Abs(), rows)] if twice else []))


@pytest.mark.parametrize("activation", [ops.Activation.NONE, ops.Activation.RELU])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_form(case: str, bias: bool, activation: ops.Activation) -> None:
    shape, order, wanted = CASES[case]
    model = product(shape, order, bias=bias, activation=activation)
    check_kept(model, lambda m: Runner(m).run((Columns,)))
    assert kinds(model) == wanted
    assert not Runner(model).run((Columns,))


def test_rows_that_others_read_stay() -> None:
    model = product((1, 5, 12), (0, 2, 1), twice=True)
    check_kept(model, lambda m: Runner(m).run((Columns,)))
    assert "CONV_2D" not in kinds(model)
