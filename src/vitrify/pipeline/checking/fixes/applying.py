"""Applies fixes to a graph: at each node that breaks a rule a fix mends, or that a fix makes cheaper.

A rewritten place is kept when what it became breaks no rule that is left to nobody; else it is put back at once.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from vitrify.core.errors import VitrifyError
from vitrify.ir import Graph, Model, Node
from vitrify.passes.targets import Fix, Place, TooManyPartsError
from vitrify.pipeline.checking.fixes.state import State
from vitrify.targets import Target
from vitrify.targets.placement import Reason
from vitrify.targets.rules import reasons, rules_of
from vitrify.targets.rules.judging import limits

ROUNDS = 4
"""How often what fixes made is looked through again: a transpose in a resize in a transposed convolution is three."""
Key = tuple[str, str]
"""A fix and the name of the node that it rewrote."""


class Applied(msgspec.Struct, kw_only=True):
    """One place that was rewritten: the node as it was (``before``), and the nodes in its place now.

    A sweep over the model has no node; ``places`` counts what it changed, ``won`` the nodes that left the CPU.
    """

    fix: Fix
    node: str
    operator: str
    origin: str
    outputs: tuple[str, ...]
    codes: tuple[str, ...]
    made: tuple[str, ...]
    within: str = ""
    before: Node | None = None
    places: int = 1
    won: int = 0

    @property
    def key(self) -> Key:
        """What tells it from other places."""
        return self.fix.name, self.node


def apply_fixes(model: Model, target: Target, fixes: Sequence[Fix], excluded: Container[Key] = (),
                declined: dict[Key, str] | None = None) -> list[Applied]:
    """Rewrite the main graph of ``model`` in place; returns the places.

    ``excluded`` are places to leave alone. A place inside what another made has that one's node as ``within``. What a
    fix leaves as it is, and says why, goes to ``declined``.
    """
    graph, done = model.main, list[Applied]()
    fixes = serving(fixes, target)
    for one in fixes:
        if one.sweep is not None and (one.name, "") not in excluded:
            done += _swept(model, one, target)
    roots: dict[str, str] = {}
    tried: set[tuple[str, int]] = set()
    tables = _by_operator(fixes)
    variant = limits(target)
    for _ in range(ROUNDS):
        broken = reasons(graph, target)
        fresh: list[Applied] = []
        for node in graph.nodes:
            for one in tables.get(node.op.kind, ()):
                key = (one.name, id(node))
                if node.graph is not graph or key in tried or (one.name, roots.get(node.name, node.name)) in excluded:
                    continue
                codes = tuple(r.code for r in broken.get(node, ()))
                if not one.is_cheaper_on(target.family) and not set(codes) & set(one.mends):
                    continue
                tried.add(key)
                made = _rewritten(graph, node, one, target, variant, tables, codes, roots, declined)
                if made is not None:
                    fresh.append(made)
                    break
        done += fresh
        if not fresh:
            break
    return done


def serving(fixes: Sequence[Fix], target: Target) -> list[Fix]:
    """Return the fixes that are there for a target: they mend a rule of its family, or make something cheaper on it."""
    codes = {rule.code for rule in rules_of(target.family)}
    return [one for one in fixes if one.is_cheaper_on(target.family) or codes & set(one.mends)]


def _by_operator(fixes: Sequence[Fix]) -> dict[str, list[Fix]]:
    tables: dict[str, list[Fix]] = {}
    for one in fixes:
        for kind in one.operators if one.rewrite is not None else ():
            tables.setdefault(kind, []).append(one)
    return tables


def _swept(model: Model, one: Fix, target: Target) -> list[Applied]:
    assert one.sweep is not None
    found = reasons(model.main, target)
    if not one.is_cheaper_on(target.family) and not any(r.code in one.mends for some in found.values() for r in some):
        return []
    before, broken = State(model), len(found)
    changes = one.sweep(model)
    won = broken - len(reasons(model.main, target))
    if changes and won < 0:
        before.restore()
        return []
    return [Applied(fix=one, node="", operator="", origin="", outputs=(), codes=one.mends, made=(), places=changes,
                    won=won)] if changes else []


def _rewritten(graph: Graph, node: Node, one: Fix, target: Target, variant: Mapping[str, int],
               tables: Mapping[str, Sequence[Fix]], codes: tuple[str, ...], roots: dict[str, str],
               declined: dict[Key, str] | None) -> Applied | None:
    """Rewrite one node if what comes of it is better."""
    assert one.rewrite is not None
    place, origin = Place(graph, node, one.name, variant), str(node.origin)
    try:
        results = one.rewrite(place)
    except (TooManyPartsError, VitrifyError):
        results = None
    if place.declined and declined is not None:
        declined[one.name, node.name] = place.declined
    given = [results] if results is not None and not isinstance(results, Sequence) else list(results or ())
    fits = len(given) == len(node.outputs) and all(
        new.shape == old.shape and new.dtype is old.dtype for new, old in zip(given, node.outputs, strict=True))
    if not fits or not _better(place, target, tables, bool(codes)):
        place.undo()
        return None
    outputs = tuple(t.name for t in node.outputs)
    place.finish(given[0] if len(given) == 1 else given)
    root = roots.get(node.name, "")
    for new in place.made:
        roots[new.name] = root or node.name
    return Applied(fix=one, node=node.name, operator=node.op.kind, origin=origin, outputs=outputs, codes=codes,
                   made=tuple(new.name for new in place.made), within=root, before=node,
                   won=int(bool(codes)))


def _better(place: Place, target: Target, tables: Mapping[str, Sequence[Fix]], was_broken: bool) -> bool:
    """True when nothing that was made stays on the CPU, except what another fix is there for."""
    broken = reasons(place.made, target)
    return all(_mendable(node, found, tables, place.fix) for node, found in broken.items())


def _mendable(node: Node, found: Sequence[Reason], tables: Mapping[str, Sequence[Fix]], by: str) -> bool:
    able = [one for one in tables.get(node.op.kind, ()) if one.name != by]
    return all(any(reason.code in one.mends for one in able) for reason in found)
