"""What helps where an operator is not supported: the change at the source that avoids it."""

_QUANTIZED = "give the float model: Vitrify quantizes it itself"

HINTS = {
    "QuantizeLinear": _QUANTIZED,
    "DequantizeLinear": _QUANTIZED,
    "DynamicQuantizeLinear": _QUANTIZED,
    "QLinearConv": _QUANTIZED,
    "QLinearMatMul": _QUANTIZED,
}
