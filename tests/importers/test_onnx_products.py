"""Matrix products and reductions against ONNX Runtime, before and after the passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, by_litert, by_runtime, imported, same_as_runtime, saved

from vitrify.core.errors import ModelError, UnsupportedError

RNG = np.random.default_rng(13)
X = (2, 3, 4, 5)


def f(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


def whole(*shape: int, kind: str = "int32", low: int = -9, high: int = 9) -> Feed:
    return Feed(RNG.integers(low, high, shape).astype(kind))


def step(*shape: int, kind: str = "uint8") -> Feed:
    span = np.iinfo(kind)
    return Feed(RNG.integers(span.min, span.max + 1, shape).astype(kind))


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


SHAPES = [
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 2, 3, 4), (1, 3, 2, 4, 5)),
]
MATMULS = {
    f"matmul {list(a)} @ {list(b)}, {name}": Case("MatMul", [left(a), right(b)], {}, 13, tolerance=5e-6)
    for a, b in SHAPES
    for name, left, right in (
        ("tensors", tuple, tuple),
        ("constant second", tuple, lambda s: f(*s)),
        ("constant first", lambda s: f(*s), tuple),
        ("ints", lambda s: whole(*s), lambda s: whole(*s)),
    )
}
GEMMS = {
    f"gemm {trans} {name} {len(c) if c is not None else 'no'}": Case(
        "Gemm",
        [(4, 3) if trans[0] else (3, 4), b(*((5, 4) if trans[1] else (4, 5))), *([] if c is None else [third(*c)])],
        {"transA": trans[0], "transB": trans[1], "alpha": 0.5, "beta": 0.3},
        13,
    )
    for trans in ((0, 0), (0, 1), (1, 0), (1, 1))
    for name, b, third in (
        ("constants", f, f),
        ("tensors", lambda *s: s, lambda *s: s),
        ("a tensor added", f, lambda *s: s),
        ("a constant added", lambda *s: s, f),
    )
    for c in (None, (), (5,), (1, 5), (3, 1), (3, 5), (1, 1))
}
MORE_GEMMS = {
    "gemm, nothing scaled": Case("Gemm", [(3, 4), (4, 5), (3, 5)]),
    "gemm, beta 0": Case("Gemm", [(3, 4), (4, 5), (3, 5)], {"beta": 0.0}),
}
INTEGERS = {
    "matmul": Case("MatMulInteger", [step(3, 4), step(4, 5)], {}, 10),
    "matmul, int8": Case("MatMulInteger", [step(3, 4, kind="int8"), step(4, 5, kind="int8")], {}, 10),
    "matmul, constant": Case("MatMulInteger", [step(3, 4), step(4, 5).values], {}, 10),
    "matmul, zero points": Case(
        "MatMulInteger", [step(3, 4), step(4, 5).values, np.array(130, np.uint8), np.array(7, np.uint8)], {}, 10
    ),
    "matmul, zero points of tensors": Case(
        "MatMulInteger", [step(3, 4), step(4, 5), Feed(np.array(130, np.uint8)), Feed(np.array(7, np.uint8))], {}, 10
    ),
    "matmul, zero point per column": Case(
        "MatMulInteger", [step(2, 3, 4), step(4, 5).values, np.array(130, np.uint8), step(5).values], {}, 10
    ),
    "matmul, long sums": Case("MatMulInteger", [step(3, 3000), step(3000, 5), np.array(3, np.uint8)], {}, 10),
    "matmul, long constant sums": Case("MatMulInteger", [step(3, 3000), step(3000, 5, kind="int8").values], {}, 10),
    "conv": Case("ConvInteger", [step(1, 3, 6, 7), step(4, 3, 3, 3)], {"pads": [1, 1, 1, 1]}, 10),
    "conv, zero points": Case(
        "ConvInteger",
        [step(1, 3, 6, 7), step(4, 3, 3, 3).values, np.array(130, np.uint8), np.array(7, np.uint8)],
        {"pads": [1, 1, 1, 1], "strides": [2, 2]},
        10,
    ),
    "conv, groups": Case("ConvInteger", [step(1, 4, 6, 7), step(4, 2, 3, 3).values], {"group": 2}, 10),
    "conv, long sums": Case("ConvInteger", [step(1, 64, 6, 7), step(4, 64, 3, 3), np.array(130, np.uint8)], {}, 10),
}
KINDS = (
    "ReduceMean",
    "ReduceSum",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
)
REDUCTIONS = {
    f"{kind}, {name}": Case(kind, inputs, attributes, 18, tolerance=5e-6, low=0.5)
    for kind in KINDS
    for name, inputs, attributes in (
        ("one axis", [X, i64(1)], {}),
        ("axes from the end", [X, i64(-1, -3)], {"keepdims": 0}),
        ("all axes", [(2, 3), i64(1, 0)], {"keepdims": 0}),
        ("no axes given", [(2, 3)], {}),
        ("no axes, nothing dropped", [(2, 3)], {"keepdims": 0}),
        ("of a scalar", [()], {"keepdims": 0}),
    )
}
OLD_REDUCTIONS = {
    f"{kind}, axes of an attribute": Case(kind, [X], {"axes": [2]}, 11, tolerance=5e-6, low=0.5) for kind in KINDS
}
MORE_REDUCTIONS = {
    **{
        f"{kind} of {name}": Case(kind, [whole(3, 4, 5, kind=name), i64(1)], {}, 18)
        for kind in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean")
        for name in ("int32", "int64")
        if (kind, name) not in (("ReduceMean", "int64"),)
    },
    **{
        f"{kind} of bool": Case(kind, [Feed(RNG.integers(0, 2, (3, 4, 5)).astype(bool)), i64(1)], {}, 20)
        for kind in ("ReduceMax", "ReduceMin")
    },
    **{
        f"{kind} of int8": Case(kind, [whole(3, 4, 5, kind="int8"), i64(2)], {}, 18)
        for kind in ("ReduceMax", "ReduceMin")
    },
    "nothing to do": Case("ReduceSum", [X, i64()], {"noop_with_empty_axes": 1}, 13),
    "log of large sums": Case("ReduceLogSumExp", [X, i64(1)], {}, 18, low=-90, high=90),
}
CASES = {
    f"{family}: {name}": case
    for family, cases in {
        "matmul": MATMULS,
        "gemm": {**GEMMS, **MORE_GEMMS},
        "integers": INTEGERS,
        "reductions": {**REDUCTIONS, **OLD_REDUCTIONS, **MORE_REDUCTIONS},
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_products_equal_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("integers")])
def test_integer_products_are_exact(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    wanted = by_runtime(saved(case.proto(), tmp_path), case.feeds())["y0"]
    assert (by_litert(imported(case.proto(), tmp_path), case.feeds())["y0"] == wanted).all()


REFUSED = {
    "matmul": (Case("MatMul", [(3, 4), (5, 6)]), ModelError, "do not fit each other"),
    "ints": (Case("MatMul", [whole(300, 300), whole(300, 300)]), UnsupportedError, "up to 4194304 are converted"),
    "sums": (
        Case("MatMulInteger", [step(1, 5000), step(5000, 1)], {}, 10),
        UnsupportedError,
        "float arithmetic is exact",
    ),
    "axis": (Case("ReduceSum", [X, i64(4)], {}, 13), ModelError, "axis 4 is outside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str, tmp_path: Path) -> None:
    case, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        imported(case.proto(), tmp_path)
