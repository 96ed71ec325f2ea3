"""Operators that only move, choose or compare steps, whose scale the output shares."""

from __future__ import annotations

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops import binary, blocks, generation, indexing, joining, logic, padding, reduction, shape, slicing
from vitrify.ops.conversion import Cast
from vitrify.ops.reference.integer.registry import Call, integer_kernel
from vitrify.ops.resize import ResizeNearestNeighbor


@integer_kernel(
    shape.Reshape, shape.Squeeze, shape.ExpandDims, shape.Transpose, shape.ReverseV2, shape.Tile, shape.BroadcastTo,
    slicing.Slice, slicing.StridedSlice, slicing.DynamicUpdateSlice,
    joining.Concatenation, joining.Pack, joining.Unpack, joining.Split, joining.SplitV,
    blocks.SpaceToDepth, blocks.DepthToSpace, blocks.BatchToSpaceND,
    indexing.Gather, indexing.GatherND, indexing.ScatterND, indexing.OneHot, indexing.TopKV2, indexing.ReverseSequence,
    indexing.EmbeddingLookup, logic.Select, logic.SelectV2, padding.PadV2, padding.MirrorPad, generation.Fill,
    generation.Shape, generation.Rank, generation.ZerosLike, Cast, ResizeNearestNeighbor,
    binary.Maximum, binary.Minimum, reduction.ReduceMax, reduction.ReduceMin, reduction.ArgMax, reduction.ArgMin)
def moved(call: Call) -> list[Array]:
    """Do with the steps what the float operator does with values."""
    return list(call.node.op.evaluate(call.arrays))


@integer_kernel(padding.Pad)
def pad(call: Call) -> list[Array]:
    """Pad with the zero point."""
    fill = np.array([call.output.zero], call.array(0).dtype)
    return list(padding.PadV2().evaluate([call.array(0), call.array(1), fill]))


@integer_kernel(blocks.SpaceToBatchND)
def space_to_batch(call: Call) -> list[Array]:
    """Pad with the zero point, then move blocks; without loss, as 32-bit steps less the zero point."""
    (moved_steps,) = call.node.op.evaluate([call.shifted(0).astype(np.int32), *call.arrays[1:]])
    return [(moved_steps + call.affine(0).zero).astype(call.dtype)]
