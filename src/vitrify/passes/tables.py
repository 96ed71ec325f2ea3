"""The tables of passes, one per purpose; the order within a table matters where a reason stands beside it."""

from __future__ import annotations

from vitrify.passes.base import Pass
from vitrify.passes.dead_code import DeadCode
from vitrify.passes.duplicates import Duplicates
from vitrify.passes.folding import FoldConstants
from vitrify.passes.identities import Identities
from vitrify.passes.reshapes import MergeReshapes, StaticReshape, TransposeToReshape
from vitrify.passes.static_batch import PinFreeDimensions

CLEANUP: tuple[type[Pass], ...] = (
    PinFreeDimensions,      # before folding, so that the ledger names what the folded shapes stand on
    FoldConstants,
    StaticReshape,
    DeadCode,
    Identities,
    MergeReshapes,
    Duplicates,
)

PATTERNS: tuple[type[Pass], ...] = CLEANUP
FUSION: tuple[type[Pass], ...] = (TransposeToReshape, *CLEANUP)
