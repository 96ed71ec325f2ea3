"""Resizing of images: inputs x [N,H,W,C] and size int32[2] (constant), output [N,size...,C].

Source: TFLite kernels/resize_bilinear.cc, resize_nearest_neighbor.cc and kernels/internal/reference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, attributes, operator
from vitrify.ops import legality, plain, versions
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, constant_ints, expect, expect_rank, given
from vitrify.ops.int8 import Int8Rule


@attributes
class Resize(Operator):
    """The two flags, and where a pixel of the output lies in the input."""

    align_corners: bool = False
    half_pixel_centers: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the new height and width."""
        x, _ = given(self, inputs, 2)
        expect_rank(self, inputs, 0, 4)
        size = constant_ints(self, inputs, 1, "size")
        expect(self, len(size) == 2 and min(size) > 0, f"needs a positive height and width, got {list(size)}", inputs)
        return [TensorType(x.dtype, (x.shape[0], *size, x.shape[3]))]

    def scale(self, before: int, after: int) -> np.float32:
        """Return the input pixels for each output pixel."""
        if self.align_corners and after > 1:
            return np.float32(before - 1) / np.float32(after - 1)
        return np.float32(before) / np.float32(after)


@operator
class ResizeBilinear(Resize):
    """Interpolates between the four nearest pixels."""

    name = "RESIZE_BILINEAR"
    plain = plain.types("uint8 float32")
    options = "ResizeBilinearOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def _neighbours(self, before: int, after: int) -> tuple[Array, Array, Array]:
        steps = np.arange(after, dtype=np.float32)
        scale = self.scale(before, after)
        place = (steps + np.float32(0.5)) * scale - np.float32(0.5) if self.half_pixel_centers else steps * scale
        low = np.maximum(np.floor(place).astype(int), 0)
        high = np.minimum(np.ceil(place).astype(int), before - 1)
        return np.minimum(low, before - 1), high, (place - low.astype(np.float32)).astype(np.float32)

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Interpolate along both axes."""
        x, size = given(self, inputs, 2)
        expect_rank(self, inputs, 0, 4)
        y0, y1, fy = self._neighbours(x.shape[1], int(size[0]))
        x0, x1, fx = self._neighbours(x.shape[2], int(size[1]))
        real = x.astype(np.float32, copy=False)
        fy, fx = fy[:, None, None], fx[:, None]
        upper, lower = real[:, y0], real[:, y1]
        out = (upper[:, :, x0] * (1 - fy) * (1 - fx) + lower[:, :, x0] * fy * (1 - fx)
               + upper[:, :, x1] * (1 - fy) * fx + lower[:, :, x1] * fy * fx)
        if x.dtype.kind != "f":
            out = np.trunc(out + np.copysign(np.float32(0.5), out))
        return [out.astype(x.dtype, copy=False)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(0).dtype is DType.INT16:
            return 4
        return 3 if self.half_pixel_centers else versions.INT8.get(node.input(0).dtype, 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        if self.align_corners and self.half_pixel_centers:
            yield legality.finding(node, "ops.resize_flags", "has align_corners and half_pixel_centers both true, "
                                   "of which the runtime takes at most one", "the two place the pixels differently",
                                   "keep the flag that the source model means: half_pixel_centers is PyTorch's "
                                   "align_corners=False, align_corners its align_corners=True")


@operator
class ResizeNearestNeighbor(Resize):
    """Takes the nearest pixel."""

    name = "RESIZE_NEAREST_NEIGHBOR"
    plain = plain.types("bool int8 uint8 int16 uint16 int32 float32")
    options = "ResizeNearestNeighborOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def _nearest(self, before: int, after: int) -> Array:
        offset = np.float32(0.5 if self.half_pixel_centers else 0)
        place = (np.arange(after, dtype=np.float32) + offset) * self.scale(before, after)
        # The runtime rounds halves away from zero here; np.rint rounds them to even.
        rounded = np.floor(place + np.float32(0.5)) if self.align_corners else np.floor(place)
        return np.asarray(np.clip(rounded.astype(int), 0, before - 1))

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pick the pixels."""
        x, size = given(self, inputs, 2)
        expect_rank(self, inputs, 0, 4)
        return [x[:, self._nearest(x.shape[1], int(size[0]))][:, :, self._nearest(x.shape[2], int(size[1]))]]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(0).dtype is DType.INT16:
            return 4
        return 3 if self.half_pixel_centers or self.align_corners else versions.INT8.get(node.input(0).dtype, 1)
