"""A finding: one thing worth telling the user, the same object in the terminal, in JSON and on a page."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec


class Severity(Enum):
    """How much a finding weighs. Only ``ERROR`` makes a command fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """What was found, where, why, and what to do.

    ``headline`` holds the value found and the limit; ``where`` uses the names of the user's own file; ``help`` is a
    command, option or edit that works as written, and is empty rather than guessed.
    """

    code: str
    headline: str
    severity: Severity = Severity.ERROR
    where: str = ""
    why: str = ""
    help: str = ""

    def __str__(self) -> str:
        lines = [f"{self.severity.value}[{self.code}]: {self.headline}"]
        lines += [f"  {label:>5}: {text}" for label, text in
                  (("where", self.where), ("why", self.why), ("help", self.help)) if text]
        return "\n".join(lines)


def worst(findings: Iterable[Finding]) -> Severity | None:
    """Return the heaviest severity among ``findings``, None when there are none."""
    order = list(Severity)
    return min((f.severity for f in findings), key=order.index, default=None)
