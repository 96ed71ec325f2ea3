"""What `measure` answers about the parts of a model."""

from __future__ import annotations

import msgspec


class MeasuredPart(msgspec.Struct, kw_only=True):
    """What operators of one kind took together on one side, measured and estimated; without a kind, all there.

    ``measured_ms`` is null where they were not measured by themselves. ``count``: how many operators, on the NPU how
    many calls of it.
    """

    side: str
    kind: str = ""
    count: int = 0
    measured_ms: float | None = None
    estimated_ms: float = 0.0
    corrected_ms: float = 0.0
