"""What is known at import is computed at import: shape arithmetic never reaches the graph.

Importing this package registers the folds of every file in it.
"""

from importlib import import_module
from pkgutil import iter_modules

from vitrify.importers.onnx.folds.registry import FOLDS, TooCostlyError, fold

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["FOLDS", "TooCostlyError", "fold"]
