"""Comparison, logic and selection."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Less(Operator):
    """LESS."""

    name = "LESS"
    options = "LessOptions"


@operator
@dataclass(frozen=True)
class LessEqual(Operator):
    """LESS_EQUAL."""

    name = "LESS_EQUAL"
    options = "LessEqualOptions"


@operator
@dataclass(frozen=True)
class Greater(Operator):
    """GREATER."""

    name = "GREATER"
    options = "GreaterOptions"


@operator
@dataclass(frozen=True)
class GreaterEqual(Operator):
    """GREATER_EQUAL."""

    name = "GREATER_EQUAL"
    options = "GreaterEqualOptions"


@operator
@dataclass(frozen=True)
class Equal(Operator):
    """EQUAL."""

    name = "EQUAL"
    options = "EqualOptions"


@operator
@dataclass(frozen=True)
class NotEqual(Operator):
    """NOT_EQUAL."""

    name = "NOT_EQUAL"
    options = "NotEqualOptions"


@operator
@dataclass(frozen=True)
class LogicalAnd(Operator):
    """LOGICAL_AND."""

    name = "LOGICAL_AND"
    options = "LogicalAndOptions"


@operator
@dataclass(frozen=True)
class LogicalOr(Operator):
    """LOGICAL_OR."""

    name = "LOGICAL_OR"
    options = "LogicalOrOptions"


@operator
@dataclass(frozen=True)
class LogicalNot(Operator):
    """LOGICAL_NOT."""

    name = "LOGICAL_NOT"
    options = "LogicalNotOptions"


@operator
@dataclass(frozen=True)
class Select(Operator):
    """SELECT."""

    name = "SELECT"
    options = "SelectOptions"


@operator
@dataclass(frozen=True)
class SelectV2(Operator):
    """SELECT_V2."""

    name = "SELECT_V2"
    options = "SelectV2Options"


@operator
@dataclass(frozen=True)
class Where(Operator):
    """WHERE."""

    name = "WHERE"
    options = "WhereOptions"
