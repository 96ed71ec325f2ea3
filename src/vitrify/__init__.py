"""Vitrify takes a trained model to an embedded NPU and proves every step."""

from vitrify._version import __version__

__all__ = ["__version__"]
