"""How far two tensors are apart, and what of it may be roundings."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.pipeline.compiling.comparing import NOTHING, Apart, Limits, apart, is_beyond

ZEROS = np.zeros(8, np.int8)
CASES = {
    "equal": (ZEROS, ZEROS, (0, 0)),
    "one step everywhere": (ZEROS + np.int8(1), ZEROS, (1, 1)),
    "ends": (np.full(8, 127, np.int8), np.full(8, -128, np.int8), (255, 255)),
    "another shape": (ZEROS[:4], ZEROS, (np.inf, np.inf)),
    "floats": (np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32), (127, 127)),
    "not a number": (np.array([np.nan], np.float32), np.array([1.0], np.float32), (np.inf, np.inf)),
    "nothing": (ZEROS[:0], ZEROS[:0], (0, 0)),
}


@pytest.mark.parametrize(("given", "wanted", "found"), CASES.values(), ids=CASES)
def test_differences_are_counted_in_steps(given: np.ndarray, wanted: np.ndarray,      # type: ignore[type-arg]
                                          found: tuple[float, float]) -> None:
    assert apart(given, wanted) == pytest.approx(found)


ALLOWED = {      # what LiteRT's own kernels differ by, and what is beyond
    "a shifted zero point": (NOTHING, Apart(1, 1.0), True),
    "few roundings": (NOTHING, Apart(1, 0.003), False),
    "one large": (NOTHING, Apart(3, 0.01), True),
    "as LiteRT's kernels": (Apart(16, 3.4), Apart(16, 3.4), False),
    "more than twice these": (Apart(16, 3.4), Apart(33, 3.4), True),
}


@pytest.mark.parametrize(("floor", "found", "beyond"), ALLOWED.values(), ids=ALLOWED)
def test_roundings_are_told_from_faults(floor: Apart, found: Apart, beyond: bool) -> None:
    assert is_beyond(found, Limits().allowed(floor)) is beyond


def test_the_users_steps_count_alone() -> None:
    assert Limits(steps=5).allowed(Apart(100, 50)) == Apart(5, 5)
