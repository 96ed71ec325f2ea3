"""The float functions of the C library, which fill LiteRT's tables.

They are not always the nearest floats, and numpy's differ from them in the last bit, which moves a rounded step now and
then. Where no C library is found, the nearest float takes their place.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

from vitrify.ir.graph import Array


@cache
def _function(name: str) -> Callable[[float], float] | None:
    """Return a function of one float, None where the library or the function is missing."""
    found = ctypes.util.find_library("m") if sys.platform != "win32" else None
    try:
        function = getattr(ctypes.CDLL(found), name) if found else None
    except (OSError, AttributeError):
        return None
    if function is None:
        return None
    function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    call: Callable[[float], float] = function
    return call


def floats(name: str, x: Array) -> Array:
    """Return a function of every float: exp, log, expm1, tanh or erfc."""
    function = _function(f"{name}f") or getattr(math, name)
    return np.array([function(float(value)) for value in x.reshape(-1)], np.float32).reshape(x.shape)
