"""Collects what is wrong with a file, so that one damaged part never hides the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from msgspec import structs

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding

MOST_FINDINGS = 20
T = TypeVar("T")


class Problems:
    """The findings about one file; ``where`` is the file's name."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[Finding] = []

    def report(self, code: str, headline: str, where: str) -> None:
        """Add a finding about a part of the file."""
        self.found.append(Finding(code=code, headline=headline, where=where,
                                  help="export or fetch the file again, it may be damaged"))

    def attempt(self, step: Callable[[], T]) -> T | None:
        """Return what ``step`` gives, None when it raises a ModelError, whose findings are added."""
        try:
            return step()
        except ModelError as error:
            self.found += error.findings
            return None

    def raise_if_any(self) -> None:
        """Raise what was found, each problem once and with the file's name.

        Raises:
            ModelError: something was found.
        """
        if self.found:
            self._raise()

    def _raise(self) -> NoReturn:
        listed = list(dict.fromkeys(structs.replace(f, where=self._in_file(f.where)) for f in self.found))
        more = len(listed) - MOST_FINDINGS
        if more > 0:
            listed[MOST_FINDINGS:] = [Finding(code="tflite.more", headline=f"{more} more problems", where=self.where)]
        raise ModelError(listed)

    def _in_file(self, where: str) -> str:
        return where if where.startswith(self.where) else f"{self.where}, {where}" if where else self.where
