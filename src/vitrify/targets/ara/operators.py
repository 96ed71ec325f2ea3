"""The family's table of operators, and the few rules that are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from vitrify.ir import DType, Graph, Node
from vitrify.targets.placement import Place, Reason
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.judging import Basis
from vitrify.targets.rules.roles import features
from vitrify.targets.rules.rows import Row
from vitrify.targets.rules.tables import Table

SDK = "nxp.com ara-software-development-kit:ARA-SDK: INT8 on Ara-1 and Ara-2, INT4 and MSFP16 on Ara-2"
_TABLE = "facts about operators in targets/ara/operators.toml"
_VERSIONS = "all"


@cache
def table() -> Table:
    """Return the family's table of operators."""
    return Table(Path(__file__).parent / "operators.toml")


def row(operator: str, core: str) -> Row:
    """Return what is public about an operator."""
    return table().row(operator, core)


def variant(core: str) -> Variant:
    """Return the limits of a core; none is public."""
    return Variant(core=core)


def operators(core: str) -> frozenset[str]:
    """Return the operators that are taken in some form, as far as is public."""
    return table().operators(core)


def basis(node: Node, core: str) -> Basis:
    """Return how it is known that a node is taken."""
    found = row(node.op.kind, core)
    return Basis(found.confidence, found.source)


@rule("ara.unknown-operator", says="a public source says that the NPU takes the operator", source=_TABLE,
      why="nothing public was found, so it is counted as work of the CPU; the compiler may take it all the same",
      confidence="unknown", versions=_VERSIONS)
def unknown(node: Node, variant: Variant) -> Iterator[Breach]:
    """Operators of which nobody says anything in public."""
    yield from table().unknown(node, variant.core)


@rule("ara.data-type", says="values are 8-bit integers", why="the card computes with INT8; INT4 and MSFP16 are made by "
      "its own compiler from a float model", source=SDK, versions=_VERSIONS,
      help="give the float model to the Ara SDK, which quantizes it, or quantize it to int8")
def types(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values of another type."""
    if row(node.op.kind, variant.core).taken != "yes":
        return
    for tensor in (*features(node), *node.outputs):
        if tensor.dtype not in (DType.INT8, DType.UINT8):
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}; the NPU takes int8",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "int8")


def settle(graph: Graph, broken: Mapping[Node, Sequence[Reason]], core: str) -> dict[Node, Place]:
    """Return the place of every node of ``graph``."""
    return {node: "cpu" if node in broken else "npu" for node in graph}
