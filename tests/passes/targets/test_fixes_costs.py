"""Fixes that only make a model cheaper: exact, and less work by the compiler's estimate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from quantized_maker import Maker, check_fix

from vitrify import ops, targets, tflite
from vitrify.backends.vela import check_model
from vitrify.ir import Model
from vitrify.passes.targets import find
from vitrify.pipeline.fixing.applying import apply_fixes


def product(x: tuple[int, ...], y: tuple[int, ...], *, adj_y: bool = False) -> Model:
    """Two computed factors, as attention has them."""
    m = Maker()
    left = m.op(ops.Add(), m.input(*x), m.input(*x))
    right = m.op(ops.Add(), m.input(*y), m.input(*y), zero=9)
    return m.model(m.op(ops.BatchMatMul(adj_y=adj_y), left, right, scale=0.9))


CASES: dict[str, tuple[str, float, Callable[[], Model]]] = {
    "scores": ("split-matmuls", 0.75, lambda: product((1, 64, 32), (1, 64, 32), adj_y=True)),
    "scores_uneven": ("split-matmuls", 0.8, lambda: product((1, 50, 40), (1, 51, 40), adj_y=True)),
    "values": ("split-matmuls", 0.9, lambda: product((1, 198, 198), (1, 198, 64))),
    "values_uneven": ("split-matmuls", 0.95, lambda: product((100, 64), (64, 62))),
    "rows_apart": ("split-matmuls", 0.9, lambda: product((1, 1000, 500), (1, 500, 30))),
    "many_heads_apart": ("split-matmuls", 0.9, lambda: product((1, 6, 400, 400), (1, 6, 400, 32))),
    "class_token": ("deep-matmuls", 0.9, lambda: product((1, 197, 197), (1, 197, 64))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_cheaper_form_is_exact(name: str, tmp_path: Path) -> None:
    fix, _, build = CASES[name]
    check_fix(build, fix, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_cheaper_form_is_cheaper(name: str, tmp_path: Path) -> None:
    fix, most, build = CASES[name]
    target = targets.load("imx93")

    def cycles(model: Model) -> int:
        tflite.write(model, tmp_path / "m.tflite")
        compiled = check_model(tmp_path / "m.tflite", target)
        assert compiled.placement.count("cpu") == 0
        return compiled.estimate.npu_cycles

    before, fixed = cycles(build()), build()
    assert apply_fixes(fixed, target, find([fix]))
    assert cycles(fixed) < most * before


@pytest.mark.parametrize("build", [lambda: product((1, 8, 64, 32), (1, 8, 64, 32), adj_y=True),
                                   lambda: product((1, 8, 8), (1, 8, 8)),
                                   lambda: product((1, 64, 64), (1, 64, 32))], ids=["many_heads", "small", "copies"])
def test_products_that_keep_all_units_busy_stay(build: Callable[[], Model]) -> None:
    assert not apply_fixes(build(), targets.load("imx93"), find(["split-matmuls"]))


def test_a_core_with_a_unit_for_products_is_left_alone() -> None:
    assert not apply_fixes(CASES["scores"][2](), targets.load("ethos-u85-256"), find(["split-matmuls", "deep-matmuls"]))
