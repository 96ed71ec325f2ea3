"""The versions that a result depends on."""

from __future__ import annotations

import platform
from importlib import metadata

from vitrify._version import __version__

PACKAGES = ("ai-edge-litert", "ethos-u-vela", "flatbuffers", "numpy", "onnx", "onnxruntime", "pillow")


def versions() -> dict[str, str]:
    """Return the versions of Vitrify, Python and the packages that do the work; absent ones are left out."""
    found = {"vitrify": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
