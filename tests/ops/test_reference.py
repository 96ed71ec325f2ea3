"""Inference, reference and runtime agree on every row of every family's table."""

import numpy as np
import ops_cases_elementwise
import ops_cases_recurrent
import ops_cases_shape
import ops_cases_window
import pytest
from ops_harness import model_of, run

from vitrify.ir import DType

CASES = ops_cases_elementwise.CASES | ops_cases_shape.CASES | ops_cases_window.CASES | ops_cases_recurrent.CASES


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_agrees_with_the_runtime(case):
    inferred = case.op.infer([t and t.__class__(t.name, t.dtype, t.shape, data=t.data) for t in case.tensors()])
    evaluated = case.op.evaluate(case.arrays)
    assert [(DType.of(a.dtype), a.shape) for a in evaluated] == inferred
    model = model_of(case)
    answers = run(model, [given.array for given in case.inputs if given and not given.constant and not given.variable])
    assert [(DType.of(a.dtype), a.shape) for a in answers] == inferred
    for ours, theirs in zip(evaluated, answers, strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=case.rtol, atol=case.atol)
        else:
            np.testing.assert_array_equal(ours, theirs)
