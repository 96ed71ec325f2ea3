"""Functions of numbers against ONNX Runtime, before and after the passes; what they cannot take is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, by_litert, imported, same_as_runtime

from scale import examples
from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers.onnx.lowerings import erf

RNG = np.random.default_rng(5)
X = (2, 3, 4, 5)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def number(value: float, kind: str = "float32") -> np.ndarray:
    return np.array(value, kind)


def whole(*shape: int, kind: str = "int32", low: int = -9, high: int = 9) -> Feed:
    return Feed(RNG.integers(low, high, shape).astype(kind))


def values(*given: float) -> Feed:
    return Feed(np.array(given, np.float32))


SPECIAL = values(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3e38)
WIDE = values(-80, -20, -3, -1, -0.5, -1e-3, -1e-5, 0, 1e-5, 1e-3, 0.5, 1, 3, 20, 80)
ANGLES = {
    "tan": Case("Tan", [X], low=-1.5, high=1.5),
    "atan": Case("Atan", [X], low=-30, high=30),
    "atan, ends": Case("Atan", [values(-np.inf, -1e9, -1e-9, 0, 1e-9, 1e9, np.inf)]),
    "asin": Case("Asin", [X], low=-1, high=1),
    "asin, ends": Case("Asin", [values(-1, -0.99999994, -1e-6, 0, 1e-6, 0.99999994, 1)]),
    "acos": Case("Acos", [X], low=-1, high=1),
    "acos, ends": Case("Acos", [values(-1, -0.99999994, -1e-6, 0, 1e-6, 0.99999994, 1)]),
    "sinh": Case("Sinh", [X], {}, 9),
    "sinh, small": Case("Sinh", [X], {}, 9, low=-1e-4, high=1e-4),
    "sinh, wide": Case("Sinh", [WIDE], {}, 9),
    "cosh": Case("Cosh", [X], {}, 9),
    "asinh": Case("Asinh", [X], {}, 9),
    "asinh, wide": Case("Asinh", [WIDE], {}, 9),
    "acosh": Case("Acosh", [X], {}, 9, low=1, high=9),
    "atanh": Case("Atanh", [X], {}, 9, low=-0.999, high=0.999),
    "erf": Case("Erf", [X], {}, 13, tolerance=5e-7),
    "erf, ends": Case("Erf", [values(-np.inf, -50, -4, -1e-8, 0, 1e-8, 4, 50, np.inf)], {}, 13, tolerance=5e-7),
}
POWERS = {
    **{f"pow {p}": Case("Pow", [X, number(p)], low=0.2, tolerance=1e-5) for p in (-2, -1, -0.5, 0, 4, 5.5)},
    "pow of ints": Case("Pow", [whole(3, 4), whole(3, 4, low=0, high=5)]),
    "pow 3 of ints": Case("Pow", [whole(3, 4), number(3, "int32")]),
    "pow of ints by floats": Case("Pow", [whole(3, 4, low=1), values(0.5, 2, 1, 3)]),
    "pow of floats by ints": Case("Pow", [(3, 4), whole(4, low=0, high=4)], tolerance=1e-5),
    "pow of floats by int64": Case("Pow", [(3, 4), whole(4, kind="int64", low=0, high=4)], tolerance=1e-5),
    "pow, broadcast exponent": Case("Pow", [(4,), number(2).reshape(1, 1)]),
    "fmod": Case("Mod", [(3, 4), values(2, -1.5, 0.7, 5)], {"fmod": 1}),
    "fmod of ints": Case("Mod", [whole(3, 4), whole(4, low=1)], {"fmod": 1}),
    "mod of int64": Case("Mod", [whole(3, 4, kind="int64"), whole(4, kind="int64", low=1)]),
    "mod, negative divisor": Case("Mod", [whole(3, 4), whole(4, low=-9, high=0)]),
    "fmod, negative divisor": Case("Mod", [whole(3, 4), whole(4, low=-9, high=0)], {"fmod": 1}),
    "reciprocal": Case("Reciprocal", [X], low=0.1),
}
CLASSES = {
    "nan": Case("IsNaN", [SPECIAL]),
    "infinite": Case("IsInf", [SPECIAL]),
    "infinite, positive": Case("IsInf", [SPECIAL], {"detect_negative": 0}),
    "infinite, negative": Case("IsInf", [SPECIAL], {"detect_positive": 0}),
    "infinite, neither": Case("IsInf", [SPECIAL], {"detect_positive": 0, "detect_negative": 0}),
}


def unsigned(direction: str, kind: str, amounts: np.ndarray | Feed) -> Case:
    return Case("BitShift", [whole(3, 4, kind=kind, low=0, high=100), amounts], {"direction": direction}, 11)


AMOUNTS = np.array([0, 1, 3, 7], np.uint8)
BITS = {
    **{
        f"{kind} {name}": Case(kind, [whole(3, 4, kind=name), whole(4, kind=name)], {}, 18)
        for kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for name in ("int8", "int16", "int32", "int64")
    },
    "and of uint8": Case(
        "BitwiseAnd", [whole(3, 4, kind="uint8", low=0, high=256), whole(4, kind="uint8", low=0)], {}, 18
    ),
    "and of all bits": Case(
        "BitwiseAnd", [whole(40, low=-(2**31), high=2**31), whole(40, low=-(2**31), high=2**31)], {}, 18
    ),
    "or of all bits": Case(
        "BitwiseOr", [whole(40, low=-(2**31), high=2**31), whole(40, low=-(2**31), high=2**31)], {}, 18
    ),
    "and of the lowest": Case("BitwiseAnd", [whole(3, 4), number(7, "int32")], {}, 18),
    "and of the lowest, first": Case("BitwiseAnd", [number(15, "int64"), whole(3, 4, kind="int64")], {}, 18),
    "and with one number": Case("BitwiseAnd", [whole(3, 4), number(6, "int32")], {}, 18),
    "not": Case("BitwiseNot", [whole(3, 4)], {}, 18),
    "not of uint8": Case("BitwiseNot", [whole(3, 4, kind="uint8", low=0, high=256)], {}, 18),
    "left, amounts of a tensor": unsigned("LEFT", "uint8", Feed(AMOUNTS)),
    "left, constant amounts": unsigned("LEFT", "uint8", AMOUNTS),
    "right, amounts of a tensor": unsigned("RIGHT", "uint8", Feed(AMOUNTS)),
    "right, constant amounts": unsigned("RIGHT", "uint8", AMOUNTS),
    "left of uint32": unsigned("LEFT", "uint32", Feed(AMOUNTS.astype(np.uint32))),
    "right of uint64": unsigned("RIGHT", "uint64", Feed(AMOUNTS.astype(np.uint64))),
}
ACTIVATIONS = {
    "clip, bounds of tensors": Case("Clip", [X, Feed(number(-0.4)), Feed(number(1.2))]),
    "clip, bounds that cross": Case("Clip", [X, Feed(number(1.2)), Feed(number(-0.4))]),
    "clip, upper bound of a tensor": Case("Clip", [X, None, Feed(number(0.3))]),
    "clip of int64": Case("Clip", [whole(3, 4, kind="int64"), number(-2, "int64"), number(3, "int64")]),
    "prelu, slope of a tensor": Case("PRelu", [X, (3, 1, 1)]),
    "prelu, slope per element": Case("PRelu", [X, f(3, 4, 5)]),
    "prelu, slope per picture": Case("PRelu", [X, f(2, 1, 1, 1)]),
    "shrink, soft": Case("Shrink", [X], {"lambd": 0.7, "bias": 0.7}),
    "shrink, hard": Case("Shrink", [X], {"lambd": 0.7}),
    "shrink, other bias": Case("Shrink", [X], {"lambd": 0.7, "bias": 0.3}),
    "celu, alpha": Case("Celu", [X], {"alpha": 2.0}),
    "selu, alpha": Case("Selu", [X], {"alpha": 2.0, "gamma": 3.0}),
    "hard sigmoid, alpha": Case("HardSigmoid", [X], {"alpha": 0.5, "beta": 0.6}),
    "softplus, wide": Case("Softplus", [WIDE]),
    "mean of one": Case("Mean", [X]),
    "sum, broadcast": Case("Sum", [X, (4, 1), (5,)]),
    "max of four": Case("Max", [X, (4, 1), (5,), number(0.3)]),
    "min of int64": Case("Min", [whole(3, 4, kind="int64"), whole(4, kind="int64")]),
}
NORMS = {
    "lrn": Case("LRN", [(2, 7, 4, 5)], {"size": 3, "alpha": 0.5, "beta": 0.75, "bias": 2.0}),
    "lrn, half": Case("LRN", [(2, 7, 4, 5)], {"size": 5, "alpha": 0.5, "beta": 0.5}),
    "lrn, one": Case("LRN", [(2, 7, 4, 5)], {"size": 1, "alpha": 0.5, "beta": 1.0}),
    "lrn, odd power": Case("LRN", [(2, 7, 4, 5)], {"size": 9, "alpha": 0.5, "beta": 0.6}, tolerance=5e-6),
    "lp 2, channels": Case("LpNormalization", [X], {"axis": 1}),
    "lp 2, rows": Case("LpNormalization", [X], {"axis": 2}),
    "lp 2 of nothing": Case("LpNormalization", [values(0, 0, 0)], {"axis": 0}),
    "lp 1, channels": Case("LpNormalization", [X], {"axis": 1, "p": 1}),
    "batch, parameters of tensors": Case(
        "BatchNormalization", [X, (3,), (3,), (3,), Feed(np.array([0.5, 1, 2], np.float32))], {}, 15, tolerance=5e-6
    ),
    "batch, one of a tensor": Case(
        "BatchNormalization", [X, f(3), (3,), f(3), np.abs(f(3)) + 0.1], {}, 15, tolerance=5e-6
    ),
    "batch, rank 3": Case("BatchNormalization", [(2, 3, 5), f(3), f(3), f(3), np.abs(f(3)) + 0.1], {}, 15),
    **{f"det {n}": Case("Det", [(2, n, n)], {}, 11, tolerance=2e-5) for n in (1, 2, 3, 4, 6)},
    "det of one": Case("Det", [(3, 3)], {}, 11, tolerance=1e-5),
    "dropout with mask": Case("Dropout", [X], {}, 13, 2),
    "dropout, training with ratio 0": Case("Dropout", [X, number(0), np.array(True)], {}, 13, 2),
}
CASES = {
    f"{family}: {name}": case
    for family, cases in {
        "angles": ANGLES,
        "powers": POWERS,
        "classes": CLASSES,
        "bits": BITS,
        "activations": ACTIVATIONS,
        "norms": NORMS,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_equal_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


REFUSED = {
    "det": (Case("Det", [(7, 7)], {}, 11), UnsupportedError, "matrices of 7 rows; up to 6"),
    "det of no square": (Case("Det", [(3, 4)], {}, 11), ModelError, "square matrices"),
    "dropout": (
        Case("Dropout", [X, number(0.5), np.array(True)], {}, 13),
        UnsupportedError,
        r"drops 0\.5 .* at random",
    ),
    "dropout, no ratio": (
        Case("Dropout", [X, np.zeros(0, np.float32), np.array(True)], {}, 13),
        ModelError,
        "single number",
    ),
    "batch of one number": (Case("BatchNormalization", [(), f(1), f(1), f(1), f(1)]), ModelError, "single number"),
    "lrn": (Case("LRN", [X], {"size": 0}), ModelError, "size of 0"),
    "clip": (Case("Clip", [X, f(2)]), ModelError, r"bound of shape \[2\]"),
    "shift": (Case("BitShift", [whole(3), whole(3)], {"direction": "UP"}, 11), ModelError, "LEFT or RIGHT"),
    "bits of floats": (Case("BitwiseAnd", [X, X], {}, 18), ModelError, "takes integers"),
    "batch": (Case("BatchNormalization", [X, f(4), f(3), f(3), f(3)]), ModelError, "for 3 channels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str, tmp_path: Path) -> None:
    case, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        imported(case.proto(), tmp_path)


def test_erf_keeps_its_digits_everywhere(tmp_path: Path) -> None:
    x = np.concatenate([np.linspace(-5, 5, 100_001), np.geomspace(1e-30, 5, 1000)]).astype(np.float32)
    got = by_litert(imported(Case("Erf", [Feed(x)], {}, 13).proto(), tmp_path), {"x0": x})["y0"].astype(np.float64)
    wanted = np.array([math.erf(v) for v in x.astype(np.float64)])
    assert np.abs(got - wanted).max() < 3e-7
    assert np.abs(got / np.where(wanted == 0, 1, wanted) - (wanted != 0)).max() < 2e-6


def test_erf_series_ends_where_erf_is_one() -> None:
    assert 1 - math.erf(erf.LIMIT) < 2**-25


@pytest.mark.parametrize("seed", range(examples(6)))
def test_shifts_by_any_amount(seed: int, tmp_path: Path) -> None:
    """Against numpy with the specification's rule, as ONNX Runtime shifts no signed integers."""
    rng = np.random.default_rng(seed)
    kind = ("int8", "int16", "int32")[seed % 3]
    direction = ("LEFT", "RIGHT")[seed // 3 % 2]
    span, width = np.iinfo(kind), np.iinfo(kind).bits
    x = rng.integers(span.min, span.max, 60).astype(kind)
    amounts = rng.integers(-3, width + 3, 60).astype(kind)
    case = Case("BitShift", [Feed(x), Feed(amounts)], {"direction": direction}, 11)
    got = by_litert(imported(case.proto(), tmp_path), case.feeds())["y0"]
    inside = (amounts >= 0) & (amounts < width)
    wide, held = x.astype(np.int64), np.where(inside, amounts, 0).astype(np.int64)
    moved = wide << held if direction == "LEFT" else wide >> held
    beyond = np.where(x < 0, -1, 0) if direction == "RIGHT" else 0
    assert (got == np.where(inside, moved, beyond).astype(kind)).all()


def test_masks_of_the_lowest_bits_need_one_operator(tmp_path: Path) -> None:
    model = imported(Case("BitwiseAnd", [whole(3, 4), number(7, "int32")], {}, 18).proto(), tmp_path)
    assert [node.op.kind for node in model.main] == ["FLOOR_MOD"]
