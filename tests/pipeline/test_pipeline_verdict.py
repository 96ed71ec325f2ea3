"""The verdict sentence names what the numbers are and which part is the worst."""

from __future__ import annotations

import pytest

from vitrify.pipeline.building.verdict import sentence
from vitrify.results import ComparisonRow, ErrorRow, ModelFacts, RunRecord


def record(kind: str) -> RunRecord:
    return RunRecord(int8_model=ModelFacts(kind=kind),
                     verify_int8=ComparisonRow(name="int8", outputs=[ErrorRow(tensor="map", sqnr_db=21.0)]))


@pytest.mark.parametrize(("kind", "words"), [
    ("int8", "INT8 answers follow float"),
    ("int8-int16", "Integer (INT8 weights, partly 16-bit activations) answers follow float"),
    ("int16x8", "Integer (INT8 weights, 16-bit activations) answers follow float"),
])
def test_the_verdict_tells_how_wide_the_numbers_are(kind: str, words: str) -> None:
    assert sentence(record(kind)).startswith(f"{words} with at least 21.0 dB")
