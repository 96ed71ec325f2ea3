"""Decoding and suppression of boxes in the graph."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ir import Node
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis

_SUPPRESSING = ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "TFLite_Detection_PostProcess", "TOPK_V2",
                "GATHER_ND", "WHERE", "UNIQUE", "NMS")


@diagnosis("head.decode", says="choosing and suppressing boxes is left to the application", rules=(
           "unsupported-operator", "gather-axis", "tensor-type", "float-tensor"),
           why="such operators compute with indices and sorted lists, which no NPU does; they are small and come last")
def decode(case: Case) -> Iterator[Diagnosis]:
    """Operators that choose among boxes, and what follows them on the CPU; of a float model its integer form tells."""
    if case.is_float:
        return
    heads = [node for node in case.graph if node.op.kind in _SUPPRESSING and case.verdicts[node].placement == "cpu"]
    if not heads:
        return
    tail = _behind(case, heads)
    last = not any(case.verdicts[node].placement == "npu" for node in tail)
    where = "at the end of the graph" if last else "and the NPU goes on behind them"
    yield Diagnosis(headline=f"{', '.join(dict.fromkeys(n.op.kind for n in heads))} and what follows, "
                             f"{counted(len(tail), 'operator')}, choose among boxes on the CPU, {where}", nodes=tail)


def _behind(case: Case, heads: list[Node]) -> list[Node]:
    """The nodes themselves and all that their results reach, in order."""
    found = set(heads)
    for node in case.graph:
        if any(t is not None and t.producer in found for t in node.inputs):
            found.add(node)
    return [node for node in case.graph if node in found]
