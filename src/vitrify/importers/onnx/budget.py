"""How much arithmetic an import may do: what is computed from constants must not take minutes, nor hide in one call.

An operation is what numpy does in about a nanosecond: one element added, or 32 multiply-accumulates of a
float matrix product. The figures are estimates, made from shapes before anything is computed.
"""

from __future__ import annotations

from vitrify.core.errors import UnsupportedError
from vitrify.core.findings import Finding
from vitrify.importers.onnx.source import SourceNode

MOST_OPERATIONS = 2_500_000_000
"""For one node."""
MOST_TOGETHER = 10_000_000_000
"""For all that one import computes."""


class Budget:
    """What was computed so far, and whether more may be."""

    def __init__(self) -> None:
        self.spent = 0

    def takes(self, operations: int) -> bool:
        """Count a node's operations if they may be done; False when they are too many."""
        if operations > MOST_OPERATIONS or self.spent + operations > MOST_TOGETHER:
            return False
        self.spent += operations
        return True


def too_much(node: SourceNode, operations: int, spent: int, why: str = "") -> UnsupportedError:
    """What to say of a node that would take too long to compute, and that no operator does at run time: ``why``."""
    alone = operations > MOST_OPERATIONS
    together = f"{MOST_TOGETHER:,} are done for all nodes together, {spent:,} of them before it"
    limit = f"{MOST_OPERATIONS:,} are done for one node" if alone else together
    return UnsupportedError(
        Finding(
            code="onnx.constant-cost",
            headline=f"{node.shown}: its inputs are constants, and to compute it takes about {operations:,} "
            f"operations; at most {limit}",
            where=f"node '{node.label}'",
            why=f"nor can it be done at run time: {why}" if why else "no operator does it at run time either",
            help="compute it once and save the result in the model: onnxsim model.onnx smaller.onnx, or ONNX Runtime "
            "with SessionOptions.optimized_model_filepath; or make it an input",
        )
    )
