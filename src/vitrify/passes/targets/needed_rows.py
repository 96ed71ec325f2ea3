"""Rows that nobody reads are not computed."""

from __future__ import annotations

from vitrify.ir import Model
from vitrify.passes.base import Runner
from vitrify.passes.cleanup.needed_rows import NeededRows
from vitrify.passes.targets.catalogue import fix


@fix("needed-rows", whole=True, cheaper=True,
     says="takes the rows that are read before they are computed instead of afterwards",
     wins="the last block of a classifier that reads one token computes one: a twelfth of a ViT-tiny's time")
def needed_rows(model: Model) -> int:
    """In all graphs."""
    return Runner(model).run((NeededRows,), rounds=1)
