"""Rules of the converters before SDK 3.2 for Neutron-C: widths in multiples of the array's, few forms."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vitrify.ir import Node
from vitrify.targets.neutron.operators import ET_OLD, held
from vitrify.targets.neutron.products import padded
from vitrify.targets.neutron.shapes import scaled
from vitrify.targets.rules import Breach, Variant
from vitrify.targets.rules.roles import axes, feature, features, ints, shown

PIXELS, ROWS = 4096, 65536
_WHOLE = "that converter shares channels out to the array's pipelines whole"
_NONE = "that converter has no other form"


@held("neutron.channels-multiple", operators=["MAX_POOL_2D", "MEAN", "SOFTMAX", "RESIZE_BILINEAR", "PRELU",
      "RESIZE_NEAREST_NEIGHBOR", "SLICE"], c=None, old="documented", s=None, source=ET_OLD,
      says="channels are a multiple of the array's width", why=_WHOLE, fix="filled-channels")
def channels(node: Node, variant: Variant) -> Iterator[Breach]:
    """Channels that are no multiple."""
    found = node.output if node.op.kind == "SLICE" else feature(node)
    width = variant.limits["num_macs"]
    if found is not None and found.shape and found.shape[-1] % width:
        yield Breach(f"'{found.name}' has {found.shape[-1]} channels, no multiple of {width}",
                     {"tensor": found.name, "channels": found.shape[-1], "limit": width},
                     f"{padded(found.shape[-1], width)}")


@held("neutron.channels-multiple", operators=["CONCATENATION"], c=None, old="documented", s=None, source=ET_OLD,
      says="channels of inputs and output are multiples of the array's width, unless equal shapes are joined along "
      "them", why=_WHOLE, fix="filled-channels")
def joined(node: Node, variant: Variant) -> Iterator[Breach]:
    """Joined channels that are no multiple."""
    parts, width, axis = features(node), variant.limits["num_macs"], getattr(node.op, "axis", 0)
    if not parts or not parts[0].shape:
        return
    if len({tensor.shape for tensor in parts}) == 1 and axis in (-1, len(parts[0].shape) - 1):
        return
    for tensor in (*parts, node.output):
        if tensor.shape[-1] % width:
            yield Breach(f"'{tensor.name}' has {tensor.shape[-1]} channels, no multiple of {width}",
                         {"tensor": tensor.name, "channels": tensor.shape[-1], "limit": width},
                         f"{padded(tensor.shape[-1], width)}")
            return


@held("neutron.channels-multiple", operators=["BATCH_MATMUL"], c=None, old="documented", s=None, source=ET_OLD,
      says="every extent of a product is a multiple of the array's width", why=_WHOLE)
def products(node: Node, variant: Variant) -> Iterator[Breach]:
    """Products whose extents are no multiple."""
    width = variant.limits["num_macs"]
    for tensor in features(node):
        odd = [extent for extent in tensor.shape[-2:] if extent % width]
        if odd:
            yield Breach(f"'{tensor.name}' is {shown(tensor.shape)}; {odd[0]} is no multiple of {width}",
                         {"tensor": tensor.name, "extent": odd[0], "limit": width}, f"{padded(odd[0], width)}")


@held("neutron.batch", operators=["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "MAX_POOL_2D"], c=None,
      old="documented", s=None, source=ET_OLD, says="there is one sample", why=_NONE, fix="batches")
def batch(node: Node, variant: Variant) -> Iterator[Breach]:
    """Several samples."""
    x = feature(node)
    if x is not None and len(x.shape) == 4 and x.shape[0] > 1:
        yield Breach(f"it computes {x.shape[0]} samples, the limit is 1", {"batch": x.shape[0], "limit": 1}, "1")


@held("neutron.broadcast", operators=["ADD", "SUB", "MUL"], c=None, old="documented", s=None, source=ET_OLD,
      says="both inputs have the output's shape", why=_NONE)
def repeated(node: Node, variant: Variant) -> Iterator[Breach]:
    """An input that is repeated."""
    for tensor in features(node):
        if tensor.size != node.output.size:
            yield Breach(f"'{tensor.name}' {shown(tensor.shape)} is repeated to {shown(node.output.shape)}",
                         {"tensor": tensor.name, "elements": tensor.size, "limit": node.output.size},
                         shown(node.output.shape))


@held("neutron.mul-extent", operators=["MUL"], c=None, old="documented", s=None, source=ET_OLD,
      says="some extent is a multiple of 8", why=_WHOLE)
def multiplied(node: Node, variant: Variant) -> Iterator[Breach]:
    """No extent that is a multiple."""
    shape = node.output.shape
    if node.output.size > 1 and not any(extent % 8 == 0 for extent in shape):
        yield Breach(f"no extent of {shown(shape)} is a multiple of 8", {"shape": list(shape), "limit": 8},
                     f"{padded(shape[-1], 8)} channels")


@held("neutron.reduce-axes", operators=["MEAN"], c=None, old="documented", s=None, source=ET_OLD,
      says="a mean is one over height and width of four axes, which it keeps", why="it is made an average pool")
def mean(node: Node, variant: Variant) -> Iterator[Breach]:
    """Other means than of an image."""
    x, given = feature(node), ints(node.optional(1))
    if x is None or given is None:
        return
    found = axes(given, len(x.shape))
    if len(x.shape) != 4 or found != {1, 2} or not getattr(node.op, "keep_dims", False):
        yield Breach(f"it is over the axes {shown(tuple(sorted(found)))} of {shown(x.shape)}"
                     f"{'' if getattr(node.op, 'keep_dims', False) else ' and drops them'}",
                     {"axes": sorted(found), "limit": [1, 2]}, "[1,2] of four axes")


@held("neutron.softmax-size", operators=["SOFTMAX"], c=None, old="documented", s=None, source=ET_OLD,
      says="channels, pixels and values stay below what fits the pipelines", fix="softmax-tiles",
      why="a row and the sums of all rows stay in local memory")
def softmax(node: Node, variant: Variant) -> Iterator[Breach]:
    """Softmax over too many values."""
    x = feature(node)
    if x is None or not x.shape:
        return
    count, pixels = x.shape[-1], math.prod(x.shape[:-1])
    most = 4096 // variant.limits["pipelines"] * 4 - 1
    for found, limit, what in ((count, most, "channels"), (pixels, PIXELS, "pixels"),
                               (count * pixels, ROWS * variant.limits["num_macs"], "values")):
        if found > limit:
            yield Breach(f"it has {found} {what}, the limit is {limit}", {what: found, "limit": limit}, f"{limit}")


@held("neutron.prelu-size", operators=["PRELU"], c=None, old="documented", s=None, source=ET_OLD,
      says=f"a PRELU is of four axes and at most {PIXELS} pixels", why=_NONE)
def prelu(node: Node, variant: Variant) -> Iterator[Breach]:
    """Too large images."""
    x = feature(node)
    if x is None:
        return
    pixels = math.prod(x.shape[1:-1])
    if len(x.shape) != 4 or pixels > PIXELS:
        yield Breach(f"its input is {shown(x.shape)}, {pixels} pixels; the limit is {PIXELS}",
                     {"pixels": pixels, "limit": PIXELS}, f"{PIXELS} pixels of four axes")


@held("neutron.pad-channels", operators=["PAD"], c=None, old="documented", s=None, source=ET_OLD,
      says="channels are not padded", why=_NONE)
def pad(node: Node, variant: Variant) -> Iterator[Breach]:
    """Padded channels."""
    found = ints(node.optional(1))
    if found is not None and any(found[-2:]):
        yield Breach(f"it pads the channels by {found[-2]} and {found[-1]}", {"pads": list(found[-2:]), "limit": 0},
                     "height and width only")


@held("neutron.transpose", operators=["TRANSPOSE"], c=None, old="documented", s=None, source=ET_OLD,
      says="a permutation moves no axis but those of one element, or channels past height and width",
      why="that converter has no other form; for the second, its limits of size are not public")
def transpose(node: Node, variant: Variant) -> Iterator[Breach]:
    """Other permutations."""
    x, order = feature(node), ints(node.optional(1))
    if x is None or order is None or len(order) != len(x.shape):
        return
    kept = [axis for axis in order if x.shape[axis] != 1]
    if kept != sorted(kept) and order not in ((0, 3, 1, 2), (0, 2, 3, 1)):
        yield Breach(f"the permutation {shown(order)} of {shown(x.shape)}", {"permutation": list(order)},
                     "[0,2,3,1] or [0,3,1,2]")


@held("neutron.resize-factor", operators=["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"], c=None, old="documented",
      s=None, source=ET_OLD, says="height and width grow alike, 2 or 4 times", why="a resize is made of doublings",
      fix="resizes")
def factor(node: Node, variant: Variant) -> Iterator[Breach]:
    """Factors that are no doublings, or differ."""
    yield from scaled(node, (2, 4), equal=True)
