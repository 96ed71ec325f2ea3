"""Control flow, settled at import; importing this package registers all of it."""

from vitrify.importers.onnx.controls import branches, lists, loops
from vitrify.importers.onnx.controls.registry import CONTROL, carry_out

__all__ = ["CONTROL", "branches", "carry_out", "lists", "loops"]
