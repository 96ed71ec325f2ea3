"""The lowerings, a family of operators per file; importing this package registers those of every file in it."""

from importlib import import_module
from pkgutil import iter_modules

from vitrify.importers.onnx.registry import LOWERINGS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["LOWERINGS"]
