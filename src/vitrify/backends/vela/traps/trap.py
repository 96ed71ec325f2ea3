"""What a trap is: a look at the compiler's cycles that finds a form which costs more than it needs to, ``@trap``.

A trap is told where it takes a share of the whole that is worth a change, and only of models that take a while.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property

from vitrify.backends.vela.placing import Placed
from vitrify.core.findings import Finding
from vitrify.ir import Node
from vitrify.targets.base import Target

LEAST_SHARE = 0.1
"""Of all cycles on the NPU."""
_LEAST_CYCLES = 100_000
_NAMES_SHOWN = 3


class Costs:
    """A compiled model's nodes with their cycles on the NPU."""

    def __init__(self, placed: Sequence[Placed], target: Target) -> None:
        self.placed, self.target = placed, target
        self.cycles = {one.node: one.cycles for one in placed if one.place != "cpu"}

    @cached_property
    def total(self) -> int:
        """Cycles of all nodes."""
        return sum(self.cycles.values())

    def of(self, nodes: Iterable[Node]) -> int:
        """Cycles of some nodes."""
        return sum(self.cycles.get(node, 0) for node in nodes)

    def share(self, nodes: Iterable[Node]) -> float:
        """The part of all cycles that some nodes take."""
        return self.of(nodes) / self.total if self.total else 0.0

    def nodes(self, *kinds: str) -> list[Node]:
        """The nodes of some operators, those that cost most first."""
        found = [node for node in self.cycles if node.op.kind in kinds]
        return sorted(found, key=lambda node: -self.cycles[node])

    def commands(self, node: Node) -> int:
        """Into how many operations of the NPU a node was made."""
        return next(len(one.perf) for one in self.placed if one.node is node)

    def told(self, nodes: Sequence[Node]) -> str:
        """The share and the time of nodes, as a headline says it."""
        ms = self.of(nodes) / self.target.value("clock_hz") * 1e3
        return f"{self.share(nodes):.0%} of the NPU's time, {ms:.3g} ms by the compiler's estimate"

    def fix(self, name: str, approximate: bool = False) -> str:
        """The command that applies a fix."""
        option = "--approximate" if approximate else "--fix-only"
        return f"vitrify check MODEL --target {self.target.name} --fix {option} {name}"


Look = Callable[[Costs], Iterable[Finding]]
_LOOKS: list[Look] = []


def trap(look: Look) -> Look:
    """Register a look at the costs."""
    _LOOKS.append(look)
    return look


@cache
def _load() -> None:
    package = importlib.import_module(__name__.rpartition(".")[0])
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def traps(placed: Sequence[Placed], target: Target) -> Iterator[Finding]:
    """Yield the traps of a compiled model, in the order of their modules."""
    _load()
    costs = Costs(placed, target)
    if costs.total >= _LEAST_CYCLES:
        for look in _LOOKS:
            yield from look(costs)


def where(nodes: Sequence[Node]) -> str:
    """The first nodes by name, and how many there are besides."""
    names = ", ".join(f"'{node.name}'" for node in nodes[:_NAMES_SHOWN])
    more = f" and {len(nodes) - _NAMES_SHOWN} more" if len(nodes) > _NAMES_SHOWN else ""
    return f"node{'s' * (len(nodes) > 1)} {names}{more}"
