"""What helps where an operator is not supported: the change at the source that avoids it."""

_NMS = "export the model without its post-processing (Ultralytics: nms=False) and do that after the model"
_QUANTIZED = "give the float model: Vitrify quantizes it itself"

HINTS = {
    "Erf": "it is converted as part of Gelu only: x * 0.5 * (1 + Erf(x / sqrt(2)))",
    "NonMaxSuppression": _NMS,
    "TopK": _NMS,
    "NonZero": "it makes a shape that depends on the data; move it after the model",
    "QuantizeLinear": _QUANTIZED,
    "DequantizeLinear": _QUANTIZED,
    "DynamicQuantizeLinear": _QUANTIZED,
    "QLinearConv": _QUANTIZED,
    "QLinearMatMul": _QUANTIZED,
    "ConvInteger": _QUANTIZED,
    "MatMulInteger": _QUANTIZED,
    "GridSample": "cut the model before it and do the sampling on the CPU",
    "Unique": "it makes a shape that depends on the data; move it after the model",
}
