"""Element types: how a tensor of each of ONNX's types is held in the graph, and how the small floats are rounded.

Floats are held as float32 and wide integers as int32; types that TFLite has no kernels for are held in a wider one
that has all their values. Source: ONNX's documents on float8, float4 and small integers; OCP Microscaling Formats 1.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir import DType

_HELD = {
    **dict.fromkeys(("float16", "float64", "bfloat16"), DType.FLOAT32),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), DType.FLOAT32),
    **dict.fromkeys(("float8_e8m0fnu", "float4_e2m1fn"), DType.FLOAT32),
    **dict.fromkeys(("int64", "uint64", "uint32"), DType.INT32),
    **dict.fromkeys(("int4", "int2"), DType.INT8),
    **dict.fromkeys(("uint4", "uint2"), DType.UINT8),
}


def graph_dtype(name: str) -> DType:
    """The element type that a tensor of ONNX's type ``name`` has in the graph: float32 for floats, int32 for int64.

    Raises:
        KeyError: no counterpart (strings).
    """
    if name == "string":
        raise KeyError(name)
    return _HELD.get(name) or DType[name.upper()]


def held(name: str) -> str:
    """The numpy type that a constant of ONNX's type ``name`` has: its own, or that of the wider type it is held in."""
    small = name in SMALL_FLOATS or name in SMALL_INTEGERS or name in ("bfloat16", "float8_e8m0fnu")
    return graph_dtype(name).label if small else name


@dataclass(frozen=True)
class SmallFloat:
    """A float of a few bits.

    ``digits`` counts the bits of the mantissa with the leading one, ``least`` is the exponent of the smallest normal
    number, ``most`` the largest finite value. ``infinite``: beyond it lie infinities, else NaN. ``unsigned_zero``: the
    code of -0 is NaN's.
    """

    digits: int
    least: int
    most: float
    infinite: bool = False
    unsigned_zero: bool = False

    @property
    def step(self) -> float:
        """The distance between two neighbours among the smallest numbers."""
        return float(2.0 ** (self.least - self.digits + 1))


SMALL_FLOATS = {
    "float8_e4m3fn": SmallFloat(4, -6, 448.0),
    "float8_e4m3fnuz": SmallFloat(4, -7, 240.0, unsigned_zero=True),
    "float8_e5m2": SmallFloat(3, -14, 57344.0, infinite=True),
    "float8_e5m2fnuz": SmallFloat(3, -15, 57344.0, unsigned_zero=True),
    "float4_e2m1fn": SmallFloat(2, 0, 6.0),
}
SMALL_INTEGERS = {"int4": 4, "int2": 2, "uint4": 4, "uint2": 2}
"""Bits of each."""
