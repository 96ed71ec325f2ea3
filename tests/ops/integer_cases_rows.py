"""Random cases of operators that reduce, normalize along an axis, or move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from integer_cases_pointwise import BOTH
from integer_draw import Draw, drawn

import vitrify.ops as ops
from vitrify.ir import Operator, Quantization, Tensor

WIDE = {"int8": (1 / 256, -128), "int16": (1 / 32768, 0), "uint8": (1 / 256, 0)}


@drawn("SOFTMAX", "int8", "int16", "uint8")
def _softmax(draw: Draw) -> None:
    shape = (*draw.shape((0, 1, 2), 4), draw.size(300 if draw.chance(0.2) else 20))
    reach = draw.scale(0.3, 40) / np.iinfo(draw.dtype).max
    op = ops.Softmax(beta=1.0 if draw.chance(0.7) else draw.scale(0.2, 4))
    draw.node(op, [draw.x(shape, draw.affine(reach))], Quantization.per_tensor(*WIDE[draw.dtype.name]))


@drawn("LOG_SOFTMAX", "int8")
def _log_softmax(draw: Draw) -> None:
    shape = (*draw.shape((0, 1, 2), 4), draw.size(300 if draw.chance(0.2) else 20))
    draw.node(ops.LogSoftmax(), [draw.x(shape, draw.affine(draw.scale(0.003, 0.3)))],
              Quantization.per_tensor(16 / 256, 127))


@drawn("L2_NORMALIZATION", "int8")
def _l2_normalization(draw: Draw) -> None:
    shape = (*draw.shape((0, 1, 2), 4), draw.size(60))
    draw.node(ops.L2Normalization(), [draw.x(shape, draw.affine())], Quantization.per_tensor(1 / 128, 0))


def _axes(draw: Draw, rank: int) -> Tensor:
    chosen = [int(a) for a in draw.rng.permutation(rank)[:draw.size(rank)]]
    return draw.ints(*(a - rank if draw.chance(0.3) else a for a in chosen))


def _reduced(draw: Draw, op: Operator, shape: tuple[int, ...], axes: Tensor, ratio: float | None) -> None:
    q = draw.affine()
    out = q if ratio is None else draw.affine(float(q.scale[0]) * ratio)
    draw.node(op, [draw.x(shape, q), axes], out)


@drawn("MEAN", "int8", "int16", "uint8")
def _mean(draw: Draw) -> None:
    shape = draw.shape((1, 2, 3, 4), 9)
    _reduced(draw, ops.Mean(keep_dims=draw.chance(0.5)), shape, _axes(draw, len(shape)), draw.scale(0.1, 4))


@drawn("SUM", "int8", "int16", "uint8")
def _sum(draw: Draw) -> None:
    shape = draw.shape((1, 2, 3, 4), 9)
    _reduced(draw, ops.Sum(keep_dims=draw.chance(0.5)), shape, _axes(draw, len(shape)), draw.scale(0.5, 40))


def _extreme(name: str, kind: type[Operator]) -> None:
    @drawn(name, *BOTH)
    def extreme(draw: Draw) -> None:
        shape = draw.shape((1, 2, 3, 4), 9)
        _reduced(draw, kind(keep_dims=draw.chance(0.5)), shape, _axes(draw, len(shape)), None)


_extreme("REDUCE_MAX", ops.ReduceMax)
_extreme("REDUCE_MIN", ops.ReduceMin)


@drawn("REDUCE_PROD", *BOTH)
def _product(draw: Draw) -> None:
    shape = draw.shape((1, 2, 3), 4)
    axes = _axes(draw, len(shape))
    count = int(np.prod([shape[int(a)] for a in axes.data]))
    q = draw.affine(draw.scale(0.5, 2) / np.iinfo(draw.dtype).max * 2)
    top = (float(q.scale[0]) * np.iinfo(draw.dtype).max) ** count
    op = ops.ReduceProd(keep_dims=draw.chance(0.5))
    draw.node(op, [draw.x(shape, q), axes], draw.affine(top / np.iinfo(draw.dtype).max * draw.scale(0.2, 5)))


def _index(name: str, kind: type[Operator]) -> None:
    @drawn(name, "int8")
    def index(draw: Draw) -> None:
        shape = draw.shape((1, 2, 3, 4), 6)
        axis = draw.constant(np.int32(draw.size(len(shape) - 1, 0)))
        draw.node(kind(output_type=2), [draw.x(shape, draw.affine()), axis])


_index("ARG_MAX", ops.ArgMax)
_index("ARG_MIN", ops.ArgMin)


@drawn("TOPK_V2", *BOTH)
def _topk(draw: Draw) -> None:
    shape, q = draw.shape((1, 2, 3), 9), draw.affine()
    draw.node(ops.TopKV2(), [draw.x(shape, q), draw.constant(np.int32(draw.size(shape[-1])))], q)


def _move(name: str, *dtypes: str) -> Callable[[Callable[[Draw, Quantization], None]], None]:
    """Cases of an operator whose output has the input's scale."""
    def register(make: Callable[[Draw, Quantization], None]) -> None:
        drawn(name, *(dtypes or BOTH))(lambda draw: make(draw, draw.affine()))
    return register


@_move("PAD")
def _pad(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3, 4), 4)
    pads = draw.rng.integers(0, 3, (len(shape), 2)).astype(np.int32)
    draw.node(ops.Pad(), [draw.x(shape, q), draw.constant(pads)], q)


@_move("PADV2")
def _padv2(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3, 4), 4)
    pads = draw.rng.integers(0, 3, (len(shape), 2)).astype(np.int32)
    draw.node(ops.PadV2(), [draw.x(shape, q), draw.constant(pads), draw.constant(draw.steps((1,)), q)], q)


@_move("MIRROR_PAD")
def _mirror_pad(draw: Draw, q: Quantization) -> None:
    shape = tuple(draw.size(4, 2) for _ in range(draw.size(4)))
    pads = draw.rng.integers(0, 2, (len(shape), 2)).astype(np.int32)
    draw.node(ops.MirrorPad(mode=draw.size(1, 0)), [draw.x(shape, q), draw.constant(pads)], q)


@_move("CONCATENATION")
def _concatenation(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3, 4), 4)
    axis = draw.size(len(shape) - 1, 0)
    parts = [draw.x((*shape[:axis], draw.size(4), *shape[axis + 1:]), q) for _ in range(draw.size(4))]
    draw.node(ops.Concatenation(axis=axis), parts, q)


@_move("PACK")
def _pack(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3), 4)
    parts = [draw.x(shape, q) for _ in range(draw.size(3))]
    draw.node(ops.Pack(values_count=len(parts), axis=draw.size(len(shape), 0)), parts, q)


@_move("UNPACK")
def _unpack(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((2, 3), 4)
    draw.node(ops.Unpack(num=shape[0], axis=0), [draw.x(shape, q)], *[q] * shape[0])


@_move("SPLIT")
def _split(draw: Draw, q: Quantization) -> None:
    count, shape = draw.size(3), draw.shape((1, 2, 3), 4)
    axis = draw.size(len(shape) - 1, 0)
    whole = tuple(n * count if i == axis else n for i, n in enumerate(shape))
    draw.node(ops.Split(num_splits=count), [draw.constant(np.int32(axis)), draw.x(whole, q)], *[q] * count)


@_move("RESHAPE")
def _reshape(draw: Draw, q: Quantization) -> None:
    shape = draw.shape()
    new = tuple(int(n) for n in draw.rng.permutation(shape))
    draw.node(ops.Reshape(new_shape=new), [draw.x(shape, q), draw.ints(*new)], q)


@_move("TRANSPOSE")
def _transpose(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((2, 3, 4))
    draw.node(ops.Transpose(), [draw.x(shape, q), draw.ints(*draw.rng.permutation(len(shape)))], q)


@_move("SLICE")
def _slice(draw: Draw, q: Quantization) -> None:
    shape = draw.shape()
    begin = [draw.size(n - 1, 0) for n in shape]
    size = [draw.size(n - b) for n, b in zip(shape, begin, strict=True)]
    draw.node(ops.Slice(), [draw.x(shape, q), draw.ints(*begin), draw.ints(*size)], q)


@_move("STRIDED_SLICE")
def _strided_slice(draw: Draw, q: Quantization) -> None:
    shape = draw.shape()
    begin = [draw.size(n - 1, 0) for n in shape]
    inputs = [draw.x(shape, q), draw.ints(*begin), draw.ints(*shape), draw.ints(*(draw.size(2) for _ in shape))]
    draw.node(ops.StridedSlice(), inputs, q)


@_move("TILE")
def _tile(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3), 4)
    draw.node(ops.Tile(), [draw.x(shape, q), draw.ints(*(draw.size(3) for _ in shape))], q)


@_move("BROADCAST_TO")
def _broadcast_to(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3, 4), 4)
    given = tuple(1 if draw.chance(0.5) else n for n in shape)
    draw.node(ops.BroadcastTo(), [draw.x(given, q), draw.ints(*shape)], q)


@_move("GATHER")
def _gather(draw: Draw, q: Quantization) -> None:
    shape = draw.shape((1, 2, 3), 5)
    axis = draw.size(len(shape) - 1, 0)
    draw.node(ops.Gather(axis=axis), [draw.x(shape, q), draw.constant(draw.rng.integers(0, shape[axis], (3, 2)),
                                                                      dtype=np.int32)], q)


@_move("REVERSE_V2")
def _reverse(draw: Draw, q: Quantization) -> None:
    shape = draw.shape()
    draw.node(ops.ReverseV2(), [draw.x(shape, q), draw.ints(draw.size(len(shape) - 1, 0))], q)


@_move("SPACE_TO_DEPTH", "int8")
def _space_to_depth(draw: Draw, q: Quantization) -> None:
    shape = (draw.size(2), 2 * draw.size(4), 2 * draw.size(4), draw.size(4))
    draw.node(ops.SpaceToDepth(block_size=2), [draw.x(shape, q)], q)


@_move("DEPTH_TO_SPACE", "int8")
def _depth_to_space(draw: Draw, q: Quantization) -> None:
    shape = (draw.size(2), draw.size(4), draw.size(4), 4 * draw.size(3))
    draw.node(ops.DepthToSpace(block_size=2), [draw.x(shape, q)], q)


@_move("SPACE_TO_BATCH_ND")
def _space_to_batch(draw: Draw, q: Quantization) -> None:
    pads = draw.rng.integers(0, 3, (2, 2)).astype(np.int32)
    height, width = (2 * draw.size(4, 2) + int(pads[i].sum()) % 2 for i in range(2))
    x = draw.x((draw.size(2), height, width, draw.size(3)), q)
    draw.node(ops.SpaceToBatchND(), [x, draw.ints(2, 2), draw.constant(pads)], q)


@_move("BATCH_TO_SPACE_ND")
def _batch_to_space(draw: Draw, q: Quantization) -> None:
    x = draw.x((4 * draw.size(2), draw.size(4, 2), draw.size(4, 2), draw.size(3)), q)
    crops = draw.constant(draw.rng.integers(0, 2, (2, 2)), dtype=np.int32)
    draw.node(ops.BatchToSpaceND(), [x, draw.ints(2, 2), crops], q)
