"""Attribute values that several operators share, numbered as in the TFLite schema."""

from __future__ import annotations

from enum import IntEnum


class Padding(IntEnum):
    """How a window operator treats the border."""

    SAME = 0
    VALID = 1


class Activation(IntEnum):
    """An activation fused into an operator."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3
    TANH = 4
    SIGN_BIT = 5
