"""Sequence operators that were not written out in steps, and so have no int8 form: what to say of them."""

from __future__ import annotations

from vitrify.core.findings import Finding
from vitrify.ir import Node
from vitrify.ops import UnidirectionalSequenceLSTM, UnidirectionalSequenceRNN
from vitrify.ops.cells import MOST_STEPS

FORM = ("a sequence becomes int8 whole or step by step, where it starts from zeros, and has float weights, TANH or "
        "RELU, and no clipping, projection or normalization of layers")


def steps(node: Node) -> int:
    """How many steps a sequence operator takes; 0 for any other."""
    if not isinstance(node.op, UnidirectionalSequenceLSTM | UnidirectionalSequenceRNN):
        return 0
    return node.input(0).shape[0 if node.op.time_major else 1]


def too_long(node: Node) -> Finding | None:
    """A finding for a sequence of more steps than are written out."""
    found = steps(node)
    if found <= MOST_STEPS:
        return None
    source = f"; in the source {node.origin}" if node.origin.sources else ""
    return Finding(code="quant.steps", where=f"node '{node.name}'{source}",
                   headline=f"{node.op.kind} '{node.name}' has {found:,} steps; up to {MOST_STEPS:,} have an int8 form",
                   why="a sequence becomes int8 step by step, with several operators for each",
                   help=f"give the model shorter sequences, of at most {MOST_STEPS:,} steps, one after the other")
