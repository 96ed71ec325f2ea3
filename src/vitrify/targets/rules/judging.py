"""Judges every node of a graph by the rules of a target's family: the verdicts, each with all the rules it breaks."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from vitrify.core.findings import Finding
from vitrify.ir import Graph, Node
from vitrify.targets.base import Target
from vitrify.targets.placement import Confidence, Place, Reason, Verdict
from vitrify.targets.rules.rows import Row
from vitrify.targets.rules.rule import Breach, Rule, Variant, applying, rules_of

_ORDER: Sequence[Confidence] = ("compiler", "documented", "observed", "inferred", "unknown")


class Family(Protocol):
    """What the package of a family gives beside its rules.

    A family may also have ``basis(node, core)``, how it is known that a node is taken, ``alone(graph, broken, core)``,
    the reasons that nodes have by what stands around them, and ``cautions(graph, target)``, findings on a whole graph.
    """

    def variant(self, core: str) -> Variant:
        """Return the limits of a core."""
        ...

    def settle(self, graph: Graph, broken: Mapping[Node, Sequence[Reason]], core: str) -> dict[Node, Place]:
        """Return the place of every node, once it is known which nodes break rules."""
        ...


class Basis(NamedTuple):
    """How it is known that a node is taken: how far to believe it, and who says so."""

    confidence: Confidence
    source: str


_PLAIN = Basis("documented", "")


def judge(graph: Graph, target: Target) -> list[Verdict]:
    """Return the verdict on every node, in the graph's order."""
    family, broken = _family(target), reasons(graph, target)
    alone = getattr(family, "alone", None)
    if alone is not None:
        broken |= {node: (_reason(*found),) for node, found in alone(graph, broken, target.core).items()}
    places = family.settle(graph, broken, target.core)
    basis = getattr(family, "basis", None)
    return [_verdict(node, places[node], broken.get(node, ()), basis(node, target.core) if basis else _PLAIN)
            for node in graph]


def cautions(graph: Graph, target: Target) -> list[Finding]:
    """Return what the family has to say on the graph as a whole, beside the verdicts."""
    found = getattr(_family(target), "cautions", None)
    return [] if found is None else list(found(graph, target))


def known(operator: str, target: Target) -> Row:
    """Return what is known of an operator of the schema on a target: whether it is taken in some form, and how."""
    family = _family(target)
    row = getattr(family, "row", None)
    if row is not None:
        return cast(Row, row(operator, target.core))
    listed: frozenset[str] = getattr(family, "operators")(target.core)  # noqa: B009
    return Row(taken="yes" if operator in listed else "no", confidence="documented", source="the compiler's own report")


def limits(target: Target) -> dict[str, int]:
    """Return the limits of the target's core by name."""
    return _family(target).variant(target.core).limits


def reasons(graph: Iterable[Node], target: Target) -> dict[Node, tuple[Reason, ...]]:
    """Return the rules that nodes break, all of them, of the nodes that break any: those of a graph, or some of it."""
    variant = _family(target).variant(target.core)
    rules = applying(rules_of(target.family), target.core)
    for_all = rules.get("", ())
    found: dict[Node, tuple[Reason, ...]] = {}
    for node in graph:
        broken = tuple(_reason(rule, breach) for rule in (*for_all, *rules.get(node.op.kind, ()))
                       for breach in rule.breaches(node, variant))
        if broken:
            found[node] = broken
    return found


def _family(target: Target) -> Family:
    return cast(Family, importlib.import_module(f"vitrify.targets.{target.family}"))


def _reason(rule: Rule, breach: Breach) -> Reason:
    return Reason(code=rule.code, headline=breach.headline, why=rule.why, help=rule.help, values=dict(breach.values),
                  nearest=breach.nearest, fix=rule.fix, source=breach.source or rule.source,
                  confidence=breach.confidence or rule.confidence, versions=breach.versions or rule.versions)


def _verdict(node: Node, place: Place, broken: Sequence[Reason], taken: Basis) -> Verdict:
    """A node on the CPU is there for the reason that is best known, since one is enough."""
    shown = tuple(broken) if place == "cpu" else ()
    best = min(shown, key=lambda reason: _ORDER.index(reason.confidence), default=None)
    basis = taken if best is None else Basis(best.confidence, best.source)
    return Verdict(node=node.name, operator=node.op.kind, placement=place, rules=shown, confidence=basis.confidence,
                   source=basis.source, origin=tuple(source.name for source in node.origin.sources))
