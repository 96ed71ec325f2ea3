"""What a pass is, how tables of passes run, and how each run is written into the ledger.

Design rule: a pass says how many places it changed; 0 means that the graph is untouched. A pass whose graph is not
whole afterwards is undone, and the ledger says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from vitrify import ops
from vitrify.ir import Exactness, Graph, Ledger, LedgerEntry, Model, Node, Tensor
from vitrify.ir.operator import Operator
from vitrify.ir.origin import Origin, join
from vitrify.ir.validation import problems
from vitrify.passes.snapshot import Snapshot

EXAMPLES = 5
"""How many of the user's nodes a ledger line names."""


class Pass:
    """One rewrite. Subclasses give ``name``, a docstring with Before and After, ``exactness`` and ``run``."""

    name: ClassVar[str] = ""
    exactness: ClassVar[Exactness] = Exactness.EXACT
    kinds: ClassVar[tuple[type[Operator], ...]] = ()
    """The operators that it starts from; a graph without them is not searched. Empty: any graph."""

    def __init__(self) -> None:
        self.touched: dict[str, None] = {}
        self.note = ""

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (type(self).__doc__ or "").strip().splitlines()[0]

    def run(self, graph: Graph) -> int:
        """Rewrite ``graph``; returns the number of places changed."""
        return sum(self._visit(graph, node) for node in graph.nodes_of(*self.kinds) if node.graph is graph)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Rewrite at one node of ``kinds``; True when something changed. Used unless ``run`` is overridden."""
        raise TypeError(f"{type(self).__name__} has neither run nor rewrite")

    def _visit(self, graph: Graph, node: Node) -> int:
        origin = node.origin
        if not self.rewrite(graph, node):
            return 0
        self.touch(str(origin) if origin.sources else "")
        return 1

    def touch(self, label: str) -> None:
        """Remember one of the user's nodes as an example for the ledger."""
        if label and len(self.touched) < EXAMPLES:
            self.touched[label] = None

    def made(self, *parts: Node | Tensor | None) -> Origin:
        """The origin of something made from ``parts`` by this pass."""
        return join((p.origin for p in parts if p is not None), by=self.name)

    def insert(self, graph: Graph, op: Operator, inputs: Sequence[Tensor | None], name: str, before: Node,
               *parts: Node | None) -> Tensor:
        """Add a node before another; its result has no origin, as no tensor of the source holds these values."""
        result = graph.add(op, inputs, name=name, origin=self.made(*parts), before=before).output
        result.origin = Origin()
        return result


def transposes(graphs: Iterable[Graph]) -> int:
    """Count the TRANSPOSE nodes."""
    return sum(graph.count(ops.Transpose) for graph in graphs)


class Runner:
    """Runs passes over one model and writes the ledger.

    A pass that found nothing to do is not asked again before the model has changed. ``most`` lines of the ledger are
    written at most: the rest of the passes then change nothing.
    """

    def __init__(self, model: Model, ledger: Ledger | None = None, most: int | None = None) -> None:
        self.model, self.most = model, most
        self.ledger = Ledger() if ledger is None else ledger
        self._before: Snapshot | None = None       # of the model as it is now, while nothing changes it
        self._settled: set[type[Pass]] = set()     # found nothing in the model as it is now

    def apply(self, one: Pass) -> int:
        """Run one pass over all graphs, check them, and write the ledger; returns the number of places changed.

        A pass after which a graph is not whole is undone; its ledger line then says why and counts no change.
        """
        graphs = self.model.graphs
        if type(one) in self._settled or not self._concerns(one):
            return 0
        if self.most is not None and len(self.ledger.entries) >= self.most:
            return 0
        if self._before is None:
            self._before = Snapshot(self.model)
        nodes, turns = sum(map(len, graphs)), transposes(graphs)
        changes = sum(one.run(graph) for graph in graphs)
        if not changes:
            self._settled.add(type(one))
            return 0
        broken = [finding for graph in graphs for finding in problems(graph)]
        if broken:
            self._before.restore()
            one.note = f"undone: {broken[0].headline} ({broken[0].where})"
            changes = 0
        self._before = None
        self._settled = {type(one)} if broken else set()
        self.ledger.add(LedgerEntry(
            name=one.name, summary=one.summary, changes=changes, nodes_before=nodes, nodes_after=sum(map(len, graphs)),
            exactness=one.exactness, transposes_before=turns, transposes_after=transposes(graphs),
            examples=list(one.touched), note=one.note))
        return changes

    def run(self, table: Sequence[type[Pass]], rounds: int = 8) -> int:
        """Run the passes of a table in order, again and again until none changes anything; returns the changes."""
        total = 0
        for _ in range(rounds):
            changed = sum(self.apply(kind()) for kind in table if kind not in self._settled)
            total += changed
            if not changed:
                break
        return total

    def _concerns(self, one: Pass) -> bool:
        """True when some graph has an operator from which the pass starts."""
        return not one.kinds or any(graph.count(*one.kinds) for graph in self.model.graphs)
