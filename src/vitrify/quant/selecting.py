"""What a recipe's overrides select in a graph; one that selects nothing is a mistake, and is told with what is near."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding
from vitrify.ir import Graph
from vitrify.quant.calibration.calibrators import maker_of, node_names, tensor_names
from vitrify.quant.overruling import Selected, refuse_contradictions
from vitrify.quant.recipe import Override, Recipe

BETWEEN = ".."
SHOWN = 3
"""How many names, operators or modules near what was written are given."""

Names = tuple[str, ...]


def settled(recipe: Recipe, graph: Graph) -> Recipe:
    """Return the recipe with its ranges of nodes written out for a graph.

    Raises:
        UsageError: overrides that select nothing, or contradict each other; names them all.
    """
    if not recipe.overrides:
        return recipe
    nodes = _nodes(graph)
    problems: list[Finding] = []
    made: list[Override] = []
    for number, rule in enumerate(recipe.overrides, 1):
        where = f"override {number}"
        written = _written_out(rule, [names for names, _ in nodes], where, problems)
        made.append(written)
        if written is rule and not rule.tensor and not any(rule.matches(names, kind) for names, kind in nodes):
            problems.append(_nothing(rule, nodes, where))
        if rule.tensor and not _tensors_of(written, graph):
            problems.append(_no_tensor(rule, graph, where))
    if problems:
        raise UsageError(problems)
    recipe = msgspec.structs.replace(recipe, overrides=tuple(made))
    refuse_contradictions(recipe, selected(recipe, graph))
    return recipe


def selected(recipe: Recipe, graph: Graph) -> list[Selected]:
    """What each override of a settled recipe selects: nodes by their first name, or tensors."""
    nodes = _nodes(graph)
    return [_tensors_of(rule, graph) if rule.tensor else
            frozenset(names[0] for names, kind in nodes if rule.matches(names, kind)) for rule in recipe.overrides]


def _nodes(graph: Graph) -> list[tuple[Names, str]]:
    """The names and operators of all nodes, and of inputs, which have calibrators too."""
    return [*((node_names(node), node.op.kind) for node in graph), *(((t.name,), "") for t in graph.inputs)]


def _tensors_of(rule: Override, graph: Graph) -> Selected:
    """The tensors that an override of tensors selects."""
    found = [*graph.inputs, *(t for node in graph for t in node.outputs)]
    return frozenset(t.name for t in found if rule.matches(*maker_of(t), tensor_names(t)))


def _no_tensor(rule: Override, graph: Graph, where: str) -> Finding:
    known = [t.name for t in (*graph.inputs, *(t for node in graph for t in node.outputs))]
    return Finding(code="recipe.unmatched", where=where, headline=f"tensor '{rule.tensor}' selects no tensor",
                   help=_near(rule.tensor.strip("*?"), known).replace("nodes are called", "tensors are called"))


def _written_out(rule: Override, nodes: Sequence[Names], where: str, problems: list[Finding]) -> Override:
    """Put the nodes of ``FIRST..LAST`` in its place."""
    first, between, last = rule.partition.partition(BETWEEN)
    if not between:
        return rule
    at = [next((k for k, names in enumerate(nodes) if name in names), None) for name in (first, last)]
    known = [n for names in nodes for n in names]
    for name, place in zip((first, last), at, strict=True):
        if place is None:
            problems.append(Finding(code="recipe.unmatched", where=where, help=_near(name, known),
                                    headline=f"partition '{rule.partition}': there is no node '{name}'"))
    if at[0] is None or at[1] is None:
        return msgspec.structs.replace(rule, partition="")
    if at[1] < at[0]:
        problems.append(Finding(code="recipe.reversed", where=where, help=f"write {last}{BETWEEN}{first}",
                                headline=f"partition '{rule.partition}': '{last}' comes before '{first}'"))
    inside = tuple(names[0] for names in nodes[at[0]:at[1] + 1])
    return msgspec.structs.replace(rule, partition="", nodes=inside)


def _nothing(rule: Override, nodes: Sequence[tuple[Names, str]], where: str) -> Finding:
    """Say which part of an override selects nothing, and what comes near to it."""
    known = [n for names, _ in nodes for n in names]
    kinds = sorted({kind for _, kind in nodes if kind})
    said = [f"{key} '{value}'" for key in ("name", "operator", "partition") if (value := getattr(rule, key))]
    said += [f"nodes {', '.join(map(repr, rule.nodes[:SHOWN]))}"] if rule.nodes else []
    helps = []
    if rule.operator and rule.operator.upper() not in kinds:
        helps.append(f"operators of the model are {', '.join(kinds)}")
    if rule.name and not any(Override(name=rule.name).matches(names, "") for names, _ in nodes):
        helps.append(_near(rule.name.strip("*?"), known))
    if rule.partition and not any(Override(partition=rule.partition).matches(names, "") for names, _ in nodes):
        helps.append(_near(rule.partition, _modules(known)))
    if rule.nodes:
        helps += [_near(name, known) for name in rule.nodes[:SHOWN] if name not in known]
    return Finding(code="recipe.unmatched", where=where, headline=f"{' with '.join(said)} selects no node",
                   help="; ".join(helps) or "each part selects some, but none together")


def _near(name: str, known: Sequence[str]) -> str:
    """Name what is spelled like, or holds, a name."""
    alike = get_close_matches(name, known, SHOWN, 0.5) or [n for n in known if name.lower() in n.lower()][:SHOWN]
    shown = alike or list(dict.fromkeys(known))[:SHOWN]
    return f"{'near are' if alike else 'nodes are called'} {', '.join(map(repr, dict.fromkeys(shown)))}"


def _modules(known: Sequence[str]) -> list[str]:
    """The paths above the nodes' names."""
    found: dict[str, None] = {}
    for name in known:
        parts = name.strip("/").replace("/", ".").split(".")
        found |= dict.fromkeys(".".join(parts[:k]) for k in range(1, len(parts) + 1))
    return list(found)
