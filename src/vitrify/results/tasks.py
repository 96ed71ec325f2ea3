"""What a model found in its inputs, and how good it is on a set of samples."""

from __future__ import annotations

from typing import Any

import msgspec


class FoundRow(msgspec.Struct, kw_only=True):
    """What one stage found in one input: in words, and as plain values (``found``); of maps only what sums them up."""

    input: str
    stage: str
    lines: list[str] = []
    found: dict[str, Any] = {}


class StageScore(msgspec.Struct, kw_only=True):
    """One stage's figures by metric, and what of ``main`` it lost against the first stage.

    ``seconds`` is time inside the runtime. ``problem`` says why there are no figures.
    """

    stage: str
    figures: dict[str, float] = {}
    drop: float | None = None
    samples: int = 0
    seconds: float = 0.0
    runtime: str = ""
    problem: str = ""


class TaskFacts(msgspec.Struct, kw_only=True):
    """What the outputs were taken to mean, and how files became inputs."""

    task: str = ""
    decoder: str = ""
    classes: int = 0
    prepare: dict[str, Any] = {}
