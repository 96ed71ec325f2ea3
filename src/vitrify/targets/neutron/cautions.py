"""What was seen to go wrong with whole models, told beside the verdicts with the versions that it was seen with."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import bytes_text
from vitrify.ir import Graph
from vitrify.targets.base import Target
from vitrify.targets.neutron.operators import S

_CONVERTED, _CUT = 112 * 112 * 96, 160 * 160 * 96
"""The largest values of MobileNetV2 at 224 and at 320 pixels, in bytes."""
_SOURCE = "community.toradex.com thread 29531, eIQ Toolkit 1.16.0"


def cautions(graph: Graph, target: Target) -> Iterator[Finding]:
    """Yield what published cases make one expect of a graph on a target."""
    if target.core == S:
        yield from _large_values(graph, target)


def _large_values(graph: Graph, target: Target) -> Iterator[Finding]:
    """Sizes at which a published conversion fell apart."""
    values = [t for node in graph if node.op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") for t in node.outputs
              if t.dtype.bits == 8 and len(t.shape) == 4]
    largest = max(values, key=lambda t: t.nbytes, default=None)
    if largest is None or largest.nbytes <= _CONVERTED or "DEPTHWISE_CONV_2D" not in {n.op.kind for n in graph}:
        return
    yield Finding(
        code="neutron.size-cliff", severity=Severity.INFO, where=f"tensor '{largest.name}'",
        headline=f"its largest value has {bytes_text(largest.nbytes)}; with an early converter, MobileNetV2 fell from "
                 f"93 % to 25 % of its operators converted between {bytes_text(_CONVERTED)} and {bytes_text(_CUT)}",
        why=f"the cause was not published, and rules do not count it ({_SOURCE}); YOLOv8x with values of 8 MB converts "
            "with SDK 3.1.3, so newer converters may not have it",
        help=f"compare sizes in the converter's log before choosing one: vitrify sweep MODEL --target {target.name}")
