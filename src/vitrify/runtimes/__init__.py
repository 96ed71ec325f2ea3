"""Run a model where it can be run: LiteRT, ONNX Runtime. Outside code stays in child processes."""

from __future__ import annotations

from vitrify.runtimes.base import Capabilities, Observation, Profile, Runtime, Traced
from vitrify.runtimes.opening import open

__all__ = ["Capabilities", "Observation", "Profile", "Runtime", "Traced", "open"]
