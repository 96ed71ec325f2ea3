"""TRANSPOSEs in cheaper forms: rows sliced and joined, fewer axes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import Runner
from vitrify.passes.layout.perms import Perm, Shape, permute
from vitrify.passes.reshaping.rows import FewerAxes, RowsByParts, simplified

# shape, permutation, what is left of the TRANSPOSE
CASES: dict[str, tuple[Shape, Perm, list[str]]] = {
    "windows apart": ((1, 4, 7, 3, 7, 16), (0, 1, 3, 2, 4, 5), ["RESHAPE", "SPLIT", "CONCATENATION", "RESHAPE"]),
    "windows together": ((1, 4, 3, 7, 7, 16), (0, 1, 3, 2, 4, 5), ["RESHAPE", "SPLIT", "CONCATENATION", "RESHAPE"]),
    "patches merged": ((1, 5, 2, 5, 2, 64), (0, 1, 3, 4, 2, 5), ["RESHAPE", "SPLIT", "CONCATENATION", "RESHAPE"]),
    "anchors": ((1, 5, 5, 3, 85), (0, 3, 1, 2, 4), ["RESHAPE", "SPLIT", "CONCATENATION", "RESHAPE"]),
    "many pieces": ((12, 10, 64), (1, 0, 2), ["TRANSPOSE"]),
    "short rows": ((1, 5, 5, 3, 8), (0, 3, 1, 2, 4), ["RESHAPE", "TRANSPOSE", "RESHAPE"]),
    "five axes apart": ((2, 3, 2, 3, 2), (4, 3, 2, 1, 0), ["TRANSPOSE"]),
}


def turned(shape: Shape, perm: Perm) -> Model:
    m = Maker()
    return m.model(m.op(ops.Neg(), m.transpose(m.op(ops.Neg(), m.input(*shape)), *perm)))


@pytest.mark.parametrize("case", CASES)
def test_form(case: str) -> None:
    shape, perm, wanted = CASES[case]
    model = turned(shape, perm)
    check_kept(model, lambda m: Runner(m).run((RowsByParts, FewerAxes)), tolerance=0)
    assert [node.op.kind for node in model.main][1:-1] == wanted


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 3, 1, 4), (2, 1, 3, 4, 1)])
def test_simplified_moves_the_same(shape: Shape) -> None:
    values = np.arange(np.prod(shape)).reshape(shape)
    for perm in itertools.permutations(range(len(shape))):
        fewer, order = simplified(shape, perm)
        assert np.array_equal(values.reshape(fewer).transpose(order).reshape(permute(shape, perm)),
                              values.transpose(perm))
        assert 1 not in fewer
