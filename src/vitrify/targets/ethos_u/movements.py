"""Rules on what moves values: transposes, slices, pads, splits, reversals, gathers, and constant parameters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from vitrify.ir import DType, Node
from vitrify.ops import Gather, Split, SplitV, StridedSlice
from vitrify.targets.ethos_u.cores import SMALL, U85
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import axes, feature, ints, nhwc, parameters, product, shown

_EXTENT, _WIDE_DEPTH, _WIDE_KEPT, _RANK = 1 << 16, 1 << 14, 1 << 15, 8
_KEPT, _NWHC, _NHCW = (0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)
_DIRECT = (_NWHC, _NHCW, (0, 3, 2, 1), (0, 2, 3, 1), (0, 3, 1, 2))
"""Permutations of [N,H,W,C] that the NPU does in one or two passes."""


@rule("ethos-u.parameter-variable", says="axes, paddings, slices and permutations are constant",
      operators=["SLICE", "STRIDED_SLICE", "MEAN", "PAD", "PADV2", "MIRROR_PAD", "TRANSPOSE"],
      why="addresses are fixed when the model is compiled", source=REPORT)
def constant(node: Node, variant: Variant) -> Iterator[Breach]:
    """Parameters that are computed."""
    for tensor in parameters(node):
        if tensor.data is None:
            yield Breach(f"its parameter '{tensor.name}' is computed at run time", {"tensor": tensor.name},
                         "a constant")


@rule("ethos-u.pad-type", operators=["PAD", "PADV2", "MIRROR_PAD"], says="paddings are int32 or int64",
      why="the compiler reads them so", source=REPORT)
def pad_type(node: Node, variant: Variant) -> Iterator[Breach]:
    """Paddings of another type."""
    given = node.optional(1)
    if given is not None and given.dtype not in (DType.INT32, DType.INT64):
        yield Breach(f"its paddings are {given.dtype.label}", {"type": given.dtype.label}, "int32")


@rule("ethos-u.rank", operators=["TRANSPOSE"], says="a permutation has at most 8 axes",
      why="the compiler holds no more", source=REPORT)
def rank(node: Node, variant: Variant) -> Iterator[Breach]:
    """Permutations of too many axes."""
    given = ints(node.optional(1))
    if given is not None and len(given) > _RANK:
        yield Breach(f"it permutes {len(given)} axes, the limit is {_RANK}", {"rank": len(given), "limit": _RANK})


def _full(order: tuple[int, ...]) -> tuple[int, ...]:
    """A permutation of at least four axes."""
    more = max(0, 4 - len(order))
    return (*range(more), *(axis + more for axis in order))


@rule("ethos-u.transpose", operators=["TRANSPOSE"], cores=SMALL,
      says="extents are at most 65536; for permutations other than those of H, W and C, so are products of all axes "
      "but two", why="such a permutation is done in steps, each of which is a copy of an image of that size at most",
      source=REPORT, fix="transposes")
def narrow(node: Node, variant: Variant) -> Iterator[Breach]:
    """Permutations of 8- and 16-bit values that are too large."""
    x, given = feature(node), ints(node.optional(1))
    if x is None or given is None or x.dtype.bits > 16 or len(given) != len(x.shape):
        return
    shape, order = nhwc(x.shape), _full(given)
    if order == tuple(range(len(order))):
        return
    if _in_image(shape, order):
        largest, what = max(shape[-3:]), "an axis"
    else:
        largest, what = max(product(some) for some in combinations(shape, len(shape) - 2)), "a product of axes"
    if largest > _EXTENT:
        yield Breach(f"the permutation {shown(given)} of {shown(x.shape)} has {what} of {largest} elements, the limit "
                     f"is {_EXTENT}", {"permutation": list(given), "shape": list(x.shape), "largest": largest,
                                    "limit": _EXTENT}, "several smaller permutations")


def _in_image(shape: tuple[int, ...], order: tuple[int, ...]) -> bool:
    outer = len(shape) - 3
    return order[:outer] == tuple(range(outer)) and product(shape[:outer]) == 1 and \
        (0, *(axis - outer + 1 for axis in order[outer:])) in _DIRECT


@rule("ethos-u.wide-transpose", operators=["TRANSPOSE"], cores=SMALL,
      says="of int32 values only height and width, or width and channels, change places",
      why="values of 32 bits are moved as pairs of 16 bits", source=REPORT)
def wide(node: Node, variant: Variant) -> Iterator[Breach]:
    """Permutations of 32-bit values."""
    x, given = feature(node), ints(node.optional(1))
    if x is None or given is None or x.dtype is not DType.INT32 or len(given) != len(x.shape):
        return
    shape, order = nhwc(x.shape), _full(given)
    facts = {"permutation": list(given), "shape": list(x.shape)}
    if len(shape) > 4:
        yield Breach(f"it permutes int32 values of {len(shape)} axes, the limit is 4",
                     {"rank": len(shape), "limit": 4}, "4 axes")
        return
    limits: dict[tuple[int, ...], tuple[int | None, ...]] = {_KEPT: (None, None, None, _WIDE_KEPT),
                                                             _NWHC: (1, _EXTENT, _EXTENT, _WIDE_DEPTH),
                                                             _NHCW: (None, None, _EXTENT, _EXTENT)}
    largest = limits.get(order)
    if largest is None:
        yield Breach(f"the permutation {shown(given)} is not done on int32 values", facts, "[0,2,1,3] or [0,1,3,2]")
        return
    beyond = [i for i, limit in enumerate(largest) if limit is not None and shape[i] > limit]
    if order == _NHCW and shape[0] * shape[1] > _EXTENT:
        beyond.append(1)
    if beyond:
        axis = beyond[0]
        yield Breach(f"the permutation {shown(given)} of {shown(x.shape)} has {shape[axis]} elements on axis {axis}",
                     {**facts, "limit": largest[axis] or _EXTENT})


@rule("ethos-u.slice-stride", operators=["STRIDED_SLICE"],
      says="steps are positive, and only along height and width",
      why="the NPU reads every n-th row or column, not channel, and not backwards", source=REPORT, fix="slices")
def step(node: Node, variant: Variant) -> Iterator[Breach]:
    """Steps that the NPU does not have."""
    x, given, op = feature(node), ints(node.optional(3)), node.op
    assert isinstance(op, StridedSlice)
    if x is None or given is None:
        return
    steps = _steps(op, given, len(x.shape))
    outside = [i for i, value in enumerate(steps) if value != 1 and i not in (len(steps) - 2, len(steps) - 3)]
    backwards = [i for i, value in enumerate(steps) if value < 0]
    if outside:
        axis = outside[0]
        yield Breach(f"it has step {steps[axis]} on axis {axis} of {shown(x.shape)}; the NPU steps along height and "
                     "width only", {"axis": axis, "step": steps[axis], "limit": 1}, "step 1")
    if backwards and not outside:
        yield Breach(f"it goes backwards on axis {backwards[0]} of {shown(x.shape)}",
                     {"axis": backwards[0], "step": steps[backwards[0]], "limit": 1}, "step 1")


def _steps(op: StridedSlice, given: tuple[int, ...], rank: int) -> list[int]:
    """The step along each axis of the input."""
    steps, axis = [1] * rank, 0
    for i, value in enumerate(given):
        if op.ellipsis_mask & 1 << i:
            axis = rank - (len(given) - i - 1)
        elif axis < rank:
            steps[axis] = value
            axis += 1
    return steps


@rule("ethos-u.split-count", operators=["SPLIT", "SPLIT_V"], says="the number of parts is the number of outputs",
      why="the compiler makes one slice for each output", source=REPORT)
def split(node: Node, variant: Variant) -> Iterator[Breach]:
    """An attribute that is not the number of outputs."""
    op = node.op
    assert isinstance(op, Split | SplitV)
    if op.num_splits != len(node.outputs):
        yield Breach(f"it says {op.num_splits} parts and has {len(node.outputs)} outputs",
                     {"parts": op.num_splits, "limit": len(node.outputs)}, f"{len(node.outputs)}")


@rule("ethos-u.reverse", operators=["REVERSE_V2"], cores=SMALL, says="nothing is reversed",
      why="the small cores read no axis backwards", source=REPORT, fix="reversals")
def reverse(node: Node, variant: Variant) -> Iterator[Breach]:
    """Any axis."""
    x, given = feature(node), ints(node.optional(1))
    if x is not None and given:
        yield Breach(f"it reverses axis {sorted(axes(given, len(x.shape)))[0]} of {shown(x.shape)}",
                     {"axes": sorted(axes(given, len(x.shape)))})


@rule("ethos-u.gather-axis", operators=["GATHER"], cores=[U85], says="it gathers along the axis behind the batch "
      "axes", why="the U85 gathers whole rows", source=REPORT, fix="gathers")
def gather(node: Node, variant: Variant) -> Iterator[Breach]:
    """Another axis."""
    op, x = node.op, node.optional(0)
    assert isinstance(op, Gather)
    if x is None:
        return
    axis = op.axis + len(x.shape) if op.axis < 0 else op.axis
    if axis != op.batch_dims:
        yield Breach(f"it gathers along axis {axis} of {shown(x.shape)}; the NPU does so along {op.batch_dims}",
                     {"axis": axis, "limit": op.batch_dims}, f"axis {op.batch_dims}")


@rule("ethos-u.scatter", operators=["SCATTER_ND"], cores=[U85],
      says="indices and shape are constant, indices have one component and are all different",
      why="the compiler writes each row to an address that it knows", source=REPORT)
def scatter(node: Node, variant: Variant) -> Iterator[Breach]:
    """Indices that cannot be addresses."""
    indices, shape = node.optional(0), node.optional(2)
    if indices is None:
        return
    if indices.data is None or shape is None or shape.data is None:
        yield Breach("its indices or its shape are computed at run time", {}, "constants")
    elif indices.shape[-1:] != (1,):
        yield Breach(f"its indices {shown(indices.shape)} have {indices.shape[-1] if indices.shape else 0} components, "
                     "the limit is 1", {"components": indices.shape[-1] if indices.shape else 0, "limit": 1}, "1")
    elif len(np.unique(indices.data)) != indices.size:
        yield Breach("its indices name a row twice", {}, "different indices")
