"""Operators written out as ONNX's own, a family per file; importing this package registers those of every file."""

from importlib import import_module
from pkgutil import iter_modules

from vitrify.importers.onnx.expansions.registry import EXPANSIONS, expand

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["EXPANSIONS", "expand"]
