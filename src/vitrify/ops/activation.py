"""Activation functions."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Relu(Operator):
    """RELU."""

    name = "RELU"


@operator
@dataclass(frozen=True)
class Relu6(Operator):
    """RELU6."""

    name = "RELU6"


@operator
@dataclass(frozen=True)
class ReluN1To1(Operator):
    """RELU_N1_TO_1."""

    name = "RELU_N1_TO_1"


@operator
@dataclass(frozen=True)
class Relu0To1(Operator):
    """RELU_0_TO_1."""

    name = "RELU_0_TO_1"


@operator
@dataclass(frozen=True)
class LeakyRelu(Operator):
    """LEAKY_RELU."""

    name = "LEAKY_RELU"
    options = "LeakyReluOptions"
    alpha: float = 0.0


@operator
@dataclass(frozen=True)
class Prelu(Operator):
    """PRELU."""

    name = "PRELU"


@operator
@dataclass(frozen=True)
class Elu(Operator):
    """ELU."""

    name = "ELU"


@operator
@dataclass(frozen=True)
class Logistic(Operator):
    """LOGISTIC."""

    name = "LOGISTIC"


@operator
@dataclass(frozen=True)
class Tanh(Operator):
    """TANH."""

    name = "TANH"


@operator
@dataclass(frozen=True)
class HardSwish(Operator):
    """HARD_SWISH."""

    name = "HARD_SWISH"
    options = "HardSwishOptions"


@operator
@dataclass(frozen=True)
class Gelu(Operator):
    """GELU."""

    name = "GELU"
    options = "GeluOptions"
    approximate: bool = False


@operator
@dataclass(frozen=True)
class Softmax(Operator):
    """SOFTMAX."""

    name = "SOFTMAX"
    options = "SoftmaxOptions"
    beta: float = 0.0


@operator
@dataclass(frozen=True)
class LogSoftmax(Operator):
    """LOG_SOFTMAX."""

    name = "LOG_SOFTMAX"
    options = "LogSoftmaxOptions"
