"""Reductions over axes, and running sums."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Mean(Operator):
    """MEAN."""

    name = "MEAN"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class Sum(Operator):
    """SUM."""

    name = "SUM"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class ReduceProd(Operator):
    """REDUCE_PROD."""

    name = "REDUCE_PROD"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class ReduceMax(Operator):
    """REDUCE_MAX."""

    name = "REDUCE_MAX"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class ReduceMin(Operator):
    """REDUCE_MIN."""

    name = "REDUCE_MIN"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class ReduceAny(Operator):
    """REDUCE_ANY."""

    name = "REDUCE_ANY"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class ReduceAll(Operator):
    """REDUCE_ALL."""

    name = "REDUCE_ALL"
    options = "ReducerOptions"
    keep_dims: bool = False


@operator
@dataclass(frozen=True)
class ArgMax(Operator):
    """ARG_MAX."""

    name = "ARG_MAX"
    options = "ArgMaxOptions"
    output_type: int = 0


@operator
@dataclass(frozen=True)
class ArgMin(Operator):
    """ARG_MIN."""

    name = "ARG_MIN"
    options = "ArgMinOptions"
    output_type: int = 0


@operator
@dataclass(frozen=True)
class Cumsum(Operator):
    """CUMSUM."""

    name = "CUMSUM"
    options = "CumsumOptions"
    exclusive: bool = False
    reverse: bool = False
