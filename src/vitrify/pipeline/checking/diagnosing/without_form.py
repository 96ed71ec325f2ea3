"""Operators that have no integer form and keep a float model from being quantized in full."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis

REFUSED = "quant.no_int8"


@diagnosis("float.no-integer-form", says="every operator has an integer form", rules=("unsupported-operator",),
           why="the quantizer keeps such an operator in float only when it is told to, since it cuts the integer graph "
               "in two", help="name them in a recipe: [[overrides]] operator = \"KIND\", activations = \"float\"")
def without_form(case: Case) -> Iterator[Diagnosis]:
    """What the quantizer refused."""
    for finding in case.refusals:
        if finding.code == REFUSED:
            named = [node for node in case.graph if f"'{node.name}'" in finding.where]
            yield Diagnosis(headline=finding.headline, nodes=named, where=finding.where)
