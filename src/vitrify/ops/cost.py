"""What a node costs, counted from its types alone; no chip is known here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vitrify.ir.graph import Node


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
