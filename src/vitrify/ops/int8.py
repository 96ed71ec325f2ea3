"""The int8 rule of an operator, under the name by which the operators and the quantizer know it."""

from vitrify.ir.int8 import Int8Rule

__all__ = ["Int8Rule"]
