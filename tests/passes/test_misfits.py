"""Graphs that no operator can compute are refused in words, never by a crash inside a pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graph_maker import Maker

from vitrify import ops
from vitrify.core.errors import ModelError
from vitrify.ir import Model
from vitrify.passes import optimize
from vitrify.passes.misfits import misfits


def no_permutation(model: Model) -> None:
    (turn,) = model.main.nodes_of(ops.Transpose)
    model.main.set_inputs(turn, turn.inputs[:1])


def nothing_to_convolve(model: Model) -> None:
    (conv,) = model.main.nodes_of(ops.Conv2D)
    model.main.set_inputs(conv, ())


CASES: dict[str, tuple[Callable[[Model], None], str]] = {
    "transpose without a permutation": (no_permutation, r"TRANSPOSE takes 2 inputs, got 1\n  where: node 'turn'"),
    "convolution of nothing": (nothing_to_convolve, "CONV_2D takes 2 to 3 inputs, got 0"),
}


def build() -> Model:
    maker = Maker()
    x = maker.conv(maker.input(1, 8, 6, 3), 3)
    x = maker.op(ops.Transpose(), x, maker.ints(0, 3, 1, 2), name="turn")
    return maker.model(maker.op(ops.Mean(), x, maker.ints(2, 3), name="average"))


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    damage, words = CASES[case]
    model = build()
    damage(model)
    with pytest.raises(ModelError, match=words):
        optimize(model)


def test_wrong_shape_is_told() -> None:
    model = build()
    assert misfits(model) == []
    model.main.outputs[0].shape = (1, 3, 8, 6)
    (finding,) = misfits(model)
    assert finding.headline == "'average_mean' is said to be [1, 3, 8, 6], but its operator gives [1, 3]"
    assert finding.where == "node 'average' (MEAN)"
