"""The numpy references of quantized operators equal LiteRT's reference kernels to the bit, on random data."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import ai_edge_litert
import integer_runs as runs
import numpy as np
import pytest
from integer_draw import DRAWS
from integer_page import CASES, COMMAND, measure_of, measured, page, rows_of

from scale import examples
from vitrify.core.errors import UnsupportedError
from vitrify.ir import DType, Graph, Quantization, Tensor
from vitrify.ops import FloorMod, Rsqrt
from vitrify.ops.evaluate import evaluate_graph
from vitrify.ops.reference.integer import operators

COUNT = examples(CASES)
PAGE = Path(__file__).parents[2] / "docs" / "integer_arithmetic.md"


@cache
def _litert(kernels: str) -> dict[str, list[runs.Outcome]]:
    """What LiteRT gives for every case, from one process."""
    labels = [label for label in DRAWS if runs.kernels_of(label) == kernels]
    outcomes = iter(runs.in_litert([made for label in labels for made in runs.cases(label, COUNT)], kernels))
    return {label: [next(outcomes) for _ in range(COUNT)] for label in labels}


@pytest.mark.parametrize("label", DRAWS)
def test_equals_litert_to_the_bit(label: str) -> None:
    made = runs.cases(label, COUNT)
    outcomes = _litert(runs.kernels_of(label))[label]
    refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert not refused, refused[0]
    for number, (case, theirs) in enumerate(zip(made, outcomes, strict=True)):
        (ours,) = runs.in_numpy([case])
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"case {number}")


def test_every_kernel_is_compared() -> None:
    compared = {type(node.op) for label in DRAWS for made in runs.cases(label, 1) for node in made[0].main}
    assert {op.name for op in operators() if op not in compared} <= runs.NOT_DRAWN


def _graph(op, *quantizations: Quantization, dtype: DType = DType.INT8) -> Graph:
    graph = Graph()
    graph.inputs = [Tensor(f"x{i}", dtype, (3,), quantization=q) for i, q in enumerate(quantizations)]
    node = graph.add(op, graph.inputs)
    node.output.quantization = quantizations[0]
    graph.set_outputs(node.outputs)
    return graph


def test_operators_without_a_kernel_are_refused() -> None:
    q = Quantization.per_tensor(0.1)
    with pytest.raises(UnsupportedError, match="FLOOR_MOD has no integer kernel"):
        evaluate_graph(_graph(FloorMod(), q, q), [np.ones(3, np.int8)] * 2)


def test_roots_of_negative_values_are_refused() -> None:
    graph = _graph(Rsqrt(), Quantization.per_tensor(0.1, 3))
    with pytest.raises(UnsupportedError, match="not defined for the values below zero"):
        evaluate_graph(graph, [np.array([2, 3, 4], np.int8)])


def test_the_page_says_so() -> None:
    """The page in docs has a row for every kind of case, and what it says of exactness holds."""
    if os.environ.get("VITRIFY_WRITE_PAGES"):
        PAGE.write_text(page(ai_edge_litert.__version__, platform.machine(), measured()))
    wanted = sorted((*label.rsplit(" ", 1), str(CASES), measure_of(label)) for label in DRAWS)
    assert sorted(rows_of(PAGE.read_text())) == wanted, f"the page is out of date; write it anew: {COMMAND}"
