"""Run a model where it can be run: LiteRT, ONNX Runtime. Outside code stays in child processes.

Names are loaded when used: the children import modules below this one and need nothing of what stands here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrify.runtimes.base import Capabilities, Observation, Profile, Runtime, Traced
    from vitrify.runtimes.opening import open

__all__ = ["Capabilities", "Observation", "Profile", "Runtime", "Traced", "open"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("vitrify.runtimes.opening" if name == "open" else "vitrify.runtimes.base"), name)
