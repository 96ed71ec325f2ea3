"""Elementwise arithmetic of one input."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Abs(Operator):
    """ABS."""

    name = "ABS"
    options = "AbsOptions"


@operator
@dataclass(frozen=True)
class Neg(Operator):
    """NEG."""

    name = "NEG"
    options = "NegOptions"


@operator
@dataclass(frozen=True)
class Sqrt(Operator):
    """SQRT."""

    name = "SQRT"


@operator
@dataclass(frozen=True)
class Rsqrt(Operator):
    """RSQRT."""

    name = "RSQRT"


@operator
@dataclass(frozen=True)
class Square(Operator):
    """SQUARE."""

    name = "SQUARE"
    options = "SquareOptions"


@operator
@dataclass(frozen=True)
class Exp(Operator):
    """EXP."""

    name = "EXP"
    options = "ExpOptions"


@operator
@dataclass(frozen=True)
class Log(Operator):
    """LOG."""

    name = "LOG"


@operator
@dataclass(frozen=True)
class Sin(Operator):
    """SIN."""

    name = "SIN"


@operator
@dataclass(frozen=True)
class Cos(Operator):
    """COS."""

    name = "COS"
    options = "CosOptions"


@operator
@dataclass(frozen=True)
class Floor(Operator):
    """FLOOR."""

    name = "FLOOR"


@operator
@dataclass(frozen=True)
class Ceil(Operator):
    """CEIL."""

    name = "CEIL"


@operator
@dataclass(frozen=True)
class Round(Operator):
    """ROUND."""

    name = "ROUND"


@operator
@dataclass(frozen=True)
class Sign(Operator):
    """SIGN."""

    name = "SIGN"
    options = "SignOptions"
