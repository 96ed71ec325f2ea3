"""What a search has found, in a file of lines: one that was killed goes on where it stopped.

Each line belongs to a key that says of what it is; those of another search, and one that was not finished, are not
taken.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vitrify.core.hashing import hash_value

CALIBRATION = ".npz"
"""The ending, behind the file's own name, of the checkpoint of the calibration before the search."""


class Kept:
    """The lines of one search; without a file nothing is kept."""

    def __init__(self, path: Path | None, key: object) -> None:
        self._path = path
        self._key = hash_value(key)
        self._held: dict[str, Any] = dict(self._lines())

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def __getitem__(self, name: str) -> Any:
        return self._held[name]

    @property
    def path(self) -> Path | None:
        """The file."""
        return self._path

    def names(self) -> frozenset[str]:
        """What is held."""
        return frozenset(self._held)

    def add(self, name: str, value: Any) -> None:
        """Keep a value that JSON can hold; it is in the file when this returns."""
        self._held[name] = value
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([self._key, name, value]) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _lines(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        if self._path is None or not self._path.is_file():
            return found
        text = self._path.read_text(encoding="utf-8", errors="replace")
        if text and not text.endswith("\n"):       # killed in the middle of a line: what comes next begins a new one
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write("\n")
        for line in text.splitlines():
            try:
                key, name, value = json.loads(line)
            except ValueError:
                continue
            if key == self._key:
                found.append((str(name), value))
        return found

    def forget(self) -> None:
        """Remove the file: the search is over."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def forget(state: Path | None) -> None:
    """Remove both files of a search, if it has any."""
    if state is not None:
        state.unlink(missing_ok=True)
        checkpoint(state).unlink(missing_ok=True)


@contextmanager
def resumable(state: Path) -> Iterator[None]:
    """Let an interruption of the block say that the files of the search stay.

    Raises:
        KeyboardInterrupt: the block's own.
    """
    try:
        yield
    except KeyboardInterrupt:
        left = [file.name for file in (state, checkpoint(state)) if file.exists()]
        if not left:
            raise
        raise KeyboardInterrupt(f"what it has found stays in {' and '.join(left)}, and the same call goes on from "
                                "there") from None


def checkpoint(state: Path) -> Path:
    """The file beside a search's own that keeps what calibration has seen."""
    return state.with_name(state.name + CALIBRATION)
