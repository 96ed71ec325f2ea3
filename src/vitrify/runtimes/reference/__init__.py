"""The operators' numpy references as a runtime: slow, to the bit what LiteRT's reference kernels compute."""

from vitrify.runtimes.reference.runtime import Reference

__all__ = ["Reference"]
