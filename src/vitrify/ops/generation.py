"""Operators that make tensors from shapes."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Shape(Operator):
    """SHAPE."""

    name = "SHAPE"
    options = "ShapeOptions"
    out_type: int = 0


@operator
@dataclass(frozen=True)
class Rank(Operator):
    """RANK."""

    name = "RANK"
    options = "RankOptions"


@operator
@dataclass(frozen=True)
class Range(Operator):
    """RANGE."""

    name = "RANGE"
    options = "RangeOptions"


@operator
@dataclass(frozen=True)
class Fill(Operator):
    """FILL."""

    name = "FILL"
    options = "FillOptions"


@operator
@dataclass(frozen=True)
class ZerosLike(Operator):
    """ZEROS_LIKE."""

    name = "ZEROS_LIKE"
    options = "ZerosLikeOptions"


@operator
@dataclass(frozen=True)
class BroadcastArgs(Operator):
    """BROADCAST_ARGS."""

    name = "BROADCAST_ARGS"
