"""How the values of a tensor are spread in float and in integers, and which of them the integers lose."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Tensor
from vitrify.results import DistributionRow

Array = np.ndarray[Any, np.dtype[Any]]
BINS = 48


def distribution(tensor: Tensor, real: Array, given: Array, operator: str) -> DistributionRow | None:
    """Compare the float model's values of a tensor with the integers in its place; None without a scale."""
    quantization, dtype = tensor.quantization, tensor.dtype.numpy
    if quantization is None or dtype is None or dtype.kind not in "iu" or not real.size or not np.isfinite(real).all():
        return None
    info = np.iinfo(dtype)
    read = quantization.dequantize(given)
    low, high = min(float(real.min()), float(read.min())), max(float(real.max()), float(read.max()))
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    wished = quantization.quantize(np.nan_to_num(real), dtype)
    zero = int(quantization.zero_point.reshape(-1)[0])
    alive = real != 0
    return DistributionRow(
        tensor=tensor.name, operator=operator, low=low, high=high,
        float_counts=np.histogram(real, edges)[0].tolist(), integer_counts=np.histogram(read, edges)[0].tolist(),
        saturated=float(np.mean((given == info.min) | (given == info.max))),
        dead=float(np.mean(wished[alive] == zero)) if alive.any() else 0.0,
        levels=int(wished.max()) - int(wished.min()) + 1, levels_in_all=int(info.max) - int(info.min) + 1)
