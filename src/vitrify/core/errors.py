"""The errors that the library raises; each carries findings, so that every front end shows the same words.

    VitrifyError
    ├── ModelError        the model is invalid or cannot be read
    ├── TargetError       the target or its compiler cannot do it
    ├── UnsupportedError  we do not do it yet
    ├── DataError         calibration or test data is missing or does not fit
    ├── UsageError        the call itself is wrong (exit status 2)
    └── InternalError     our bug: the message says what to attach
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from vitrify.core.findings import Finding


class VitrifyError(Exception):
    """The base of all errors raised on purpose; ``findings`` lists every problem seen, never only the first."""

    exit_status = 1

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = (findings,) if isinstance(findings, Finding) else tuple(findings)
        super().__init__("\n".join(str(f) for f in self.findings))

    def __reduce__(self) -> tuple[type[VitrifyError], tuple[tuple[Finding, ...]]]:
        return type(self), (self.findings,)      # errors cross the border of worker processes

    @classmethod
    def of(cls, code: str, headline: str, *, where: str = "", why: str = "", help: str = "") -> Self:
        """Build the error from the parts of its single finding."""
        return cls(Finding(code=code, headline=headline, where=where, why=why, help=help))


class QualityWarning(UserWarning):
    """A model was made, but its answers are not good; what is wrong stands in the message and in its result."""


class ModelError(VitrifyError):
    """The model is invalid or cannot be read."""


class TargetError(VitrifyError):
    """The target, or its compiler, cannot do what was asked."""


class UnsupportedError(VitrifyError):
    """A valid model asks for something that Vitrify does not do yet."""


class DataError(VitrifyError):
    """Calibration or test data is missing, unreadable or does not fit the model."""


class UsageError(VitrifyError):
    """The call itself is wrong."""

    exit_status = 2


class InternalError(VitrifyError):
    """A bug of ours; the finding says what to attach to a report."""
