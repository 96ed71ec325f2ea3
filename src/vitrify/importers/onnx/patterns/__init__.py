"""Groups of ONNX nodes that are one operator, put together before lowering; a pattern per file.

Here are the patterns whose operator does not exist in TFLite, or whose axis is known in ONNX's layout only. Those made
of TFLite's own operators are passes, so that models of every format gain. Importing this package registers them all.
"""

from importlib import import_module
from pkgutil import iter_modules

from vitrify.importers.onnx.patterns.registry import join_patterns

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["join_patterns"]
