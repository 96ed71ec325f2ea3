"""What a node costs, counted from its types alone; no chip is known here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node

MOST_OPERATIONS = 2_500_000_000
"""Of one node that is computed ahead of time, some seconds."""
_PASSES = 4      # over what is read and made, by numpy
_SORTING = 16
_BY_LIBRARY = {"FULLY_CONNECTED": 32, "BATCH_MATMUL": 32, "CONV_2D": 8, "CONV_3D": 8, "TRANSPOSE_CONV": 8}


@dataclass(frozen=True)
class Cost:
    """Multiply-accumulates, and the bytes of activations read and written and of constants read, each tensor once."""

    macs: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    weight_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.macs + other.macs, self.input_bytes + other.input_bytes,
                    self.output_bytes + other.output_bytes, self.weight_bytes + other.weight_bytes)

    @classmethod
    def of(cls, node: Node) -> Cost:
        """Count one node."""
        read = {id(tensor): tensor for tensor in node.inputs if tensor is not None}.values()
        return cls(macs=node.op.macs(node),
                   input_bytes=sum(tensor.nbytes for tensor in read if not tensor.is_constant),
                   output_bytes=sum(tensor.nbytes for tensor in node.outputs),
                   weight_bytes=sum(tensor.nbytes for tensor in read if tensor.is_constant))


def total(nodes: Iterable[Node]) -> Cost:
    """Add up the nodes; a tensor that several of them read counts for each."""
    return sum(map(Cost.of, nodes), Cost())


def operations(node: Node) -> int:
    """Estimate what ``evaluate`` takes, in additions of numpy (about a nanosecond each)."""
    made = sum(tensor.size for tensor in node.outputs)
    read = sum(tensor.size for tensor in node.inputs if tensor is not None)
    taps: int = math.prod(getattr(node.op, name, 1) for name in ("filter_height", "filter_width"))
    macs = node.op.macs(node)
    floats = all(tensor.dtype is DType.FLOAT32 for tensor in node.outputs)
    products = macs // _BY_LIBRARY[node.op.kind] if floats and node.op.kind in _BY_LIBRARY else 2 * macs
    sorting = _SORTING * read * read.bit_length() if node.op.kind == "TOPK_V2" else 0
    return products + sorting + _PASSES * (read + made * taps)
