"""Integers and floats of 8 bits and less, several to a byte, the first in its lowest bits.

Source: onnx.proto, TensorProto; OCP Microscaling Formats 1.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.elements import SMALL_FLOATS, SmallFloat

Array = np.ndarray[Any, np.dtype[Any]]

BITS = {17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2}
"""The element types of the kind by their number, with the bits of each."""
_SIGNED = (22, 26)
_FLOATS = {17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 23: "float4_e2m1fn"}
_POWERS = 24  # float8_e8m0: an exponent without sign and mantissa
_BYTE = 8


def packed_size(count: int, kind: int) -> int:
    """The bytes that ``count`` elements take."""
    return -(-count * BITS[kind] // _BYTE)


def unpacked(data: Array, count: int, kind: int) -> Array:
    """The elements of uint8 ``data`` as int8, uint8 or float32."""
    bits = BITS[kind]
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    values: Array = ((data.view(np.uint8)[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]
    if kind in _FLOATS:
        return _floats(SMALL_FLOATS[_FLOATS[kind]], bits)[values]
    if kind == _POWERS:
        return np.where(values == 255, np.float32(np.nan), np.exp2(values.astype(np.float64) - 127)).astype(np.float32)
    if kind not in _SIGNED:
        return values
    half = 1 << (bits - 1)
    return ((values.astype(np.int8) ^ half) - half).astype(np.int8)


def _floats(kind: SmallFloat, bits: int) -> Array:
    """The float32 of every code: a sign, an exponent, a mantissa; beyond the largest value lie infinity and NaN."""
    codes = np.arange(2 ** (bits - 1))
    whole = 2 ** (kind.digits - 1)
    exponent, mantissa = codes // whole, codes % whole
    values = np.where(exponent == 0, mantissa, (whole + mantissa) * 2.0 ** np.maximum(exponent - 1, 0)) * kind.step
    beyond = np.flatnonzero(values > kind.most)
    values[beyond] = np.nan
    if kind.infinite:
        values[beyond[:1]] = np.inf
    negative = -values
    if kind.unsigned_zero:
        negative[0] = np.nan
    return np.concatenate([values, negative]).astype(np.float32)
