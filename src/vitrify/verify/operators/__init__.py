"""Each operator of a quantized model by itself: its own error, what that costs the outputs, how values are spread."""

from vitrify.verify.operators.analysis import analyze

__all__ = ["analyze"]
