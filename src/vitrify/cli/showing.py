"""Progress on standard error: a bar with the time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vitrify.core.progress import Reporter, Silent, TimeLeft, duration
from vitrify.core.text import without_controls

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_EVERY = 10.0
"""Seconds between two plain lines of one stage: enough to see that it lives, few enough for a log."""


def reporter(quiet: bool) -> Reporter:
    """Return the reporter that fits where standard error goes."""
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


class Lines:
    """One line for each stage, and one now and then inside long ones."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._name = ""
        self._left = TimeLeft()
        self._next = 0.0

    def stage(self, name: str) -> None:
        """A stage begins."""
        self._name, self._left = name, TimeLeft()
        self._next = time.monotonic() + LINE_EVERY

    def advance(self, done: int, total: int) -> None:
        """Say now and then how far the stage is."""
        left = self._left.seconds(done, total)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_EVERY
        rest = "" if left is None else f", about {duration(left)} left"
        self._print(f"{self._name}: {done}{f' of {total}' if total else ''}{rest}")

    def finish(self, name: str, text: str) -> None:
        """Say what came out."""
        self._print(f"{name}: {text}")

    def close(self) -> None:
        """Nothing is open."""

    def _print(self, text: str) -> None:
        with suppress(OSError):      # standard error may be full, or nobody may read it: the work goes on
            print(f"[{time.monotonic() - self._started:6.1f} s] {without_controls(text)}", file=sys.stderr, flush=True)


class Bar:
    """A live line for the current stage with the time left; finished stages stay above it."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def _live(self) -> Progress:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

            columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(),
                                  TextColumn("{task.fields[steps]}"), TimeRemainingColumn(elapsed_when_finished=True)]
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.start()
        return self._progress

    def stage(self, name: str) -> None:
        """A stage begins."""
        live = self._live()
        if self._task is not None:
            live.remove_task(self._task)
        self._task = live.add_task(name, total=None, steps="")

    def advance(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._live().update(self._task, completed=done, total=total or None,
                                steps=f"{done}/{total}" if total else f"{done}")

    def finish(self, name: str, text: str) -> None:
        """Leave one line above the bar."""
        self._live().console.print(f"  {name}: {without_controls(text)}", markup=False, highlight=False)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
