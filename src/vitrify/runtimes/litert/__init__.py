"""LiteRT, the TFLite runtime: kernels ``reference``, ``optimized`` or ``xnnpack``."""

from __future__ import annotations

from vitrify.runtimes.litert.runtime import KERNELS, LiteRT

__all__ = ["KERNELS", "LiteRT"]
