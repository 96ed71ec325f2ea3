"""Padding: inputs x and paddings [rank,2] (constant), before and after each axis.

Source: TFLite kernels/pad.cc, mirror_pad.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, plain, versions
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, constant_ints, expect, given, infer_from_arrays
from vitrify.ops.int8 import Int8Rule


class Padded(Operator):
    """The extents grow by the paddings."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the paddings added."""
        x = given(self, inputs, 2, 3)[0]
        amounts = constant_ints(self, inputs, 1, "paddings")
        expect(self, len(amounts) == 2 * len(x.shape) and min(amounts, default=0) >= 0,
               f"has the paddings {list(amounts)} for {len(x.shape)} axes", inputs)
        pairs = zip(x.shape, amounts[::2], amounts[1::2], strict=True)
        return [TensorType(x.dtype, tuple(extent + before + after for extent, before, after in pairs))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pad with zeros, or with input 2 where there is one."""
        x, amounts = given(self, inputs, 2, 3)
        infer_from_arrays(self, inputs)
        value = inputs[2] if len(inputs) > 2 else None
        fill = x.dtype.type(0) if value is None else value.reshape(-1)[0]
        return [np.pad(x, amounts.reshape(-1, 2).tolist(), constant_values=fill)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if x.dtype is DType.BOOL:
            return 5
        return 4 if len(x.shape) > 4 else versions.INT8_INT16.get(x.dtype, 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.too_many_axes(node, 5)


@operator
class Pad(Padded):
    """Padding with zeros; quantized: with the zero point."""

    name = "PAD"
    plain = plain.types("bool int8 uint8 int16 int32 int64 float32")
    options = "PadOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))


@operator
class PadV2(Padded):
    """Padding with the value of input 2."""

    name = "PADV2"
    plain = plain.types("bool int8 uint8 int16 int32 int64 float32")
    options = "PadV2Options"
    int8 = Int8Rule(same_scale=(0, 2), keep=(1,))


@operator
class MirrorPad(Padded):
    """Padding with the image mirrored: mode 0 (reflect) does not repeat the border, mode 1 (symmetric) does."""

    name = "MIRROR_PAD"
    options = "MirrorPadOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    versions = versions.INT8_INT16
    mode: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the paddings added, which must not reach past the image."""
        out = super().infer(inputs)
        x = given(self, inputs, 2)[0]
        amounts = constant_ints(self, inputs, 1, "paddings")
        room = [extent - (self.mode == 0) for extent in x.shape]
        expect(self, all(max(pair) <= r for *pair, r in zip(amounts[::2], amounts[1::2], room, strict=True)),
               f"mirrors {list(amounts)} elements of {list(x.shape)}", inputs)
        return out

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pad with the mirrored values."""
        x, amounts = given(self, inputs, 2)
        infer_from_arrays(self, inputs)
        pairs = amounts.reshape(-1, 2).tolist()
        return [np.pad(x, pairs, mode="symmetric") if self.mode else np.pad(x, pairs, mode="reflect")]

    def version(self, node: Node) -> int:
        """Return the version that the type needs."""
        return self.versions.get(node.input(0).dtype, 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield nothing: any number of axes will do."""
        yield from ()
