"""Changes of element type and of quantization."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Quantize(Operator):
    """QUANTIZE."""

    name = "QUANTIZE"
    options = "QuantizeOptions"


@operator
@dataclass(frozen=True)
class Dequantize(Operator):
    """DEQUANTIZE."""

    name = "DEQUANTIZE"
    options = "DequantizeOptions"


@operator
@dataclass(frozen=True)
class Cast(Operator):
    """CAST."""

    name = "CAST"
    options = "CastOptions"
    in_data_type: int = 0
    out_data_type: int = 0


@operator
@dataclass(frozen=True)
class FakeQuant(Operator):
    """FAKE_QUANT."""

    name = "FAKE_QUANT"
    options = "FakeQuantOptions"
    min: float = 0.0
    max: float = 0.0
    num_bits: int = 0
    narrow_range: bool = False


@operator
@dataclass(frozen=True)
class Densify(Operator):
    """DENSIFY."""

    name = "DENSIFY"
    options = "DensifyOptions"
