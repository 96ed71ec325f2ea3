"""Einsum against ONNX Runtime, and how many transposes are left."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, imported, same_as_runtime

from scale import examples
from vitrify.core.errors import ModelError

RNG = np.random.default_rng(11)
EXTENTS = dict(zip(string.ascii_lowercase, (2, 3, 4, 5, 3, 6, 2, 4, 3, 5, 2, 7, 3) * 2, strict=True))


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def case(equation: str, constant: int | None = None) -> Case:
    """Inputs of the extents that letters stand for; an ellipsis is two axes, 5 and 2."""
    inputs: list[tuple[int, ...] | np.ndarray] = []
    for i, text in enumerate(equation.split("->")[0].split(",")):
        before, dots, after = text.strip().partition("...")
        shape = (*(EXTENTS[c] for c in before), *((5, 2) if dots else ()), *(EXTENTS[c] for c in after))
        inputs.append(f(*shape) if i == constant else shape)
    return Case("Einsum", inputs, {"equation": equation}, tolerance=5e-6)


# The equation and the transposes that are left for it.
EQUATIONS = {
    "ab->ba": 1,
    "ab->a": 0,
    "ab->": 0,
    "ab": 0,
    "ba": 1,
    "aa->a": 0,
    "aa": 0,
    "baa->ba": 0,
    "aba->ab": 2,
    "a,b->ab": 0,
    "a,a->": 0,
    "ab,ab->ab": 0,
    "ab,b->ab": 0,
    "ab,bc->ac": 0,
    "ab,cb->ac": 0,
    "ba,bc->ac": 0,
    "ab,bc->ca": 0,
    "abc,acd->abd": 0,
    "abcd,abed->abce": 0,
    "bhid,bhjd->bhij": 0,
    "bihd,bjhd->bhij": 2,
    "bhij,bjhd->bihd": 2,
    "abc,cd->abd": 0,
    "bchw,bkc->bkhw": 0,
    "bmchw,bnmc->bmhwn": 1,
    "abc,dc,ae->dbe": 1,
    "...ab,...bc->...ac": 0,
    "a...,...->...a": 1,
    "...a->...": 0,
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equals_onnx_runtime(equation: str, tmp_path: Path) -> None:
    same_as_runtime(case(equation), tmp_path)
    built = imported(case(equation).proto(), tmp_path).main
    kinds = [n.op.kind for n in built]
    assert kinds.count("TRANSPOSE") == EQUATIONS[equation], kinds


WEIGHTS = {"abc,cd->abd": 0, "abc,dc->abd": 0, "abc,bcd->ad": 0, "abc,acd->abd": 0, "bchw,dc->bdhw": 2}


@pytest.mark.parametrize("equation", WEIGHTS)
def test_constant_operand(equation: str, tmp_path: Path) -> None:
    same_as_runtime(case(equation, 1), tmp_path)
    built = imported(case(equation, 1).proto(), tmp_path).main
    assert sum(n.op.kind == "TRANSPOSE" for n in built) == WEIGHTS[equation]


def test_extent_of_one_broadcasts(tmp_path: Path) -> None:
    same_as_runtime(Case("Einsum", [(1, 3, 4), (5, 4, 6)], {"equation": "...ij,...jk->...ik"}), tmp_path)


@pytest.mark.parametrize("seed", range(examples(12)))
def test_any_equation(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    letters = string.ascii_lowercase[:6]
    terms = ["".join(random.permutation([*letters])[: random.integers(1, 5)]) for _ in range(2)]
    used = sorted({*"".join(terms)})
    result = "".join(random.permutation(used)[: random.integers(0, min(len(used), 5) + 1)])
    same_as_runtime(case(f"{','.join(terms)}->{result}"), tmp_path)


REFUSED = {
    "too few terms": (Case("Einsum", [(2, 3), (3, 4)], {"equation": "ab->a"}), "has 1 terms for 2 inputs"),
    "a letter too many": (Case("Einsum", [(2, 3)], {"equation": "abc->a"}), "does not fit 2 dimensions"),
    "an unknown letter": (Case("Einsum", [(2, 3)], {"equation": "ab->c"}), "repeated or that no input has"),
    "no letters": (Case("Einsum", [(2, 3)], {"equation": "01->0"}), "none of letters with one ellipsis"),
    "two ellipses": (Case("Einsum", [(2, 3)], {"equation": "...a...->a"}), "none of letters with one ellipsis"),
    "extents differ": (Case("Einsum", [(2, 3), (4, 5)], {"equation": "ab,bc->ac"}), "has the extents 3 and 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    broken, text = REFUSED[name]
    with pytest.raises(ModelError, match=text):
        imported(broken.proto(), tmp_path)
