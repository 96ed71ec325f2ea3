"""Convolution kernels over any number of spatial axes, channels last."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops.attributes import Padding
from vitrify.ops.window import Window


def pad_for(x: Array, windows: Sequence[Window], padding: Padding, value: float = 0) -> Array:
    """Return ``x`` with the border that ``padding`` asks for around its spatial axes."""
    pads = [window.pads(size, padding) for window, size in zip(windows, x.shape[1:-1], strict=True)]
    if not any(itertools.chain.from_iterable(pads)):
        return x
    return np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=value)


def taps(x: Array, windows: Sequence[Window], padding: Padding,
         value: float = 0) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each tap's position with the view of the padded input that it reads, output shaped."""
    sizes = [window.output(size, padding) for window, size in zip(windows, x.shape[1:-1], strict=True)]
    padded = pad_for(x, windows, padding, value)
    for position in itertools.product(*(range(window.taps) for window in windows)):
        starts = [tap * window.dilation for tap, window in zip(position, windows, strict=True)]
        view = tuple(slice(start, start + (size - 1) * window.stride + 1, window.stride)
                     for start, size, window in zip(starts, sizes, windows, strict=True))
        yield position, padded[(slice(None), *view)]


def convolve(x: Array, weights: Array, windows: Sequence[Window], padding: Padding) -> Array:
    """Convolve x [N,...,C] with weights [O,taps...,C/groups] to [N,...,O]: one matrix product for each tap."""
    groups = x.shape[-1] // weights.shape[-1]
    width = weights.shape[0] // groups
    parts = []
    for group in range(groups):
        channels = x[..., group * weights.shape[-1]:(group + 1) * weights.shape[-1]]
        kernel = weights[group * width:(group + 1) * width]
        total: Array | None = None
        for position, view in taps(channels, windows, padding):
            at: tuple[slice | int, ...] = (slice(None), *position)
            product = view @ kernel[at].T
            total = product if total is None else np.add(total, product, out=total)
        assert total is not None      # windows have at least one tap
        parts.append(total)
    return np.concatenate(parts, axis=-1) if groups > 1 else parts[0]


def convolve_depthwise(x: Array, weights: Array, windows: Sequence[Window], padding: Padding) -> Array:
    """Convolve each channel of x [N,H,W,C] by weights [1,KH,KW,C*multiplier]."""
    multiplier = weights.shape[3] // x.shape[3]
    wide = np.repeat(x, multiplier, axis=3) if multiplier > 1 else x
    total: Array | None = None
    for position, view in taps(wide, windows, padding):
        product = view * weights[(0, *position)]
        total = product if total is None else total + product
    assert total is not None      # windows have at least one tap
    return total


def convolve_transposed(x: Array, weights: Array, shape: Sequence[int], windows: Sequence[Window],
                        padding: Padding) -> Array:
    """Scatter x [N,...,C] through weights [O,taps...,C] into an output of ``shape``."""
    sizes = x.shape[1:-1]
    before = [window.pads(size, padding)[0] for window, size in zip(windows, shape[1:-1], strict=True)]
    extents = [max((size - 1) * window.stride + window.extent, pad + wanted)
               for size, window, pad, wanted in zip(sizes, windows, before, shape[1:-1], strict=True)]
    full = np.zeros((x.shape[0], *extents, weights.shape[0]), x.dtype)
    for position in itertools.product(*(range(window.taps) for window in windows)):
        view = tuple(slice(tap * window.dilation, tap * window.dilation + (size - 1) * window.stride + 1, window.stride)
                     for tap, window, size in zip(position, windows, sizes, strict=True))
        at: tuple[slice | int, ...] = (slice(None), *position)
        full[(slice(None), *view)] += x @ weights[at].T
    crop = tuple(slice(pad, pad + wanted) for pad, wanted in zip(before, shape[1:-1], strict=True))
    return full[(slice(None), *crop)]
