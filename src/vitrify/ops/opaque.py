"""Operators that are carried, not understood: custom ones, and builtin ones without a description."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from vitrify.ir.operator import Operator, attributes


@attributes
class Custom(Operator):
    """A custom operator: its code and its options as the file has them."""

    custom_code: str = ""
    custom_options: bytes = field(default=b"", repr=False)

    @property
    def kind(self) -> str:
        """The name that messages and counts use."""
        return self.custom_code or "CUSTOM"


@attributes
class Opaque(Operator):
    """A builtin operator without a description here; ``table`` holds its options as the reader decoded them."""

    builtin: str = ""
    table_name: str = ""
    table: Any = field(default=None, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The name that messages and counts use."""
        return self.builtin
