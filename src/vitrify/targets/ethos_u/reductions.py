"""Rules on MEAN, ARG_MAX and SOFTMAX."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import axes, feature, ints, nhwc, product, shown

_EXTENT, _DEPTH, _SPREAD = 64 * 64, 127, 1 << 16
_ELEMENTS = {DType.INT8: 1 << 24, DType.UINT8: 1 << 23, DType.INT16: 1 << 16}


def _reduced(node: Node) -> tuple[tuple[int, ...], set[int]] | None:
    """The input's shape, filled up to four extents, and the axes that go."""
    x, given = feature(node), ints(node.optional(1))
    if x is None or given is None:
        return None
    shape = nhwc(x.shape)
    return shape, {axis + len(shape) - len(x.shape) for axis in axes(given, len(x.shape))}


@rule("ethos-u.batch", operators=["MEAN"], says="the batch is 1", why="a mean is made of a depthwise convolution over "
      "one sample", source=REPORT, help="make the model for one sample: --shape INPUT=1,...", fix="batches")
def batch(node: Node, variant: Variant) -> Iterator[Breach]:
    """Means of several samples."""
    x = feature(node)
    if x is not None and nhwc(x.shape)[0] > 1:
        yield Breach(f"its input {shown(x.shape)} has batch {nhwc(x.shape)[0]}, the NPU takes 1",
                     {"batch": nhwc(x.shape)[0], "limit": 1}, shown((1, *nhwc(x.shape)[1:])))


@rule("ethos-u.depth-reduction", operators=["MEAN"], says="a mean over the channels needs height, width or depth of 1",
      why="the compiler turns it into one over height and width, for which there must be a free axis; often the axes "
      "kept the channels-first order", source=REPORT, fix="depth-means")
def depth(node: Node, variant: Variant) -> Iterator[Breach]:
    """Means over depth of a whole image."""
    found = _reduced(node)
    if found is not None and 3 in found[1] and 1 not in found[0][1:4]:
        yield Breach(f"it reduces over depth of {shown(found[0])}; the NPU does so only when H, W or C is 1",
                     {"shape": list(found[0])}, shown((1, 1, product(found[0][1:3]), found[0][3])))


@rule("ethos-u.mean-extent", operators=["MEAN"], says="each axis that is reduced has at most 4096 elements",
      why="the window of the convolution that it becomes has 64x64 taps", source=REPORT, fix="large-means")
def extent(node: Node, variant: Variant) -> Iterator[Breach]:
    """Means over long axes."""
    found = _reduced(node)
    if found is None:
        return
    for axis in sorted(found[1]):
        if found[0][axis] > _EXTENT:
            yield Breach(f"it reduces {found[0][axis]} elements of axis {axis} of {shown(found[0])}, the limit is "
                         f"{_EXTENT}", {"extent": found[0][axis], "limit": _EXTENT}, f"two means of {_EXTENT} at most")


@rule("ethos-u.mean-elements", operators=["MEAN"],
      says="a mean is over 2^24 values of int8 at most, 2^23 of uint8, 2^16 of int16",
      why="the accumulator holds 32 bits", source=REPORT)
def elements(node: Node, variant: Variant) -> Iterator[Breach]:
    """Means over too many values."""
    found, x = _reduced(node), feature(node)
    if found is None or x is None or x.dtype not in _ELEMENTS:
        return
    count, limit = product(tuple(found[0][axis] for axis in found[1])), _ELEMENTS[x.dtype]
    if count > limit:
        yield Breach(f"it reduces {count} values, the limit for {x.dtype.label} is {limit}",
                     {"elements": count, "limit": limit})


@rule("ethos-u.mean-type", operators=["MEAN"], says="a mean is of int8, uint8 or int16 values",
      why="it is made of a convolution", source=REPORT)
def mean_type(node: Node, variant: Variant) -> Iterator[Breach]:
    """Means of other types."""
    x = feature(node)
    if x is not None and x.dtype not in _ELEMENTS and not x.dtype.is_float:
        yield Breach(f"its input is {x.dtype.label}", {"type": x.dtype.label}, "int8")


@rule("ethos-u.arg-max-depth", operators=["ARG_MAX"], cores=SMALL, says="ARG_MAX is over 127 values at most",
      why="the index is packed beside the value in 16 bits", source=REPORT, fix="arg-max-tiles")
def arg_max_depth(node: Node, variant: Variant) -> Iterator[Breach]:
    """Too many candidates."""
    x = feature(node)
    if x is not None and x.shape and x.shape[-1] > _DEPTH:
        yield Breach(f"it chooses among {x.shape[-1]} channels, the limit is {_DEPTH}",
                     {"depth": x.shape[-1], "limit": _DEPTH}, f"{_DEPTH} channels")


@rule("ethos-u.arg-max-axis", operators=["ARG_MAX"], cores=SMALL, says="ARG_MAX is over the last axis",
      why="the compiler makes it of a maximum over depth", source=REPORT, fix="arg-max")
def arg_max_axis(node: Node, variant: Variant) -> Iterator[Breach]:
    """Another axis."""
    x, given = feature(node), ints(node.optional(1))
    if x is not None and given and given[0] not in (-1, len(x.shape) - 1):
        yield Breach(f"it is over axis {given[0]} of {shown(x.shape)}, not the last",
                     {"axis": given[0], "limit": len(x.shape) - 1}, f"axis {len(x.shape) - 1}")


@rule("ethos-u.softmax-size", operators=["SOFTMAX"], says="height times width is at most 65536",
      why="each pixel is a row of the maximum and the sum that it is made of", source=REPORT, fix="softmax-tiles")
def softmax(node: Node, variant: Variant) -> Iterator[Breach]:
    """Too many rows."""
    x = feature(node)
    if x is not None and product(nhwc(x.shape)[1:3]) > _SPREAD:
        rows = product(nhwc(x.shape)[1:3])
        yield Breach(f"its input {shown(x.shape)} has {rows} rows, the limit is {_SPREAD}",
                     {"rows": rows, "limit": _SPREAD}, f"parts of {_SPREAD} rows")
