"""What a node reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vitrify.ir import Graph, Node, Tensor
from vitrify.results.profiling import ProfiledRow
from vitrify.targets.cost import node_macs


class Sizes(NamedTuple):
    """Bytes of the values that a node reads, of those that it writes, and of its constants."""

    inputs: int
    outputs: int
    weights: int

    @property
    def all(self) -> int:
        """All of them."""
        return self.inputs + self.outputs + self.weights


def sizes(node: Node) -> Sizes:
    """Return what ``node`` reads and writes; a tensor that it reads twice counts once."""
    read = {id(tensor): tensor for tensor in node.inputs if tensor is not None}.values()
    return Sizes(sum(t.nbytes for t in read if not t.is_constant), sum(t.nbytes for t in node.outputs),
                 sum(t.nbytes for t in read if t.is_constant))


def describe(row: ProfiledRow, node: Node) -> None:
    """Fill in what the node itself tells."""
    found = sizes(node)
    row.input_bytes, row.output_bytes, row.weight_bytes, row.bytes = *found, found.all
    row.macs = node_macs(node)
    row.origin = list(dict.fromkeys(source.name for source in node.origin.sources))
    made: Tensor | None = node.outputs[0] if node.outputs else None
    if made is not None:
        row.shape, row.dtype = list(made.shape), made.dtype.label


def share_out(rows: list[ProfiledRow]) -> None:
    """Fill in each row's share of the time of all."""
    whole = sum(row.time_ms or 0.0 for row in rows)
    for row in rows:
        row.share = None if row.time_ms is None or not whole else row.time_ms / whole


def link(rows: Sequence[ProfiledRow], graph: Graph) -> None:
    """Fill in after which operators of ``graph`` each one runs; there is a row for each node, in order."""
    place = {node: index for index, node in enumerate(graph)}
    for row, node in zip(rows, place, strict=True):
        makers = [tensor.producer for tensor in node.inputs if tensor is not None and tensor.producer is not None]
        row.after = sorted({place[maker] for maker in makers if maker in place})
