"""Chains of TRANSPOSEs as one, and patches by slices and joins."""

from __future__ import annotations

import numpy as np
import pytest
from graph_maker import Maker, check_kept, kinds
from hypothesis import given, settings
from hypothesis import strategies as st

from scale import examples
from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import Runner, optimize
from vitrify.passes.layout.perms import Perm, Shape, permute
from vitrify.passes.reshaping.turns import MergeTurns, PatchesByParts, combined


def unfolded(back: bool, channels: int = 64) -> Model:
    """Patches of 2x2 as an NCHW graph takes them apart (and together again)."""
    m = Maker()
    x = m.transpose(m.conv(m.input(1, 6, 4, 3), channels), 0, 3, 1, 2)
    x = m.transpose(m.reshape(x, channels * 3, 2, 2, 2), 0, 2, 1, 3)
    x = m.op(ops.Softmax(), m.transpose(m.reshape(x, 1, channels, 6, 4), 0, 3, 2, 1))
    if back:
        x = m.transpose(m.reshape(m.transpose(x, 0, 3, 2, 1), channels * 3, 2, 2, 2), 0, 2, 1, 3)
        x = m.transpose(m.reshape(x, 1, channels, 6, 4), 0, 2, 3, 1)
        return m.model(m.conv(x, 3))
    return m.model(m.op(ops.Neg(), x))


@pytest.mark.parametrize("back", [False, True])
def test_patches_need_no_transpose(back: bool) -> None:
    model = unfolded(back)
    check_kept(model, lambda m: Runner(m).run((MergeTurns, PatchesByParts)), tolerance=0)
    found = kinds(model)
    assert "TRANSPOSE" not in found
    assert found.count("SPLIT") == (4 if back else 3)
    assert found.count("CONCATENATION") == (4 if back else 1)


def test_short_rows_stay() -> None:
    model = unfolded(False, channels=8)
    assert not Runner(model).run((MergeTurns, PatchesByParts))


def test_what_others_read_stays() -> None:
    m = Maker()
    x = m.transpose(m.input(2, 3, 4), 2, 0, 1)
    y = m.transpose(m.reshape(x, 4, 6), 1, 0)
    model = m.model(y, m.op(ops.Neg(), x))
    assert not Runner(model).run((MergeTurns,))


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[Shape, Perm]]:
    """Two movements of the same elements."""
    atoms = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=2, max_size=6))

    def joined(sizes: list[int]) -> Shape:
        shape = [sizes[0]]
        for size in sizes[1:]:
            shape = [*shape[:-1], shape[-1] * size] if draw(st.booleans()) else [*shape, size]
        return tuple(shape)

    first = joined(atoms)
    turn = tuple(draw(st.permutations(range(len(first)))))
    second = joined([n for extent in permute(first, turn) for n in ([2, extent // 2] if extent % 2 == 0 else [extent])])
    return [(first, turn), (second, tuple(draw(st.permutations(range(len(second))))))]


@settings(max_examples=examples(300), deadline=None)
@given(chain=chains())
def test_combined_moves_the_same(chain: list[tuple[Shape, Perm]]) -> None:
    (shape, turn), (other, again) = chain
    found = combined(*chain)
    if found is None:
        return
    values = np.arange(np.prod(shape))
    wanted = values.reshape(shape).transpose(turn).reshape(other).transpose(again)
    assert np.array_equal(values.reshape(found[0]).transpose(found[1]).ravel(), wanted.ravel())


def test_whole_road() -> None:
    model = unfolded(True)
    check_kept(model, optimize)
    assert "TRANSPOSE" not in kinds(model)
