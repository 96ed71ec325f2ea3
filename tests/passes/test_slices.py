"""Slices of joined and of sliced tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ops import Activation
from vitrify.passes import Runner
from vitrify.passes.cleanup.dead_code import DeadCode
from vitrify.passes.cleanup.identities import Identities
from vitrify.passes.cleanup.slices import SliceBefore

Build = Callable[[Maker, Tensor], Tensor]


def cut(m: Maker, x: Tensor, begins: list[int], sizes: list[int]) -> Tensor:
    return m.op(ops.Slice(), x, m.ints(*begins), m.ints(*sizes))


def both(m: Maker, x: Tensor, axis: int = 1, activation: Activation = Activation.NONE) -> Tensor:
    op = ops.Concatenation(axis=axis, fused_activation_function=activation)
    return m.op(op, m.op(ops.Abs(), x), m.op(ops.Exp(), x))


CASES: dict[str, tuple[Build, list[str]]] = {
    "within the second part": (lambda m, x: cut(m, both(m, x), [0, 7, 1], [2, 2, 3]), ["EXP", "SLICE"]),
    "a whole part": (lambda m, x: cut(m, both(m, x), [0, 0, 0], [2, 5, 4]), ["ABS"]),
    "negative axis": (lambda m, x: cut(m, both(m, x, -1), [1, 0, 4], [1, 5, -1]), ["EXP", "SLICE"]),
    "a slice of a slice": (lambda m, x: cut(m, cut(m, m.op(ops.Abs(), x), [0, 1, 1], [2, 3, -1]), [1, 1, 0],
                                            [1, 2, 2]), ["ABS", "SLICE"]),
    "across parts": (lambda m, x: cut(m, both(m, x), [0, 3, 0], [2, 4, 4]),
                     ["ABS", "EXP", "CONCATENATION", "SLICE"]),
    "behind an activation": (lambda m, x: cut(m, both(m, x, 1, Activation.RELU), [0, 0, 0], [2, 5, 4]),
                             ["ABS", "EXP", "CONCATENATION", "SLICE"]),
}


@pytest.mark.parametrize("name", CASES)
def test_slice(name: str) -> None:
    build, wanted = CASES[name]
    m = Maker()
    model = m.model(build(m, m.input(2, 5, 4)))
    check_kept(model, lambda made: Runner(made).run((SliceBefore, Identities, DeadCode)))
    assert kinds(model) == wanted
