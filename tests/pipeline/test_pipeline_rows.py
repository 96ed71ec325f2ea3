"""Rows keep what belongs to each node apart, although names of nodes may repeat."""

from __future__ import annotations

from vitrify.pipeline.rows import placement_row
from vitrify.targets import Coverage, Placement, Verdict


def test_nodes_of_one_name_keep_their_own_cycles() -> None:
    verdicts = tuple(Verdict(node="conv", operator=kind, placement="npu") for kind in ("PAD", "CONV_2D"))
    placement = Placement(target="imx93", coverage=Coverage(nodes=1, macs=1, time=1), verdicts=verdicts, partitions=())
    rows = placement_row(placement, [3, 500]).verdicts
    assert [(row.node, row.operator, row.cycles) for row in rows] == [("conv", "PAD", 3), ("conv", "CONV_2D", 500)]
