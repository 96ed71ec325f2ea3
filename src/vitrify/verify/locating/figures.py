"""What is told of one tensor: its errors, the values at the ends of its type, and the user's node that makes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Tensor
from vitrify.results.tracing import FigureOfTensor
from vitrify.verify.metrics import Sums, finite

Array = np.ndarray[Any, np.dtype[Any]]


def figures(sums: Sums) -> FigureOfTensor:
    """Return what is told of the sums."""
    return FigureOfTensor(sqnr_db=finite(sums.sqnr_db), cosine=sums.cosine, largest_error=sums.largest_error,
                          max_lsb=sums.max_lsb, equal=sums.equal)


def node_name(tensor: Tensor) -> str:
    """The last of the user's nodes that a tensor was made from, '' for an input."""
    node = tensor.producer
    if node is None:
        return ""
    return node.origin.sources[-1].name if node.origin.sources else node.name


def real(value: Array, tensor: Tensor) -> Array:
    """The real values of what a tensor held."""
    return value if tensor.quantization is None or value.dtype.kind == "f" else tensor.quantization.dequantize(value)


def at_ends(raw: Array) -> float:
    """The share of 8-bit or 16-bit values that are the least or the largest of their type."""
    if raw.dtype.kind not in "iu" or raw.dtype.itemsize > 2 or not raw.size:
        return 0.0
    info = np.iinfo(raw.dtype)
    return float(np.mean((raw == info.min) | (raw == info.max)))
