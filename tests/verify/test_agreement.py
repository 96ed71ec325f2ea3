"""Class numbers, indices and flags are judged by how many are equal, not by a ratio of signal to error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vitrify as vt
from vitrify import ops
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.verify.agreement import Agreement
from vitrify.verify.gate import FLOAT, QUANTIZED, Gate
from vitrify.verify.judging import judge
from vitrify.verify.pairs import OutputPair

Array = np.ndarray[Any, Any]


def agreement(reference: Array, candidate: Array) -> Agreement:
    found = Agreement()
    found.add(reference, candidate)
    return found


CLASSES = np.array([[3, 3, 7, 1]])
MANY = np.arange(4000) // 9
CASES: dict[str, tuple[Array, Array, Gate, float, bool]] = {
    "equal": (CLASSES, CLASSES, FLOAT, 1.0, True),
    "one_of_four": (CLASSES, np.array([[3, 3, 7, 2]]), QUANTIZED, 0.75, True),
    "two_of_four": (CLASSES, np.array([[3, 2, 7, 2]]), QUANTIZED, 0.5, False),
    "near_in_number_is_not_near": (CLASSES, CLASSES + 1, QUANTIZED, 0.0, False),
    "one_of_thousands_in_float": (MANY, MANY + (np.arange(4000) == 8), FLOAT, 3999 / 4000, True),
    "some_in_float": (MANY, MANY + (np.arange(4000) < 9), FLOAT, 3991 / 4000, False),
    "the_only_one": (np.array([5]), np.array([6]), QUANTIZED, 0.0, False),
    "a_ranking_in_another_order": (np.array([[9, 4, 2, 7]]), np.array([[4, 9, 7, 2]]), QUANTIZED, 1.0, True),
    "a_ranking_of_others": (np.array([[9, 4, 2, 7]]), np.array([[1, 3, 5, 7]]), QUANTIZED, 0.25, False),
    "one_class_for_all": (np.array([0] * 90 + [1] * 10), np.zeros(100, int), QUANTIZED, 0.9, False),
    "flags": (np.array([True, False, True, True]), np.array([True, False, True, True]), QUANTIZED, 1.0, True),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_numbers_are_equal_or_not(name: str) -> None:
    reference, candidate, gate, share, good = CASES[name]
    pair = OutputPair("classes", "classes", agreed=agreement(reference, candidate))
    pair.sums.add(reference, candidate)
    verdict = judge("int8", [pair], [], gate)
    (row,) = verdict.outputs
    assert row.agreement == pytest.approx(share)
    assert row.ok is good
    assert row.sqnr_db is None
    assert [f.code for f in verdict.findings] == ([] if good else ["verify.agreement"])


def classifier(kind: type[ops.ArgMax] = ops.ArgMax) -> Model:
    random, graph = np.random.default_rng(2), Graph()
    x = Tensor("x", DType.FLOAT32, (1, 16))
    graph.inputs.append(x)
    weights = Tensor("w", DType.FLOAT32, (10, 16), data=random.normal(size=(10, 16)).astype(np.float32))
    bias = Tensor("b", DType.FLOAT32, (10,), data=np.zeros(10, np.float32))
    scores = graph.add(ops.FullyConnected(), [x, weights, bias], name="scores").output
    axis = Tensor("axis", DType.INT32, (), data=np.array(1, np.int32))
    graph.set_outputs([graph.add(kind(output_type=DType.INT32.value), [scores, axis], name="class").output])
    return Model([graph])


def test_an_arg_max_is_judged_on_all_samples() -> None:
    samples = np.random.default_rng(3).normal(size=(60, 16)).astype(np.float32)
    made = vt.quantize(classifier(), data=samples)
    assert made.result.ok, made.result.findings
    quality = made.result.quality
    assert quality is not None
    (row,) = quality.outputs
    assert quality.samples > 4
    assert row.agreement is not None
    assert row.agreement > 0.75
    again = vt.verify(classifier(), made, data=samples)
    assert again.ok
    assert again.samples == 60
    assert again.stages[0].outputs[0].agreement is not None
    found = vt.quantize(classifier(), data=samples, target_quality="agreement>=90")
    assert "quant.reached" in {f.code for f in found.result.findings}
