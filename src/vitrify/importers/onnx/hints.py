"""What helps where an operator is not supported: the change at the source that avoids it."""

_QUANTIZED = "give the float model: Vitrify quantizes it itself"

HINTS = {
    "Erf": "it is converted as part of Gelu only: x * 0.5 * (1 + Erf(x / sqrt(2)))",
    "QuantizeLinear": _QUANTIZED,
    "DequantizeLinear": _QUANTIZED,
    "DynamicQuantizeLinear": _QUANTIZED,
    "QLinearConv": _QUANTIZED,
    "QLinearMatMul": _QUANTIZED,
    "ConvInteger": _QUANTIZED,
    "MatMulInteger": _QUANTIZED,
}
