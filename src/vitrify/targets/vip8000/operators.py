"""The delegate's map of operators as a table, and the rules on what is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from vitrify.ir import Graph, Node
from vitrify.targets.placement import Place, Reason
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.judging import Basis
from vitrify.targets.rules.rows import Row
from vitrify.targets.rules.tables import Table

CORE = "vip8000"
MAP = "github.com/VeriSilicon/tflite-vx-delegate, op_map.cc (commit 00a7fc9)"
VERSIONS = "TFLite 2.10 and later"
_TABLE = "facts about operators in targets/vip8000/operators.toml"
_RENAMING = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})


@cache
def table() -> Table:
    """Return the family's table of operators."""
    return Table(Path(__file__).parent / "operators.toml")


def row(operator: str, core: str) -> Row:
    """Return what is public about an operator."""
    return table().row(operator, core)


def variant(core: str) -> Variant:
    """Return the limits of a core."""
    return Variant(core=core, limits={"rank": 6, "softmax_extent": 65535})


def operators(core: str) -> frozenset[str]:
    """Return the operators that are taken in some form."""
    return table().operators(core)


def basis(node: Node, core: str) -> Basis:
    """Return how it is known that a node is taken."""
    found = row(node.op.kind, core)
    return Basis(found.confidence, found.source)


def taken(node: Node) -> bool:
    """True for an operator that the delegate maps in some form; of others no more is asked."""
    return row(node.op.kind, CORE).taken == "yes"


def is_custom(node: Node) -> bool:
    """True for an operator that is none of TFLite's own."""
    from vitrify.ops import Custom

    return isinstance(node.op, Custom)


@rule("vip8000.unknown-operator", says="a public source says whether the delegate takes the operator", source=_TABLE,
      why="it is newer than the state of the delegate that is described, so it is counted as work of the CPU",
      confidence="unknown", versions=VERSIONS)
def unknown(node: Node, variant: Variant) -> Iterator[Breach]:
    """Operators of which nothing is said."""
    if not is_custom(node):
        yield from table().unknown(node, variant.core)


@rule("vip8000.unsupported-operator", says="the delegate maps the operator", why="what it does not map runs on the CPU",
      source=MAP, versions=VERSIONS)
def unsupported(node: Node, variant: Variant) -> Iterator[Breach]:
    """Operators that the delegate does not map."""
    yield from table().refused(node, variant.core)


@rule("vip8000.custom-operator", says="an operator is one of TFLite's own", source=MAP, versions=VERSIONS,
      why="the delegate maps no custom operators but its own compiled graphs; at the end of a model that costs little, "
      "in the middle it cuts the graph", fix="detection-heads")
def custom(node: Node, variant: Variant) -> Iterator[Breach]:
    """Custom operators, such as the post-processing of detectors."""
    if is_custom(node):
        yield Breach(f"the delegate does not map the custom operator {node.op.kind or 'without a name'}",
                     {"operator": node.op.kind})


def settle(graph: Graph, broken: Mapping[Node, Sequence[Reason]], core: str) -> dict[Node, Place]:
    """Return the place of every node of ``graph``."""
    return {node: "cpu" if node in broken else "folded" if node.op.kind in _RENAMING else "npu" for node in graph}
