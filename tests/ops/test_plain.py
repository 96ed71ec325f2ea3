"""The element types that operators name in ``plain`` are those that the runtime computes with."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from ops_harness import Case, Given, model_of, run_in_children
from test_reference import CASES

from vitrify.ir import DType
from vitrify.ir.operator import REGISTRY
from vitrify.ops.plain import types, wider
from vitrify.tflite import to_bytes


def in_type(case: Case, dtype: DType) -> Case:
    """The case with every input of its data's type in ``dtype``: small whole numbers, none of them 0."""
    data = case.inputs[case.op.data].array
    inputs = []
    for given in case.inputs:
        if given is None or given.array.dtype != data.dtype or (data.dtype != np.float32 and given.constant):
            inputs.append(given)
            continue
        values = np.rint(given.array * np.float32(3 if data.dtype == np.float32 else 1))
        values = np.where(values == 0, 1, values)
        values = np.abs(values) if dtype.label.startswith("u") or case.op.name == "POW" else values
        array = given.array if dtype is DType.FLOAT32 else (values % 2 if dtype is DType.BOOL else values)
        inputs.append(Given(array.astype(dtype.numpy), given.constant, given.variable))
    return Case(case.op, *inputs, atol=case.atol, rtol=case.rtol)


def rows() -> dict[str, Case]:
    """One case per operator and element type."""
    first: dict[str, Case] = {}
    for case in CASES.values():
        data = case.inputs[case.op.data] if case.inputs else None
        if case.op.plain is not None and data is not None and data.array.dtype in (np.float32, np.int32):
            first.setdefault(case.op.name, case)
    return {
        f"{name}-{dtype.label}": in_type(case, dtype)
        for name, case in first.items()
        for dtype in sorted(case.op.plain or (), key=lambda t: t.value)
    }


ROWS = rows()


@cache
def answers() -> dict[str, list[np.ndarray] | str]:
    """What the runtime gives for every row, each in a process of its own: a type that it does not take may end it."""
    jobs = [
        (bytes(to_bytes(model_of(case))), [g.array for g in case.inputs if g and not g.constant and not g.variable])
        for case in ROWS.values()
    ]
    return dict(zip(ROWS, run_in_children(jobs), strict=True))


@pytest.mark.parametrize("row", ROWS)
def test_the_runtime_computes_in_the_type(row: str) -> None:
    case, found = ROWS[row], answers()[row]
    assert not isinstance(found, str), found
    for ours, theirs in zip(case.op.evaluate(case.arrays), found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.astype(float), theirs.astype(float), case.rtol, max(case.atol, 1e-6))


def test_every_operator_that_names_types_is_run() -> None:
    assert {op.name for op in REGISTRY.values() if op.plain is not None} == {case.op.name for case in ROWS.values()}


@pytest.mark.parametrize(("dtype", "taken", "wanted"), [
    (DType.INT8, "int8 int32", DType.INT8),
    (DType.UINT16, "int32 float32", DType.INT32),
    (DType.BOOL, "float32", DType.FLOAT32),
    (DType.INT32, "float32 int64", None),
])  # fmt: skip
def test_wider(dtype: DType, taken: str, wanted: DType | None) -> None:
    assert wider(dtype, types(taken)) is wanted
