"""Rows for operators that move, cut, join, reduce and index."""

import numpy as np
from ops_harness import Case, Given, boolean, f32, fixed, i32, ints, scalar

import vitrify.ops as ops

SHAPE = {
    "reshape": Case(ops.Reshape(), f32(2, 3, 4), ints(6, -1)),
    "reshape_option": Case(ops.Reshape(new_shape=(4, 6)), f32(2, 3, 4)),
    "squeeze": Case(ops.Squeeze(), f32(1, 3, 1, 4)),
    "squeeze_named": Case(ops.Squeeze(squeeze_dims=(-2,)), f32(1, 3, 1, 4)),
    "expand_dims": Case(ops.ExpandDims(), f32(3, 4), scalar(-1)),
    "transpose": Case(ops.Transpose(), f32(2, 3, 4, 5), ints(0, 3, 1, 2)),
    "transpose_6d": Case(ops.Transpose(), f32(2, 3, 2, 3, 2, 2), ints(5, 0, 4, 1, 3, 2)),
    "transpose_int64": Case(ops.Transpose(), i32(2, 3, 4, dtype=np.int64), ints(2, 0, 1)),
    "reverse": Case(ops.ReverseV2(), f32(2, 3, 4), ints(1)),
    "space_to_depth": Case(ops.SpaceToDepth(block_size=2), f32(1, 4, 6, 3)),
    "depth_to_space": Case(ops.DepthToSpace(block_size=2), f32(1, 2, 3, 12)),
    "space_to_batch": Case(ops.SpaceToBatchND(), f32(2, 4, 5, 3), ints(2, 3), ints([[1, 1], [0, 1]])),
    "batch_to_space": Case(ops.BatchToSpaceND(), f32(12, 2, 2, 3), ints(2, 3), ints([[1, 0], [0, 2]])),
    "tile": Case(ops.Tile(), f32(2, 3), ints(3, 2)),
    "broadcast_to": Case(ops.BroadcastTo(), f32(3, 1), ints(2, 3, 4)),
    "pad": Case(ops.Pad(), f32(1, 3, 4, 2), ints([[0, 0], [1, 2], [0, 3], [0, 0]])),
    "pad_v2": Case(ops.PadV2(), f32(1, 3, 4, 2), ints([[0, 0], [1, 2], [0, 3], [0, 0]]), scalar(-7.5, np.float32)),
    "mirror_reflect": Case(ops.MirrorPad(mode=0), f32(1, 4, 4, 2), ints([[0, 0], [1, 2], [0, 3], [0, 0]])),
    "mirror_symmetric": Case(ops.MirrorPad(mode=1), f32(1, 4, 4, 2), ints([[0, 0], [1, 2], [0, 4], [0, 0]])),
}

JOINING = {
    "concat": Case(ops.Concatenation(axis=1), f32(2, 3, 4), f32(2, 1, 4), f32(2, 5, 4)),
    "concat_last": Case(ops.Concatenation(axis=-1), f32(2, 3), f32(2, 1)),
    "pack": Case(ops.Pack(values_count=2, axis=1), f32(2, 3), f32(2, 3, seed=1)),
    "pack_last": Case(ops.Pack(values_count=3, axis=-1), f32(2, 3), f32(2, 3, seed=1), f32(2, 3, seed=2)),
    "unpack": Case(ops.Unpack(num=3, axis=1), f32(2, 3, 4)),
    "split": Case(ops.Split(num_splits=3), scalar(1), f32(2, 6, 4)),
    "split_v": Case(ops.SplitV(num_splits=3), f32(2, 7), ints(2, -1, 4), scalar(-1)),
    "slice": Case(ops.Slice(), f32(3, 4, 5), ints(1, 0, 2), ints(2, -1, 3)),
    "strided": Case(ops.StridedSlice(), f32(5, 6, 7), ints(1, 0, 6), ints(4, 6, 1), ints(2, 1, -2)),
    "strided_masks": Case(ops.StridedSlice(begin_mask=1, end_mask=4), f32(5, 6, 7), ints(3, 1, 2), ints(4, 5, 3),
                          ints(1, 2, 2)),
    "strided_shrink": Case(ops.StridedSlice(shrink_axis_mask=5), f32(5, 6, 7), ints(-1, 1, 2), ints(0, 5, 3),
                           ints(1, 2, 1)),
    "strided_ellipsis": Case(ops.StridedSlice(ellipsis_mask=2), f32(2, 3, 4, 5), ints(0, 0, 1), ints(1, 0, 4),
                             ints(1, 1, 2)),
    "strided_new_axis": Case(ops.StridedSlice(new_axis_mask=2), f32(4, 5), ints(1, 0, 0), ints(3, 0, 5), ints(1, 1, 1)),
    "strided_beyond": Case(ops.StridedSlice(), f32(5, 6), ints(-9, 2), ints(9, 99), ints(1, 1)),
    "strided_offset": Case(ops.StridedSlice(offset=True), f32(5, 6), ints(1, 2), ints(3, 2), ints(1, 1)),
    "dynamic_update": Case(ops.DynamicUpdateSlice(), f32(5, 6), f32(2, 3, seed=1), ints(4, 2)),
}

INDEXING = {
    "gather": Case(ops.Gather(axis=1), f32(2, 5, 3), ints(4, 0, 1)),
    "gather_last": Case(ops.Gather(axis=-1), f32(2, 5, 3), ints([[2, 0], [1, 1]])),
    "gather_batch": Case(ops.Gather(axis=1, batch_dims=1), f32(2, 5, 3), ints([[4, 0], [1, 3]])),
    "gather_batch_inner": Case(ops.Gather(axis=2, batch_dims=1), f32(2, 3, 5, 2), ints([[4, 0], [1, 3]])),
    "gather_nd": Case(ops.GatherND(), f32(4, 5, 3), ints([[3, 1], [0, 4]])),
    "scatter_nd": Case(ops.ScatterND(), ints([[1], [3], [1]]), f32(3, 2), ints(5, 2)),
    "one_hot": Case(ops.OneHot(axis=-1), i32(2, 3, low=0, high=4), scalar(4), scalar(2.0, np.float32),
                    scalar(-1.0, np.float32)),
    "one_hot_first": Case(ops.OneHot(axis=0), i32(2, 3, low=0, high=4), scalar(4), scalar(1), scalar(0)),
    "top_k": Case(ops.TopKV2(), f32(3, 9), scalar(4)),
    "top_k_ties": Case(ops.TopKV2(), i32(3, 9, low=0, high=3), scalar(4)),
    "embedding": Case(ops.EmbeddingLookup(), i32(3, low=0, high=5), fixed(f32(5, 4))),
    "reverse_sequence": Case(ops.ReverseSequence(seq_dim=1, batch_dim=0), f32(3, 5, 2), ints(2, 5, 3)),
    "reverse_sequence_turned": Case(ops.ReverseSequence(seq_dim=0, batch_dim=1), f32(5, 3, 2), ints(2, 5, 3)),
}

REDUCTION = {
    **{f"{op.name.lower()}_{label}": Case(op(keep_dims=keep), f32(2, 3, 4, 5), ints(*axes), atol=1e-6)
       for op in (ops.Mean, ops.Sum, ops.ReduceMax, ops.ReduceMin, ops.ReduceProd)
       for label, axes, keep in (("spatial", (1, 2), True), ("last", (-1,), False), ("all", (0, 1, 2, 3), False))},
    "sum_int32": Case(ops.Sum(), i32(3, 4), ints(1)),
    "mean_int32": Case(ops.Mean(), i32(30, 4), ints(1)),
    "any": Case(ops.ReduceAny(), boolean(3, 4), ints(1)),
    "all": Case(ops.ReduceAll(keep_dims=True), boolean(3, 2), ints(1)),
    "arg_max": Case(ops.ArgMax(output_type=4), f32(3, 4, 5), scalar(1)),
    "arg_max_ties": Case(ops.ArgMax(output_type=2), i32(5, 9, low=0, high=3), scalar(-1)),
    "arg_min": Case(ops.ArgMin(output_type=2), f32(3, 4, 5), scalar(-1)),
    **{f"cumsum_{e:d}{r:d}": Case(ops.Cumsum(exclusive=e, reverse=r), f32(3, 4, 2), scalar(1), atol=1e-6)
       for e in (False, True) for r in (False, True)},
}

CASES = SHAPE | JOINING | INDEXING | REDUCTION
assert all(isinstance(given, Given | None) for case in CASES.values() for given in case.inputs)
