"""Integer arithmetic as C++ does it."""

from __future__ import annotations

import numpy as np

from vitrify.ir.graph import Array


def mean_towards_zero(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    """Return the integer means over ``axes``, rounded towards zero."""
    total = np.asarray(x.sum(axis=axes, keepdims=keep_dims, dtype=np.int64))
    count = int(np.prod([x.shape[axis] for axis in axes]))
    return np.asarray(np.sign(total) * (np.abs(total) // max(1, count)))
