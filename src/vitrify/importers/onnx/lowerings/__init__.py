"""The lowerings, a family of operators per file. A file is imported when a model has an operator that it declares.

Which file that is stands in ``files.json``, written by ``python -m vitrify.importers.onnx.lowerings``; a test says when
it is to be written again. What registers a lowering is its decorator alone.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from vitrify.importers.onnx.registry import LOWERINGS

FILES = Path(__file__).with_name("files.json")

__all__ = ["FILES", "LOWERINGS", "declared"]

LOWERINGS.files.update((kind, f"{__name__}.{file}")
                       for file, kinds in json.loads(FILES.read_bytes()).items() for kind in kinds)


def declared() -> dict[str, list[str]]:
    """Import every file; returns the kinds that each declares."""
    for module in iter_modules(__path__):
        if module.name != "__main__":
            import_module(f"{__name__}.{module.name}")
    found: dict[str, list[str]] = {}
    for kind, function in sorted(LOWERINGS.loaded.items()):
        folder, _, file = function.__module__.rpartition(".")
        if folder == __name__:               # patterns declare some too, and are always loaded
            found.setdefault(file, []).append(kind)
    return dict(sorted(found.items()))
