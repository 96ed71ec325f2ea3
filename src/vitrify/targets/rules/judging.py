"""Judges every node of a graph by the rules of a target's family: the verdicts, each with all the rules it breaks."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, cast

from vitrify.ir import Graph, Node
from vitrify.targets.base import Target
from vitrify.targets.placement import Confidence, Place, Reason, Verdict
from vitrify.targets.rules.rule import Breach, Rule, Variant, applying, rules_of

_ORDER: Sequence[Confidence] = ("compiler", "documented", "observed", "inferred", "unknown")


class Family(Protocol):
    """What the package of a family gives beside its rules."""

    def variant(self, core: str) -> Variant:
        """Return the limits of a core."""
        ...

    def settle(self, graph: Graph, broken: Mapping[Node, Sequence[Reason]], core: str) -> dict[Node, Place]:
        """Return the place of every node, once it is known which nodes break rules."""
        ...


def judge(graph: Graph, target: Target) -> list[Verdict]:
    """Return the verdict on every node, in the graph's order."""
    broken = reasons(graph, target)
    places = _family(target).settle(graph, broken, target.core)
    return [_verdict(node, places[node], broken.get(node, ())) for node in graph]


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
                  nearest=breach.nearest, fix=rule.fix, source=rule.source, confidence=rule.confidence,
                  versions=rule.versions)


def _verdict(node: Node, place: Place, broken: Sequence[Reason]) -> Verdict:
    shown = tuple(broken) if place == "cpu" else ()
    least: Confidence = max((reason.confidence for reason in shown), key=_ORDER.index, default="documented")
    return Verdict(node=node.name, operator=node.op.kind, placement=place, rules=shown, confidence=least,
                   origin=tuple(source.name for source in node.origin.sources))
