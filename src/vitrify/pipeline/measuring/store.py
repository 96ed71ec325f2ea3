"""The file of measurements in the workspace: ``vitrify-measurements.json`` in the working folder.

``VITRIFY_MEASUREMENTS`` names another. Each measurement keeps what was estimated for it, by which facts.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from vitrify.core.errors import DataError
from vitrify.core.files import write_atomically
from vitrify.targets.base import Target

VARIABLE, NAME = "VITRIFY_MEASUREMENTS", "vitrify-measurements.json"


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What operators of one kind took together on one side; without a kind, all that ran there.

    ``ms`` is None where they were not measured by themselves.
    """

    side: str
    kind: str = ""
    count: int = 0
    ms: float | None = None
    estimated_ms: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run on a board. The estimates are uncorrected ones, by the facts with this ``stamp``."""

    target: str
    model: str
    side: str
    threads: int
    ms: float
    estimated_ms: float
    parts: tuple[Part, ...]
    source: str
    stamp: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What another measurement replaces."""
        return self.target, self.model, self.side, self.threads


class Store(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All measurements of a workspace."""

    version: int = 1
    measurements: tuple[Measurement, ...] = ()


def place() -> Path:
    """Return the file of measurements; it need not be there."""
    return Path(os.environ.get(VARIABLE) or NAME)


def read(path: Path | None = None) -> Store:
    """Return what the workspace holds, nothing where there is no file.

    Raises:
        DataError: the file does not fit.
    """
    file = path or place()
    if not file.exists():
        return Store()
    try:
        return msgspec.json.decode(file.read_bytes(), type=Store)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DataError.of("measure.store", f"{file.name} does not hold measurements: {error}", where=str(file),
                           help="mend it, or move it away: `vitrify measure` writes a new one") from error


def add(measurement: Measurement, path: Path | None = None) -> Store:
    """Write a measurement to the file, in the place of one of the same model, side and threads."""
    known = read(path).measurements
    store = Store(measurements=(*(one for one in known if one.key != measurement.key), measurement))
    write_atomically(path or place(), msgspec.json.format(msgspec.json.encode(store), indent=2) + b"\n")
    return store


def stamp(target: Target) -> str:
    """Return what tells the facts of a target from others of it."""
    return hashlib.sha256(msgspec.json.encode(target.facts)).hexdigest()[:12]
