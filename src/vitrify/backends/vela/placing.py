"""Joins the compiler's database, its printed reasons and its result into verdicts on the user's nodes.

Three witnesses: the queue of the command streams (on the NPU), the operators left in the result (on the CPU), and the
absence of both (folded). What is printed is believed only where a node is on the CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

from vitrify.backends.vela.compiled import CompiledFile
from vitrify.backends.vela.database import Database, Perf
from vitrify.backends.vela.messages import Message, reasons_for
from vitrify.ir import Graph, Node
from vitrify.targets.placement import Place, Reason, Verdict

_ASKED = Reason(code="ethos-u.kept-on-cpu", headline="it was asked to be kept there")
_UNSAID = Reason(code="ethos-u.no-reason", headline="the compiler left it on the CPU without a word")


class Placed(NamedTuple):
    """One node with its verdict and the compiler's figures for it. ``stream`` numbers its command stream."""

    node: Node
    verdict: Verdict
    perf: Sequence[Perf]
    stream: int | None

    @property
    def place(self) -> Place:
        """Where the node runs."""
        return self.verdict.placement

    @property
    def cycles(self) -> int:
        """NPU cycles of everything the node became."""
        return sum(row.cycles for row in self.perf if not row.on_cpu)


def place_nodes(graph: Graph, compiled: CompiledFile, database: Database, messages: Sequence[Message],
                ignored: Container[str] = ()) -> list[Placed]:
    """Return the nodes of ``graph`` in order, each with its verdict; operators in ``ignored`` were kept off the NPU."""
    source_at: dict[int, str] = {}
    for source, key in database.keys.items():
        source_at.setdefault(key, source)
    names = {tensor.name for tensor in graph.tensors()}
    left = Counter((operator.kind, operator.outputs[:1]) for operator in compiled.cpu)
    placed = []
    for index, node in enumerate(graph):
        source = source_at.get(index, "")
        rows = database.perf.get(source, []) if source else []
        stream = database.streams.get(source)
        place = _place(node, rows, stream, left)
        placed.append(Placed(node, _verdict(node, place, messages, names, ignored), rows, stream))
    return placed


def _place(node: Node, rows: Sequence[Perf], stream: int | None, left: Counter[tuple[str, tuple[str, ...]]]) -> Place:
    face = _face(node)
    if stream is not None:
        return "npu"
    if left[face] > 0:
        left[face] -= 1
        return "cpu"
    return "cpu" if any(row.on_cpu for row in rows) else "folded"


def _face(node: Node) -> tuple[str, tuple[str, ...]]:
    """What a node that was passed through looks like in both files."""
    return node.op.kind, tuple(tensor.name for tensor in node.outputs[:1])


def _verdict(node: Node, place: Place, messages: Sequence[Message], names: Container[str],
             ignored: Container[str]) -> Verdict:
    rules: tuple[Reason, ...] = ()
    if place == "cpu":
        rules = (_ASKED,) if node.op.kind in ignored else reasons_for(node, messages, names) or (_UNSAID,)
    return Verdict(node=node.name, operator=node.op.kind, placement=place, rules=rules,
                   origin=tuple(source.name for source in node.origin.sources))
