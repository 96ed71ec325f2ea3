"""Windows that slide over images: output extents and padding, shared by convolutions and pools.

Source: TFLite kernels/padding.h.
"""

from __future__ import annotations

from typing import NamedTuple

from vitrify.ops.attributes import Padding
from vitrify.ops.base import Inputs, Operator, expect


class Window(NamedTuple):
    """One axis of a window: taps, stride, dilation."""

    taps: int
    stride: int
    dilation: int = 1

    @property
    def extent(self) -> int:
        """The input elements from the first tap to the last."""
        return (self.taps - 1) * self.dilation + 1

    def output(self, size: int, padding: Padding) -> int:
        """Return the output extent for an input of ``size``; not positive when the window does not fit."""
        if padding == Padding.SAME:
            return -(-size // self.stride)
        return -(-(size - self.extent + 1) // self.stride)

    def pads(self, size: int, padding: Padding) -> tuple[int, int]:
        """Return the padding before and after; an odd one more goes after."""
        total = max(0, (self.output(size, padding) - 1) * self.stride + self.extent - size)
        return total // 2, total - total // 2


def slide(op: Operator, inputs: Inputs, sizes: tuple[int, ...], windows: tuple[Window, ...],
          padding: Padding) -> tuple[int, ...]:
    """Return the output extents of ``windows`` over ``sizes``, refusing windows that do not fit."""
    for size, window in zip(sizes, windows, strict=True):
        expect(op, min(window) > 0, f"needs positive taps, stride and dilation, got {list(window)}", inputs)
        expect(op, window.output(size, padding) > 0,
               f"has a window of {window.extent} over {size} elements without padding", inputs)
    return tuple(window.output(size, padding) for size, window in zip(sizes, windows, strict=True))
