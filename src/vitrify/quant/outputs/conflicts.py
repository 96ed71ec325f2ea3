"""Range conflicts: parts of one tensor that would be left with few of its 256 levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Add, Concatenation, Pack, PadV2, Sub
from vitrify.quant.calibration.observe import CUTS, keys
from vitrify.quant.calibration.ranges import constant_range
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.outputs.joins import whole_range
from vitrify.quant.outputs.tails import Tail
from vitrify.quant.planning import stands_for_infinity
from vitrify.quant.recipe import override_line
from vitrify.quant.rules import is_real
from vitrify.quant.scales import LEVELS, levels_left

JOINS = (Concatenation, Pack)

SHOWN = 5
"""How many conflicts a sentence lists; all are in the result."""

SUM_LEVELS = 64
"""A term of a sum should keep this many levels in it: with fewer, rounding the sum costs over 12 dB of the term."""


def collisions(tail: Tail, ranges: Mapping[Tensor, Range], join_levels: int) -> list[tuple[Node, Tensor, float]]:
    """List where a joined part or a term of a sum would lose its levels: node, tensor, levels left."""
    found: list[tuple[Node, Tensor, float]] = []
    for node in tail.nodes:
        members = [t for t in node.inputs if is_real(t) and t is not None]
        known = {t: ranges[t] if t in ranges else constant_range(t) for t in members if t in ranges or t.is_constant}
        if len(known) < 2:
            continue
        if isinstance(node.op, Concatenation | Pack):
            whole, limit = whole_range(list(known.values())), float(join_levels)
        elif isinstance(node.op, Add | Sub) and node.output in ranges:
            whole, limit = ranges[node.output], float(SUM_LEVELS)
        else:
            continue
        for tensor, own in known.items():
            left = levels_left(own.with_zero(), whole)
            if left < limit and not tensor.is_constant:
                found.append((node, tensor, left))
    return found


@dataclass(frozen=True)
class Conflict:
    """A part that would be left with few of the 256 levels of the tensor that it shares.

    ``whole`` is that tensor, ``node`` what joins or cuts it, in the user's own names; ``levels`` those that the part
    gets there; ``resolved`` says what was done, empty: nothing.
    """

    node: str
    operator: str
    whole: str
    part: str
    low: float
    high: float
    whole_low: float
    whole_high: float
    levels: float
    resolved: str = ""


def find_conflicts(graph: Graph, ranges: Mapping[Tensor, Range], statistics: Statistics,
                   levels: int) -> list[Conflict]:
    """List the parts of joins and cuts, all over the graph, that get fewer than ``levels``; the poorest first."""
    names = keys(graph)
    found: list[Conflict] = []
    for node in graph:
        if isinstance(node.op, JOINS):
            parts = [t for t in node.inputs if is_real(t) and t is not None and not t.is_constant and t in ranges]
            whole = [ranges[t] for t in parts] + [constant_range(t) for t in node.inputs
                                                  if t is not None and is_real(t) and t.is_constant]
            found += _poor(node, node.output, parts, ranges, whole_range(whole), levels) if len(whole) > 1 else []
        elif isinstance(node.op, CUTS):
            source = next((t for t in node.inputs if is_real(t)), None)
            if source is None or source.is_constant or source not in ranges:
                continue
            seen = {t: statistics[names[t]].range for t in node.outputs if is_real(t) and names[t] in statistics}
            found += _poor(node, source, list(seen), seen, ranges[source], levels)
    return sorted(found, key=lambda conflict: conflict.levels)


def _poor(node: Node, whole: Tensor, parts: Sequence[Tensor], ranges: Mapping[Tensor, Range], outer: Range,
          levels: int) -> Iterator[Conflict]:
    for part in parts:
        own = ranges[part]
        left = levels_left(own.with_zero(), outer)
        if 0 < left < levels:
            yield Conflict(node=_named(node), operator=node.op.kind, whole=_named(whole), part=_named(part),
                           low=own.low, high=own.high, whole_low=outer.low, whole_high=outer.high,
                           levels=round(left, 2))


def _named(item: Node | Tensor) -> str:
    """The user's own name where there is one."""
    return str(item.origin) if item.origin.sources else item.name


def resolved(conflicts: Sequence[Conflict], solved: Mapping[str, str],
             requantized: Iterable[tuple[Node, int]], rescaled: Iterable[Tensor] = ()) -> list[Conflict]:
    """Say of each conflict what became of it.

    Args:
        conflicts: what was found.
        solved: what was done about joins and cuts before outputs, by their name.
        requantized: node inputs that come in a scale of their own, which other readers of the part have finer.
        rescaled: parts that were scaled up, and whose factor the layers behind the join took back.
    """
    apart = {(_named(node), _named(node.input(index))) for node, index in requantized
             if isinstance(node.op, JOINS) and len(node.input(index).users) > 1}

    up = {_named(tensor) for tensor in rescaled}

    def how(conflict: Conflict) -> str:
        if conflict.part in up and conflict.operator == Concatenation().kind:
            return "scaled up, and down in the weights behind"
        return solved.get(conflict.node) or ("a scale of its own for other readers"
                                             if (conflict.node, conflict.part) in apart else "")
    return [replace(conflict, resolved=how(conflict)) for conflict in conflicts]


def conflict_findings(conflicts: Sequence[Conflict]) -> list[Finding]:
    """One finding for all conflicts inside of a model that nothing was done about, if there are any."""
    left = [c for c in conflicts if not c.resolved]
    if not left:
        return []
    shown = "; ".join(f"'{c.part}' [{c.low:.3g}, {c.high:.3g}] in {c.operator} '{c.node}' [{c.whole_low:.3g}, "
                      f"{c.whole_high:.3g}]: {max(1, round(c.levels))}" for c in left[:SHOWN])
    more = f"; and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
    return [Finding(code="range.parts", severity=Severity.INFO, where=shown + more,
                    headline=f"{counted(len(left), 'part')} of joined or cut tensors "
                             f"{'has' if len(left) == 1 else 'have'} few levels, the poorest "
                             f"{max(1, round(left[0].levels))} of {LEVELS}",
                    why="what is joined shares one scale",
                    help="in the recipe, this keeps the poorest finer: " + override_line(nodes=[left[0].node],
                                                                                       activations="int16"))]


def constant_findings(graph: Graph, ranges: Mapping[Tensor, Range]) -> list[Finding]:
    """Tell of padding constants that stand for infinity: their values are left out of the range, and saturate."""
    found = []
    for node in graph.nodes_of(PadV2):
        value = node.input(2)
        if not value.is_constant or node.input(0) not in ranges:
            continue
        own, constant = ranges[node.input(0)], constant_range(value)
        if stands_for_infinity(constant, own):
            found.append(Finding(
                code="range.outlier_constant", severity=Severity.INFO, where=f"{node.op.kind} '{_named(node)}'",
                headline=f"the padding constant {constant.low:.3g} is far outside of the tensor's "
                         f"[{own.low:.3g}, {own.high:.3g}]",
                why="in one range it would leave the values 1 of 256 levels; it became the smallest value of the "
                    "scale, which gives the same maxima"))
    return found
