"""Time in which nothing is computed: values that are copied, turned, or brought to another scale."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.backends.vela.traps.trap import LEAST_SHARE, Costs, trap, where
from vitrify.core.findings import Finding, Severity

_COPYING = ("CONCATENATION", "PACK", "PAD", "SLICE", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "UNPACK", "TILE")
_LEAST_TURN = 0.03


@trap
def copies(costs: Costs) -> Iterator[Finding]:
    """Parts that are put together or taken apart."""
    nodes = costs.nodes(*_COPYING)
    if costs.share(nodes) >= LEAST_SHARE:
        kinds = ", ".join(dict.fromkeys(node.op.kind for node in nodes[:8] if costs.cycles[node]))
        yield Finding(code="ethos-u.costly-copies", severity=Severity.INFO, where=where(nodes),
                      headline=f"copies ({kinds}) take {costs.told(nodes)}",
                      why="the compiler writes results where they belong if one node makes them for one place; what is "
                      "used twice, or comes from outside, it copies",
                      help="join after fewer layers, or add instead of joining where the model allows")


@trap
def turns(costs: Costs) -> Iterator[Finding]:
    """TRANSPOSE, of an image most of all."""
    nodes = costs.nodes("TRANSPOSE")
    if costs.share(nodes) < _LEAST_TURN:
        return
    images = [node for node in nodes if node.input(0) in (node.graph.inputs if node.graph is not None else ())]
    yield Finding(code="ethos-u.costly-transposes", severity=Severity.INFO, where=where(nodes),
                  headline=f"{len(nodes)} TRANSPOSE take {costs.told(nodes)}",
                  why="a transpose moves single bytes, each in a burst of its own",
                  help="convert with --io-layout nhwc and give pictures as they are stored, channels last" if images
                  else "convert the source model anew: its transposes are joined and mostly vanish")


@trap
def joints(costs: Costs) -> Iterator[Finding]:
    """QUANTIZE between scales or widths."""
    nodes = costs.nodes("QUANTIZE")
    if costs.share(nodes) >= LEAST_SHARE:
        wide = sum(str(node.input(0).dtype) != str(node.output.dtype) for node in nodes)
        yield Finding(code="ethos-u.costly-joints", severity=Severity.INFO, where=where(nodes),
                      headline=f"{len(nodes)} QUANTIZE take {costs.told(nodes)}",
                      why=f"{wide} of them change the width, at 8 and 16 bits on either side; the others the scale",
                      help="fewer operators in 16 bits: vitrify quantize --target-quality GOAL" if wide
                      else "quantize the source model with Vitrify, which gives the parts of a joint one scale")
