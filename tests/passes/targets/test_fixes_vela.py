"""The compiler itself takes what fixes make: nothing of any table case is left to the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import test_fixes_arithmetic
import test_fixes_moves
import test_fixes_windows

from vitrify import tflite
from vitrify.backends.vela import check_model
from vitrify.ir import Model
from vitrify.passes.targets import find
from vitrify.pipeline.checking.fixes.applying import apply_fixes
from vitrify.targets import base as targets

pytestmark = pytest.mark.slow
CASES: dict[str, tuple[str, Callable[[], Model]]] = {
    **test_fixes_moves.CASES, **test_fixes_windows.CASES,
    **{name: (fix, build) for name, (fix, _, build) in test_fixes_arithmetic.CASES.items()}}
del CASES["wide_product"]       # its commands alone are more than the 16 MiB that the hardware takes


@pytest.mark.parametrize("name", CASES)
def test_the_compiler_takes_what_fixes_make(name: str, tmp_path: Path) -> None:
    fix, build = CASES[name]
    model, target = build(), targets.load("imx93")
    assert apply_fixes(model, target, find([fix]))
    tflite.write(model, tmp_path / "fixed.tflite")
    placed = check_model(tmp_path / "fixed.tflite", target).placement
    assert [v.operator for v in placed.verdicts if v.placement == "cpu"] == []
