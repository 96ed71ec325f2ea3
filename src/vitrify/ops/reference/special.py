"""Functions that numpy lacks."""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.graph import Array

_ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """Return the error function of every element, in the type of ``x``."""
    return np.asarray(_ERF(x)).astype(x.dtype)
