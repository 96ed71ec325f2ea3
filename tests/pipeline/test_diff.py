"""Planted edits are found, each as what it is, and nothing is told beside them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from diff_models import EDITS, INTEGER_EDITS, NAMINGS, Edit, network, number_names

import vitrify as vt
from vitrify.ir import Model
from vitrify.ir.validation import validate
from vitrify.quant.copying import copy_model
from vitrify.results import DiffResult

Naming = Callable[[Model], None]


@pytest.fixture(scope="module")
def int8() -> Model:
    samples = [{"image": np.random.default_rng(n).normal(size=(1, 12, 12, 3)).astype(np.float32)} for n in range(4)]
    return vt.quantize(network(), data=samples)


def told(result: DiffResult) -> list[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    return sorted((row.relation, tuple(row.a_operators), tuple(row.b_operators),
                   tuple(sorted({c.kind for c in row.changes}))) for row in result.nodes if row.relation != "same")


def compare(model: Model, edit: Edit, naming: Naming) -> DiffResult:
    a, b = copy_model(model), copy_model(model)
    edit.make(b)
    validate(b)
    if naming is number_names:
        naming(a)
    naming(b)
    return vt.diff(a, b)


@pytest.mark.parametrize("naming", NAMINGS.values(), ids=NAMINGS)
@pytest.mark.parametrize("alike", [False, True], ids=["different", "alike"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_was_edited_is_told_and_nothing_else(edit: Edit, alike: bool, naming: Naming) -> None:
    result = compare(network(alike=alike), edit, naming)
    assert told(result) == sorted(edit.told)
    assert result.related


@pytest.mark.parametrize("naming", NAMINGS.values(), ids=NAMINGS)
@pytest.mark.parametrize("edit", INTEGER_EDITS.values(), ids=INTEGER_EDITS)
def test_edits_of_integers(int8: Model, edit: Edit, naming: Naming) -> None:
    assert told(compare(int8, edit, naming)) == sorted(edit.told)
