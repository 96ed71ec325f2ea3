"""The cells of sequence LSTMs, which no tensor of the graph holds: computed beside it, for their range."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Node
from vitrify.ops import UnidirectionalSequenceLSTM
from vitrify.ops.reference.recurrent import LstmWeights, lstm_steps

Array = np.ndarray[Any, np.dtype[Any]]


def cell_key(node: Node) -> str:
    """The name of a layer's cells in the statistics."""
    return f"{node.name}/cell"


def largest_cell(node: Node, x: Array) -> float:
    """The largest magnitude that a cell of a layer takes while it reads ``x``."""
    op = node.op
    assert isinstance(op, UnidirectionalSequenceLSTM)
    data = [t.data if (t := node.optional(i)) is not None else None for i in range(16)]
    weights = LstmWeights(data[1:5], data[5:9], (None, None, None), data[12:16], None, None)
    ordered = x if op.time_major else x.swapaxes(0, 1)
    recurrent, inner = data[6], data[2]
    assert recurrent is not None
    assert inner is not None
    zeros = np.zeros((ordered.shape[1], recurrent.shape[1]), np.float32)
    cells = np.zeros((ordered.shape[1], inner.shape[0]), np.float32)
    with np.errstate(over="ignore"):
        steps = lstm_steps(ordered, weights, zeros, cells, op.fused_activation_function, 0.0, 0.0)
        return max((float(np.abs(cell).max(initial=0.0)) for _, cell in steps), default=0.0)
