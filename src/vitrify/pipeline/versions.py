"""The versions that a result depends on."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from vitrify._version import __version__
from vitrify.core.hashing import fingerprint

PACKAGES = ("ai-edge-litert", "ethos-u-vela", "flatbuffers", "numpy", "onnx", "onnxruntime", "pillow")


def code() -> str:
    """Return a hash that changes with our own code, since a version stays the same while it is worked on."""
    import vitrify

    return fingerprint(sorted(Path(vitrify.__file__).parent.rglob("*.py")))


def versions() -> dict[str, str]:
    """Return the versions of Vitrify, Python and the packages that do the work; absent ones are left out."""
    found = {"vitrify": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
