"""Elementwise operators of two inputs, with broadcasting."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation


@operator
@dataclass(frozen=True)
class Add(Operator):
    """ADD."""

    name = "ADD"
    options = "AddOptions"
    fused_activation_function: Activation = Activation.NONE
    pot_scale_int16: bool = True


@operator
@dataclass(frozen=True)
class Sub(Operator):
    """SUB."""

    name = "SUB"
    options = "SubOptions"
    fused_activation_function: Activation = Activation.NONE
    pot_scale_int16: bool = True


@operator
@dataclass(frozen=True)
class Mul(Operator):
    """MUL."""

    name = "MUL"
    options = "MulOptions"
    fused_activation_function: Activation = Activation.NONE


@operator
@dataclass(frozen=True)
class Div(Operator):
    """DIV."""

    name = "DIV"
    options = "DivOptions"
    fused_activation_function: Activation = Activation.NONE


@operator
@dataclass(frozen=True)
class Maximum(Operator):
    """MAXIMUM."""

    name = "MAXIMUM"
    options = "MaximumMinimumOptions"


@operator
@dataclass(frozen=True)
class Minimum(Operator):
    """MINIMUM."""

    name = "MINIMUM"
    options = "MaximumMinimumOptions"


@operator
@dataclass(frozen=True)
class Pow(Operator):
    """POW."""

    name = "POW"
    options = "PowOptions"


@operator
@dataclass(frozen=True)
class SquaredDifference(Operator):
    """SQUARED_DIFFERENCE."""

    name = "SQUARED_DIFFERENCE"
    options = "SquaredDifferenceOptions"


@operator
@dataclass(frozen=True)
class FloorDiv(Operator):
    """FLOOR_DIV."""

    name = "FLOOR_DIV"
    options = "FloorDivOptions"


@operator
@dataclass(frozen=True)
class FloorMod(Operator):
    """FLOOR_MOD."""

    name = "FLOOR_MOD"
    options = "FloorModOptions"


@operator
@dataclass(frozen=True)
class Atan2(Operator):
    """ATAN2."""

    name = "ATAN2"
    options = "ATan2Options"


@operator
@dataclass(frozen=True)
class AddN(Operator):
    """ADD_N."""

    name = "ADD_N"
    options = "AddNOptions"


@operator
@dataclass(frozen=True)
class BitwiseXor(Operator):
    """BITWISE_XOR."""

    name = "BITWISE_XOR"
    options = "BitwiseXorOptions"


@operator
@dataclass(frozen=True)
class RightShift(Operator):
    """RIGHT_SHIFT."""

    name = "RIGHT_SHIFT"
    options = "RightShiftOptions"
