"""How the inputs of a layer vary together: what is needed to round its weights against each other.

For each layer small enough, calibration sums ``x`` and ``x x^T`` over the windows that the layer looks at; for a
depthwise layer for each channel by itself, for a grouped one for each group. Windows that stick out over the border are
left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.ir import Node, Tensor
from vitrify.ops import Conv2D, DepthwiseConv2D, FullyConnected, Pad
from vitrify.quant.rules import roles

Array = np.ndarray[Any, np.dtype[Any]]

MOST_TAPS = 1 << 18
"""Entries of ``x x^T`` in all channels of a depthwise layer, or groups of a grouped one, above which it is left alone:
25 taps in 419 channels."""

WINDOWS = 8
"""Windows for each input of an output that one sample adds at most, evenly spread: with eight samples, 64 of them."""

MOST_WINDOWS = 1600
"""Windows that one sample adds to a layer at most."""

FIRST = 8
"""Samples that are all looked at; of those after them, two for each doubling."""

FEWEST = 4
"""A layer that sees fewer windows in a sample than this, as behind a global pool, is left alone."""


@dataclass(eq=False)
class Moments:
    """Sums over ``count`` windows: ``first`` [g,n] of x, ``second`` [g,n,n] of x x^T.

    g is 1, or a channel or a group each.
    """

    first: Array
    second: Array
    count: int
    rounded: dict[bytes, Array] = field(default_factory=dict)
    """Weights rounded with these moments, by what else they depend on: a search for a recipe asks often."""
    won: dict[bytes, list[tuple[str, float, float]]] = field(default_factory=dict)
    """What each step of that kept before and after it in dB, likewise."""

    def add(self, other: Moments) -> Moments:
        """The sums over the windows of both."""
        return Moments(self.first + other.first, self.second + other.second, self.count + other.count)

    def affine(self, scale: Array, offset: Array) -> Moments:
        """The sums for x * scale + offset, both [n]."""
        moved = self.first * scale
        cross = moved[:, :, None] * offset[None, None, :]
        second = self.second * np.outer(scale, scale) + cross + cross.transpose(0, 2, 1) \
            + self.count * np.outer(offset, offset)
        return Moments(moved + self.count * offset, second, self.count)

    def spread(self, centered: bool) -> Array:
        """The mean of x x^T [g,n,n]; ``centered`` without the part that the means make."""
        second: Array = self.second / self.count
        if centered:
            mean = self.first / self.count
            second = second - mean[:, :, None] * mean[:, None, :]
        return second


def is_looked_at(sample: int) -> bool:
    """True for the samples that moments are taken from: 0 to 8, 12, 16, 24 and so on."""
    return sample < FIRST or sample.bit_count() == 1 or (sample.bit_count() == 2 and sample & sample << 1 != 0)


def source_of(node: Node, largest: int) -> Tensor | None:
    """The tensor whose windows a layer sees, behind its padding; None when its moments are not wanted.

    ``largest``: the inputs of an output above which a layer is left alone, as to round its weights takes long.
    """
    found = roles(node)
    if found is None or found.weight is None or found.data != 0 or not _is_small(node, largest):
        return None
    tensor = node.input(0)
    while tensor.producer is not None and isinstance(tensor.producer.op, Pad):
        tensor = tensor.producer.input(0)
    return tensor if tensor.shape[:1] == (1,) and windows_in(node, tensor.shape) >= FEWEST else None


def _is_small(node: Node, largest: int) -> bool:
    """True for a layer whose weights can be rounded against each other in little time."""
    shape, x = node.input(1).shape, node.input(0).shape
    if isinstance(node.op, DepthwiseConv2D):
        return shape[3] == x[3] and shape[3] * (shape[1] * shape[2]) ** 2 <= MOST_TAPS
    if isinstance(node.op, Conv2D):
        taps, groups = math.prod(shape[1:]), x[3] // shape[3]
        return taps <= largest and (groups == 1 or groups * taps ** 2 <= MOST_TAPS)
    return isinstance(node.op, FullyConnected) and len(x) > 1 and shape[1] <= largest


def _inputs(node: Node) -> int:
    """How many inputs an output has."""
    shape = node.input(1).shape
    return shape[1] * shape[2] if isinstance(node.op, DepthwiseConv2D) else math.prod(shape[1:])


def _offsets(node: Node) -> tuple[Array, Array]:
    """Rows and columns of a layer's taps, relative to the first."""
    if not isinstance(node.op, Conv2D | DepthwiseConv2D):
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    _, height, width, _ = node.input(1).shape
    rows, columns = np.divmod(np.arange(height * width), width)
    return rows * node.op.dilation_h_factor, columns * node.op.dilation_w_factor


def _area(node: Node, shape: tuple[int, ...]) -> tuple[int, int]:
    """How many windows lie inside the tensor, down and across."""
    if not isinstance(node.op, Conv2D | DepthwiseConv2D):
        return math.prod(shape[:-1]), 1
    rows, columns = _offsets(node)
    return max(shape[1] - int(rows[-1]), 0), max(shape[2] - int(columns[-1]), 0)


def windows_in(node: Node, shape: tuple[int, ...]) -> int:
    """How many windows lie inside a tensor of that shape."""
    return math.prod(_area(node, shape))


def moments_of(node: Node, values: Array) -> Moments:
    """Sum over evenly spread windows of one sample."""
    height, width = _area(node, values.shape)
    step = -(-height * width // min(WINDOWS * _inputs(node), MOST_WINDOWS))
    while step > 1 and math.gcd(step, width) != 1:
        step += 1                               # walk over all columns, not down a few
    rows, columns = np.divmod(np.arange(0, height * width, step), width)
    if not isinstance(node.op, Conv2D | DepthwiseConv2D):
        flat = values.reshape(-1, values.shape[-1])[rows][None]
        return _sums(flat)
    down, across = _offsets(node)
    windows = values[0][rows[:, None] + down, columns[:, None] + across]       # [windows, taps, channels]
    if isinstance(node.op, DepthwiseConv2D):
        return _sums(windows.transpose(2, 0, 1))
    share = node.input(1).shape[3]
    grouped = windows.reshape(*windows.shape[:2], -1, share).transpose(2, 0, 1, 3)             # [g, windows, taps, c]
    return _sums(grouped.reshape(len(grouped), len(rows), -1))


def _sums(x: Array) -> Moments:
    x = np.ascontiguousarray(x, np.float32)
    second = np.matmul(x.transpose(0, 2, 1), x)
    return Moments(x.sum(axis=1, dtype=np.float64), second.astype(np.float64), x.shape[1])
