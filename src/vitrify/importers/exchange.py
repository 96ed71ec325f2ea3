"""Models of training frameworks: the framework's own exporter turns them into ONNX or TFLite, in a child process.

A front end is a package with ``match(path) -> bool``, which only looks, and ``exchange(path, folder, request)``, which
writes the model into ``folder``. From there on the model is what it was exchanged for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding
from vitrify.core.progress import ProgressCallback
from vitrify.results import InspectResult

FRONT_ENDS = ("vitrify.importers.torch", "vitrify.importers.tensorflow")
_ARCHIVES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x04", b"\x89HDF")
"""What their files begin with: ZIP, Python's pickle, HDF5. Folders are looked at too."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller says of the model: shapes and named dimensions, and whether code in it may run.

    ``progress`` is told how many of the exchange's steps are done.
    """

    sizes: dict[str, tuple[int, ...] | int] = {}
    trust: bool = False
    progress: ProgressCallback | None = None


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The file that a front end wrote, and what it told. The same sizes fit the file as they did its source."""

    path: Path
    findings: list[Finding] = []


class FrontEnd(Protocol):
    """A package that exchanges one framework's formats."""

    def match(self, path: Path) -> bool:
        """True when the file or folder is one of its formats."""

    def exchange(self, path: Path, folder: Path, request: Request) -> Exchanged:
        """Write the model into ``folder`` as ONNX or TFLite.

        Raises:
            VitrifyError: the framework is not installed, the model needs trust or shapes, or its export failed.
        """

    def inspect(self, path: Path) -> InspectResult:
        """Say what the file holds, without the framework and without running anything of it.

        Raises:
            VitrifyError: it is damaged.
        """


def front_end(path: Path) -> FrontEnd | None:
    """Return the front end for a file or folder, None when it is no training framework's."""
    if not (path.is_dir() or _head(path).startswith(_ARCHIVES)):
        return None
    for name in FRONT_ENDS:
        found: Any = import_module(name)
        if found.match(path):
            front: FrontEnd = found
            return front
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(8)
    except OSError:
        return b""                         # whoever opens it in earnest says what is wrong


def sized(sizes: Mapping[str, Sequence[int] | int]) -> dict[str, tuple[int, ...] | int]:
    """Plain sizes, as they cross to a child process."""
    return {name: size if isinstance(size, int) else tuple(map(int, size)) for name, size in sizes.items()}


def not_installed(package: str, extra: str, where: Path) -> UsageError:
    """The framework that a model needs is missing."""
    return UsageError.of("framework.missing", f"'{where}' needs {package}, which is not installed", where=str(where),
                         help=f"pip install 'vitrify[{extra}]', or export the model to ONNX where {package} is")
