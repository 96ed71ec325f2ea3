"""Progress of long work: how much is done, and how long the rest will take. Who shows it is decided elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

ProgressCallback = Callable[[int, int], None]
"""What working functions take: ``progress(done, total)`` after each step; total 0 when it is not known."""

WINDOW = 16
"""Steps that the speed is taken from: enough to be calm, few enough to follow a change."""


class Reporter(Protocol):
    """Shows the stages of one command: a bar, plain lines, or nothing."""

    def stage(self, name: str) -> None:
        """A stage begins."""

    def advance(self, done: int, total: int) -> None:
        """The current stage has done ``done`` of ``total`` steps."""

    def finish(self, name: str, text: str) -> None:
        """The stage is over; ``text`` says in a few words what came out."""

    def close(self) -> None:
        """Nothing more will come."""


class Silent:
    """A reporter that shows nothing."""

    def stage(self, name: str) -> None:
        """Do nothing."""

    def advance(self, done: int, total: int) -> None:
        """Do nothing."""

    def finish(self, name: str, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass
class TimeLeft:
    """Estimates the seconds left from the speed of the last steps; ``clock`` gives seconds."""

    clock: Callable[[], float] = time.monotonic
    _marks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def seconds(self, done: int, total: int) -> float | None:
        """Take note of ``done`` and return the seconds left, None while nothing can be said."""
        self._marks.append((self.clock(), done))
        (first, low), (last, high) = self._marks[0], self._marks[-1]
        if total <= 0 or high <= low:
            return None
        return max(0.0, (total - done) * (last - first) / (high - low))


def duration(seconds: float) -> str:
    """Return a duration as a person says it: ``0.8 s``, ``12 s``, ``3 min 05 s``, ``1 h 02 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
