"""Transposes that a converter left between channels-first and channels-last."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import bytes_text
from vitrify.ir import Node
from vitrify.pipeline.checking.diagnosing.borders import fixing
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis

INTEGERS = ("int8", "int8-float-io", "int16x8", "int8-int16")
"""Kinds that a fix turns as they are; others are turned when they are quantized."""
_TURNS = ((0, 2, 3, 1), (0, 3, 1, 2))


@diagnosis("layout.transposes", says="the graph is channels-last throughout", rules=("transpose", "wide-transpose"),
           why="TFLite and the NPU compute channels-last; each transpose between the layouts of a PyTorch model and "
               "theirs only moves bytes", help="vitrify quantize FLOAT_MODEL --data FOLDER -o OUT.tflite")
def transposes(case: Case) -> Iterator[Diagnosis]:
    """TRANSPOSE between the two layouts."""
    nodes = [node for node in case.graph if _is_turn(node)] if case.is_tflite else []
    if nodes:
        moved = sum(node.output.nbytes for node in nodes)
        left = sum(case.verdicts[node].placement == "cpu" for node in nodes)
        side = f"{left} on the CPU" if left else "none on the CPU"
        command = case.quantize
        if case.kind in INTEGERS:      # one alone has nothing to meet
            command = fixing(case) if len(nodes) > 1 else ""
        yield Diagnosis(headline=f"{len(nodes)} TRANSPOSE between channels-first and channels-last move "
                                 f"{bytes_text(moved)} at each run, {side}", nodes=nodes, command=command)


def _is_turn(node: Node) -> bool:
    order = node.optional(1) if node.op.kind == "TRANSPOSE" else None
    return order is not None and order.data is not None and tuple(order.data.reshape(-1).tolist()) in _TURNS
