"""Picking and placing by index."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Gather(Operator):
    """GATHER."""

    name = "GATHER"
    options = "GatherOptions"
    axis: int = 0
    batch_dims: int = 0


@operator
@dataclass(frozen=True)
class GatherND(Operator):
    """GATHER_ND."""

    name = "GATHER_ND"
    options = "GatherNdOptions"


@operator
@dataclass(frozen=True)
class ScatterND(Operator):
    """SCATTER_ND."""

    name = "SCATTER_ND"
    options = "ScatterNdOptions"


@operator
@dataclass(frozen=True)
class OneHot(Operator):
    """ONE_HOT."""

    name = "ONE_HOT"
    options = "OneHotOptions"
    axis: int = 0


@operator
@dataclass(frozen=True)
class TopKV2(Operator):
    """TOPK_V2."""

    name = "TOPK_V2"
    options = "TopKV2Options"


@operator
@dataclass(frozen=True)
class EmbeddingLookup(Operator):
    """EMBEDDING_LOOKUP."""

    name = "EMBEDDING_LOOKUP"


@operator
@dataclass(frozen=True)
class ReverseSequence(Operator):
    """REVERSE_SEQUENCE."""

    name = "REVERSE_SEQUENCE"
    options = "ReverseSequenceOptions"
    seq_dim: int = 0
    batch_dim: int = 0


@operator
@dataclass(frozen=True)
class NonMaxSuppressionV4(Operator):
    """NON_MAX_SUPPRESSION_V4."""

    name = "NON_MAX_SUPPRESSION_V4"
    options = "NonMaxSuppressionV4Options"


@operator
@dataclass(frozen=True)
class NonMaxSuppressionV5(Operator):
    """NON_MAX_SUPPRESSION_V5."""

    name = "NON_MAX_SUPPRESSION_V5"
    options = "NonMaxSuppressionV5Options"
