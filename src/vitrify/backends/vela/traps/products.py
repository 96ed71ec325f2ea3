"""Products of two computed values, for which the smaller NPUs have no unit."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from vitrify.backends.vela.traps.trap import LEAST_SHARE, Costs, trap, where
from vitrify.core.findings import Finding, Severity
from vitrify.ir import Node

_MATRICES = 4
"""From these on all units are busy. Source: vitrify.passes.targets.split_matmuls."""


@trap
def matmuls(costs: Costs) -> Iterator[Finding]:
    """BATCH_MATMUL on a core that makes it of multiplications and sums."""
    nodes = costs.nodes("BATCH_MATMUL")
    if costs.target.core[:3] not in ("u55", "u65") or costs.share(nodes) < LEAST_SHARE:
        return
    idle = [node for node in nodes if prod(node.input(0).shape[:-2]) < _MATRICES]
    yield Finding(
        code="ethos-u.costly-matmuls", severity=Severity.INFO, where=where(nodes),
        headline=f"{len(nodes)} BATCH_MATMUL take {costs.told(nodes)}",
        why="this core has no unit for products of two computed values: each column is one multiplication of all rows "
        f"and one sum; {len(idle)} of them have fewer than {_MATRICES} matrices, which leaves most units idle",
        help=costs.fix("split-matmuls,deep-matmuls") if idle else "fewer tokens, or attention by convolutions alone")


def is_silu(node: Node) -> bool:
    """True for x * sigmoid(x)."""
    first, second = node.optional(0), node.optional(1)
    return any(one is not None and one.producer is not None and one.producer.op.kind == "LOGISTIC"
               and one.producer.input(0) is other for one, other in ((first, second), (second, first)))


@trap
def silu(costs: Costs) -> Iterator[Finding]:
    """SiLU in two passes over the values."""
    products = [node for node in costs.nodes("MUL") if is_silu(node)]
    gates = [one.producer for node in products for one in node.inputs
             if one is not None and one.producer is not None and one.producer.op.kind == "LOGISTIC"]
    nodes = [*products, *gates]
    if costs.share(nodes) >= LEAST_SHARE:
        yield Finding(
            code="ethos-u.costly-silu", severity=Severity.INFO, where=where(products),
            headline=f"{len(products)} SiLU, each a LOGISTIC and a MUL, take {costs.told(nodes)}",
            why="the compiler computes a table such as GELU within the convolution before it, and SiLU in two passes "
            "of its own; 1.702 * gelu(x / 1.702) is nearly the same (a trained YOLOv8n lost 0.7 to 2.2 dB)",
            help=costs.fix("silu-as-gelu", approximate=True))
