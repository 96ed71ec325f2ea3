"""Integers of 2 and 4 bits, several to a byte, the first in its lowest bits. Source: onnx.proto, TensorProto."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BITS = {21: 4, 22: 4, 25: 2, 26: 2}
"""The element types of the kind by their number, with the bits of each."""
_SIGNED = (22, 26)
_BYTE = 8


def packed_size(count: int, kind: int) -> int:
    """The bytes that ``count`` elements take."""
    return -(-count * BITS[kind] // _BYTE)


def unpacked(data: Array, count: int, kind: int) -> Array:
    """The elements of uint8 ``data`` as int8 or uint8."""
    bits = BITS[kind]
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    values = ((data.view(np.uint8)[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]
    if kind not in _SIGNED:
        return values
    half = 1 << (bits - 1)
    return ((values.astype(np.int8) ^ half) - half).astype(np.int8)
