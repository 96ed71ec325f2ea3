"""The one registration of patterns: a function per group, found by the kinds of node that such a group ends in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vitrify.importers.onnx.patterns.search import Search
from vitrify.importers.onnx.source import SourceGraph, SourceNode


@dataclass(frozen=True)
class Found:
    """One operator for a group of nodes: its kind, inputs and attributes; ``group`` ends in the node it replaces."""

    kind: str
    inputs: list[str]
    group: tuple[SourceNode, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 0
    domain: str = ""


Pattern = Callable[[Search, SourceNode], Found | None]
_PATTERNS: dict[str, list[Pattern]] = defaultdict(list)


def pattern(*kinds: str) -> Callable[[Pattern], Pattern]:
    """Register a function that looks for its group around a node of one of ``kinds``, the group's last."""

    def register(function: Pattern) -> Pattern:
        for kind in kinds:
            _PATTERNS[kind].append(function)
        return function

    return register


def join_patterns(graph: SourceGraph) -> None:
    """Put one node in the place of the last of every group; the others are left out where nothing else reads them."""
    search: Search | None = None
    for index, node in enumerate(graph.nodes):
        for look in () if node.domain else _PATTERNS.get(node.kind, ()):
            search = search or Search(graph)
            found = look(search, node)
            if found is not None:
                graph.nodes[index] = SourceNode(
                    found.kind,
                    node.name,
                    found.inputs,
                    list(node.outputs),
                    dict(found.attributes),
                    domain=found.domain,
                    opset=found.opset or node.opset,
                    group=found.group,
                    inside=node.inside,
                )
                break
