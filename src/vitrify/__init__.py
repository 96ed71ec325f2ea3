"""Vitrify takes a trained model to an embedded NPU and proves every step.

    import vitrify as vt
    int8 = vt.quantize(vt.load("model.onnx"), data="photos/")
    print(vt.check(int8, target="imx93"))

What stands in ``__all__`` is public; it is loaded when it is first used, so that importing stays quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vitrify._version import __version__

if TYPE_CHECKING:
    from vitrify.api import (
        build,
        check,
        compile,
        convert,
        diff,
        evaluate,
        explain,
        inspect,
        load,
        profile,
        quantize,
        run,
        sweep,
        targets,
        verify,
    )
    from vitrify.core.errors import QualityWarning, VitrifyError
    from vitrify.core.findings import Finding
    from vitrify.data.preprocess import Preprocess
    from vitrify.ir import Model
    from vitrify.pipeline.quantizing.quantized import QuantizedModel
    from vitrify.quant import Recipe

__all__ = ["Finding", "Model", "Preprocess", "QualityWarning", "QuantizedModel", "Recipe", "VitrifyError",
           "__version__", "build", "check", "compile", "convert", "diff", "evaluate", "explain", "inspect", "load",
           "profile", "quantize", "run", "sweep", "targets", "verify"]

_HOMES = {
    "Finding": "vitrify.core.findings",
    "Model": "vitrify.ir",
    "Preprocess": "vitrify.data.preprocess",
    "QualityWarning": "vitrify.core.errors",
    "QuantizedModel": "vitrify.pipeline.quantizing.quantized",
    "Recipe": "vitrify.quant",
    "VitrifyError": "vitrify.core.errors",
}


class _Front(ModuleType):
    """Keeps a public function in its place when the package of the same name (``vitrify.verify``) is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'vitrify' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "vitrify.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
