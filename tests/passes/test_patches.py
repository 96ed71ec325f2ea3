"""Convolutions of long strides and of patches, on reshaped tensors."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from graph_maker import Maker, check_kept, kinds
from hypothesis import given, settings
from hypothesis import strategies as st

from scale import examples
from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import Runner, optimize
from vitrify.passes.weights.patches import LONGEST_STEP, Patches

WHOLE = ["RESHAPE", "CONV_2D", "RESHAPE"]
ADDED = ["RESHAPE", "CONV_2D", "RESHAPE", "SLICE", "SLICE", "ADD"]


class Case(NamedTuple):
    """Shape, kernel, stride and padding of a convolution, and what it becomes."""

    shape: tuple[int, int, int, int]
    kernel: tuple[int, int]
    step: tuple[int, int]
    pad: tuple[int, int] = (0, 0)
    same: bool = False
    wanted: list[str] = ["CONV_2D"]


CASES = {
    "patches of 4": Case((1, 8, 12, 3), (4, 4), (4, 4), wanted=WHOLE),
    "patches of 4, two pictures": Case((2, 8, 12, 3), (4, 4), (4, 4), wanted=WHOLE),
    "patches of 2": Case((1, 6, 8, 3), (2, 2), (2, 2), wanted=WHOLE),
    "columns of 2": Case((1, 6, 8, 3), (3, 2), (1, 2), wanted=WHOLE),
    "same without zeros": Case((1, 8, 8, 3), (4, 4), (4, 4), same=True, wanted=WHOLE),
    "same with zeros": Case((1, 9, 9, 3), (4, 4), (4, 4), same=True, wanted=["PAD", *WHOLE]),
    "stem of 7 by 4": Case((1, 16, 16, 3), (7, 7), (4, 4), (3, 3), wanted=["PAD", *ADDED]),
    "stem of 7 by 4, same": Case((1, 16, 16, 3), (7, 7), (4, 4), same=True, wanted=["PAD", *ADDED]),
    "stem of 11 by 4": Case((1, 23, 23, 2), (11, 11), (4, 4), (2, 2),
                            wanted=["PAD", "RESHAPE", "CONV_2D", "RESHAPE", "SLICE", "SLICE", "SLICE", "ADD", "ADD"]),
    "wide only": Case((1, 5, 16, 3), (3, 8), (2, 4), (1, 2), wanted=["PAD", *WHOLE]),
    "high only": Case((1, 16, 9, 3), (4, 3), (4, 2), (0, 1), wanted=["PAD", *WHOLE]),
    "places left over": Case((1, 10, 10, 3), (4, 4), (4, 4), wanted=["CONV_2D"]),
    "fewer taps than steps": Case((1, 8, 8, 3), (1, 1), (4, 4), wanted=["CONV_2D"]),
    "usual": Case((1, 8, 8, 3), (3, 3), (2, 2), (1, 1), wanted=["PAD", "CONV_2D"]),
}


def convolved(case: Case, *, bias: bool = True, activation: ops.Activation = ops.Activation.NONE) -> Model:
    m = Maker()
    x = m.input(*case.shape)
    if any(case.pad):
        x = m.op(ops.Pad(), x, m.const([(0, 0), *((p, p) for p in case.pad), (0, 0)], "int32"))
    op = ops.Conv2D(stride_h=case.step[0], stride_w=case.step[1], fused_activation_function=activation,
                    padding=ops.Padding.SAME if case.same else ops.Padding.VALID)
    return m.model(m.op(op, x, m.weights(5, *case.kernel, case.shape[3]), *([m.weights(5)] if bias else [])))


@pytest.mark.parametrize("activation", [ops.Activation.NONE, ops.Activation.RELU])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_form(case: str, bias: bool, activation: ops.Activation) -> None:
    model = convolved(CASES[case], bias=bias, activation=activation)
    check_kept(model, lambda m: Runner(m).run((Patches,)))
    assert kinds(model) == CASES[case].wanted
    assert not Runner(model).run((Patches,))
    assert model.main.nodes[-1].origin.sources


def test_groups_stay() -> None:
    m = Maker()
    op = ops.Conv2D(stride_h=4, stride_w=4)
    model = m.model(m.op(op, m.input(1, 8, 8, 4), m.weights(6, 4, 4, 2), m.weights(6)))
    assert not Runner(model).run((Patches,))


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_convolution(data: st.DataObject) -> None:
    sizes = st.integers(1, 9)
    kernel = data.draw(st.tuples(sizes, sizes))
    step = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    pad = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    extents = [data.draw(st.integers(max(1, k - 2 * p), 20)) for k, p in zip(kernel, pad, strict=True)]
    case = Case((data.draw(st.integers(1, 2)), extents[0], extents[1], 2), kernel, step, pad, data.draw(st.booleans()))
    model = convolved(case)
    check_kept(model, optimize)
    (node,) = model.main.nodes_of(ops.Conv2D)
    assert isinstance(node.op, ops.Conv2D)
    left_over = any(k < s or (e + 2 * p - k) % s for e, k, s, p in zip(extents, kernel, step, pad, strict=True))
    assert left_over or max(node.op.stride_h, node.op.stride_w) <= LONGEST_STEP
