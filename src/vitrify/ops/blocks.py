"""Blocks of pixels moved between space and depth, or space and batch.

Source: TFLite kernels/space_to_depth.cc, depth_to_space.cc, space_to_batch_nd.cc, batch_to_space_nd.cc.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import plain, versions
from vitrify.ops.base import (
    Array,
    Arrays,
    Inputs,
    Shape,
    TensorType,
    constant_ints,
    expect,
    expect_rank,
    given,
    infer_from_arrays,
)
from vitrify.ops.int8 import Int8Rule


@operator
class SpaceToDepth(Operator):
    """Blocks of pixels become channels: [N,H,W,C] to [N,H/b,W/b,b*b*C]."""

    name = "SPACE_TO_DEPTH"
    plain = plain.types("int8 uint8 int32 int64 float32")
    options = "SpaceToDepthOptions"
    int8 = Int8Rule(same_scale=(0,))
    versions = versions.INT8
    block_size: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with fewer pixels."""
        (x,) = given(self, inputs, 1)
        expect_rank(self, inputs, 0, 4)
        n, h, w, c = x.shape
        block = self.block_size
        expect(self, block > 0 and h % block == 0 and w % block == 0,
               f"cannot cut {h}x{w} into blocks of {block}", inputs)
        return [TensorType(x.dtype, (n, h // block, w // block, c * block * block))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Move the pixels of each block into the channels, row by row."""
        (inferred,) = infer_from_arrays(self, inputs)
        (x,) = given(self, inputs, 1)
        n, h, w, _ = inferred.shape
        cut = x.reshape(n, h, self.block_size, w, self.block_size, x.shape[3])
        return [cut.transpose(0, 1, 3, 2, 4, 5).reshape(inferred.shape)]


@operator
class DepthToSpace(Operator):
    """Channels become blocks of pixels: [N,H,W,b*b*C] to [N,H*b,W*b,C]."""

    name = "DEPTH_TO_SPACE"
    plain = plain.types("int8 uint8 int32 int64 float32")
    options = "DepthToSpaceOptions"
    int8 = Int8Rule(same_scale=(0,))
    block_size: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with more pixels."""
        (x,) = given(self, inputs, 1)
        expect_rank(self, inputs, 0, 4)
        n, h, w, c = x.shape
        block = self.block_size
        expect(self, block > 0 and c % (block * block) == 0, f"cannot make blocks of {block} from {c} channels", inputs)
        return [TensorType(x.dtype, (n, h * block, w * block, c // (block * block)))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Move the channels into the pixels of each block, row by row."""
        (inferred,) = infer_from_arrays(self, inputs)
        (x,) = given(self, inputs, 1)
        n, h, w, _ = x.shape
        cut = x.reshape(n, h, w, self.block_size, self.block_size, inferred.shape[3])
        return [cut.transpose(0, 1, 3, 2, 4, 5).reshape(inferred.shape)]


class BatchBlocks(Operator):
    """What both batch operators share: inputs x [N,spatial...,rest...], block [M], borders [M,2], both constant."""

    def _operands(self, inputs: Inputs) -> tuple[Shape, list[tuple[int, int]]]:
        x, _, _ = given(self, inputs, 3)
        block = constant_ints(self, inputs, 1, "block")
        borders = constant_ints(self, inputs, 2, "borders")
        expect(self, 0 < len(block) < len(x.shape) and len(borders) == 2 * len(block) and min(block) > 0
               and min(borders) >= 0,
               f"has block {list(block)} and borders {list(borders)} for {list(x.shape)}", inputs)
        return block, list(zip(borders[::2], borders[1::2], strict=True))

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if x.dtype is DType.INT16:
            return 4
        return 3 if len(x.shape) != 4 else versions.INT8.get(x.dtype, 1)


@operator
class SpaceToBatchND(BatchBlocks):
    """Pads, then every block's pixels become batches."""

    name = "SPACE_TO_BATCH_ND"
    options = "SpaceToBatchNDOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1, 2))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with more batches."""
        block, pads = self._operands(inputs)
        (x,) = given(self, inputs[:1], 1)
        padded = [e + sum(p) for e, p in zip(x.shape[1:], pads, strict=False)]
        expect(self, all(e % b == 0 for e, b in zip(padded, block, strict=True)),
               f"cannot cut {padded} into blocks {list(block)}", inputs)
        spatial = [e // b for e, b in zip(padded, block, strict=True)]
        return [TensorType(x.dtype, (x.shape[0] * int(np.prod(block)), *spatial, *x.shape[1 + len(block):]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Move the pixels of each block into the batch."""
        (inferred,) = infer_from_arrays(self, inputs)
        x, block, borders = given(self, inputs, 3)
        count = block.size
        padded = np.pad(x, [(0, 0), *borders.reshape(-1, 2).tolist(), *[(0, 0)] * (x.ndim - 1 - count)])
        pairs = zip(inferred.shape[1:], block.reshape(-1).tolist(), strict=False)
        cut = padded.reshape(x.shape[0], *(extent for pair in pairs for extent in pair), *x.shape[1 + count:])
        inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
        return [cut.transpose(*inner, 0, *outer, *range(2 * count + 1, cut.ndim)).reshape(inferred.shape)]


@operator
class BatchToSpaceND(BatchBlocks):
    """Batches become every block's pixels, then the borders are cut away."""

    name = "BATCH_TO_SPACE_ND"
    options = "BatchToSpaceNDOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1, 2))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with fewer batches."""
        block, crops = self._operands(inputs)
        (x,) = given(self, inputs[:1], 1)
        spatial = [e * b - sum(c) for e, b, c in zip(x.shape[1:], block, crops, strict=False)]
        expect(self, x.shape[0] % int(np.prod(block)) == 0 and min(spatial) >= 0,
               f"cannot make blocks {list(block)} from {x.shape[0]} batches and cut {crops}", inputs)
        return [TensorType(x.dtype, (x.shape[0] // int(np.prod(block)), *spatial, *x.shape[1 + len(block):]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Move the batches into the pixels of each block."""
        (inferred,) = infer_from_arrays(self, inputs)
        x, block, borders = given(self, inputs, 3)
        count = block.size
        cut = x.reshape(*block.reshape(-1).tolist(), inferred.shape[0], *x.shape[1:])
        order = [count, *(a for i in range(count) for a in (count + 1 + i, i)), *range(2 * count + 1, cut.ndim)]
        whole = [e * int(b) for e, b in zip(x.shape[1:], block.reshape(-1), strict=False)]
        joined = cut.transpose(order).reshape(inferred.shape[0], *whole, *x.shape[1 + count:])
        view = tuple(slice(int(c), e - int(d)) for (c, d), e in zip(borders.reshape(-1, 2), whole, strict=True))
        return [joined[(slice(None), *view)]]
