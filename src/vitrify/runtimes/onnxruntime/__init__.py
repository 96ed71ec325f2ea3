"""ONNX Runtime on the CPU: the reference for ONNX models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrify.runtimes.onnxruntime.runtime import OnnxRuntime

__all__ = ["OnnxRuntime"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vitrify.runtimes.onnxruntime import runtime  # not in the child, which imports the session beside it

    return getattr(runtime, name)
