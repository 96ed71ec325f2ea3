"""LiteRT, the TFLite runtime: kernels ``reference``, ``optimized``, ``xnnpack`` or ``auto``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrify.runtimes.litert.runtime import KERNELS, LiteRT

__all__ = ["KERNELS", "LiteRT"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vitrify.runtimes.litert import runtime  # not in the child, which imports the session beside it

    return getattr(runtime, name)
