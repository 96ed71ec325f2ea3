"""Values that are no tensors: sequences and optionals exist while a model is imported and never reach the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitrify.importers.onnx.context import Value


@dataclass(frozen=True)
class Bundle:
    """A sequence: its elements, each known now or a tensor of the graph."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Absent:
    """An optional without a value; one with a value is that value."""


ABSENT = Absent()
