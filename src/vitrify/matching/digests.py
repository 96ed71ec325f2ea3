"""What a constant holds, told by a number that does not depend on its layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Tensor

Array = np.ndarray[Any, np.dtype[Any]]

TELLING = 16
"""Constants of fewer elements are too often equal by chance to tell anything."""

_CHUNK = 1 << 18
_ODD = np.uint64(0x9E3779B97F4A7C15)
_ODD_TOO = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


def digest(tensor: Tensor) -> tuple[int, int] | None:
    """Return a number for the values of a constant in any order; None where they tell nothing.

    Floats count as rounded to float16. Values are mixed one by one and summed, so that a permutation of them has the
    same sum.
    """
    data = tensor.data
    if data is None or data.size < TELLING or data.dtype.itemsize not in (1, 2, 4, 8):
        return None
    first = data.flat[0]
    flat = np.ascontiguousarray(data).reshape(-1)
    if bool((flat[:64] == first).all()) and bool((flat == first).all()):
        return None
    if flat.dtype.itemsize == 1:
        counts = np.bincount(flat.view(np.uint8), minlength=256)
        return data.size, hash(counts.tobytes())
    if flat.dtype == np.float32:
        with np.errstate(over="ignore"):
            flat = flat.astype(np.float16)                 # so that weights stored as float16 are the same ones
    bits = flat.view(np.dtype(f"u{flat.dtype.itemsize}"))
    total = 0
    with np.errstate(over="ignore"):
        for start in range(0, bits.size, _CHUNK):
            mixed = bits[start:start + _CHUNK].astype(np.uint64) * _ODD
            mixed ^= mixed >> _SHIFT
            mixed *= _ODD_TOO
            mixed ^= mixed >> _SHIFT
            total += int(mixed.sum(dtype=np.uint64))
    return data.size, total & ((1 << 64) - 1)
