"""Affine quantization: real = scale * (q - zero_point), per tensor or per index of one named axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Quantization:
    """The scales and zero points of a tensor.

    ``scale`` float32[n] and ``zero_point`` int64[n]; n is 1, or the extent of ``axis``. ``axis`` is None per tensor.
    ``minimum``/``maximum`` (float32[n] or empty) and ``details`` keep what a file says besides; nothing computes with
    them.
    """

    scale: Array
    zero_point: Array
    axis: int | None = None
    minimum: Array | None = None
    maximum: Array | None = None
    details: Any = None

    @classmethod
    def per_tensor(cls, scale: float, zero_point: int = 0) -> Quantization:
        """One scale and zero point for the whole tensor."""
        return cls(np.array([scale], np.float32), np.array([zero_point], np.int64))

    @classmethod
    def per_axis(cls, scale: Array, axis: int, zero_point: Array | None = None) -> Quantization:
        """One scale for each index of ``axis``; symmetric unless zero points are given."""
        scale = np.asarray(scale, np.float32)
        return cls(scale, np.zeros(scale.shape, np.int64) if zero_point is None else zero_point, axis)

    @property
    def is_per_axis(self) -> bool:
        """True when an axis carries more than one scale."""
        return self.axis is not None and len(self.scale) > 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantization):
            return NotImplemented
        return (self.axis == other.axis and np.array_equal(self.scale, other.scale)
                and np.array_equal(self.zero_point, other.zero_point))

    def __hash__(self) -> int:
        return hash((self.scale.tobytes(), self.zero_point.tobytes(), self.axis))

    def _along(self, values: Array, rank: int) -> Array:
        """Shape per-axis values so that they broadcast against a tensor of ``rank``."""
        if not self.is_per_axis:
            return values.reshape(()) if values.size == 1 else values
        shape = [1] * rank
        shape[self.axis if self.axis is not None else 0] = -1
        return values.reshape(shape)

    def quantize(self, real: Array, dtype: np.dtype | type) -> Array:
        """Round real values to the nearest step, halves away from zero as TFLite does, and saturate."""
        info = np.iinfo(dtype)
        scaled = real.astype(np.float32) / self._along(self.scale, real.ndim)
        whole = np.trunc(scaled)
        with np.errstate(invalid="ignore"):      # of infinities
            half = np.abs(scaled - whole) >= 0.5      # adding 0.5 instead would round up the float just below it
        rounded = whole + np.copysign(half, scaled) + self._along(self.zero_point, real.ndim)
        clipped: Array = np.clip(rounded, info.min, info.max)
        return clipped.astype(dtype)

    def dequantize(self, q: Array) -> Array:
        """Return the real values float32 that ``q`` stands for."""
        shifted = q.astype(np.float32) - self._along(self.zero_point, q.ndim).astype(np.float32)
        return (shifted * self._along(self.scale, q.ndim)).astype(np.float32)

    def __str__(self) -> str:
        if self.scale.size == 1:
            return f"scale {float(self.scale[0]):.6g}, zero point {int(self.zero_point[0])}"
        return f"{self.scale.size} scales on axis {self.axis}"
