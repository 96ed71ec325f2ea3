"""A graph with the file's own scales: what computes between DEQUANTIZE and QUANTIZE becomes integer operators.

Importers write QUANTIZE and DEQUANTIZE where the file has them, with float operators between. The passes here move both
past what only moves values, put each computation between them into its integer operator, and leave the rest in float.
"""

from vitrify.passes.quantized.keeping import has_steps, keep_steps

__all__ = ["has_steps", "keep_steps"]
