"""What a model is for, as plain data that travels in the model's own file."""

from __future__ import annotations

from typing import Any

import msgspec

from vitrify.ir import Model
from vitrify.ir.remembering import store, stored

METADATA = "vitrify.task"
"""The entry of a model's metadata that says what its outputs mean."""


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the outputs mean: the kind of task, the form they have, and what the decoder has to know.

    ``decoder`` is one of ``tasks.registry.DECODERS``; ``names`` are the classes by index, ``score`` the least score
    that counts, ``overlap`` the overlap above which the weaker of two boxes goes, ``most`` how many boxes stay.
    ``options`` are the decoder's own: strides, anchors, key points.
    """

    kind: str
    decoder: str
    names: tuple[str, ...] = ()
    score: float = 0.25
    overlap: float = 0.45
    most: int = 300
    options: dict[str, Any] = {}

    def name(self, label: int) -> str:
        """What a class is called."""
        return self.names[label] if 0 <= label < len(self.names) else f"class {label}"


def remember(model: Model, spec: TaskSpec) -> None:
    """Write into a model what its outputs mean."""
    store(model, METADATA, spec)


def remembered(model: Model) -> TaskSpec | None:
    """Return what a model says of its outputs, None where it says nothing.

    Raises:
        ModelError: it says something that cannot be read.
    """
    return stored(model, METADATA, TaskSpec, "task.remembered", "say what the outputs mean with --task")
