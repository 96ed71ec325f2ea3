"""Rules on elementwise operators, reductions, movements, resizes and softmax."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vitrify.ir import Node
from vitrify.ops import MirrorPad, ResizeBilinear, ResizeNearestNeighbor
from vitrify.targets.neutron.operators import held
from vitrify.targets.rules import Breach, Variant
from vitrify.targets.rules.roles import feature, features, ints, shown

FACTORS, CORNERS = (1, 2, 4, 8), "a resize aligns corners, or centres pixels, not both"
SOFTMAX_CHANNELS, SOFTMAX_PIXELS, SOFTMAX_VALUES, RESHAPE_RANK = 2040, 4096, 524288, 8
_REFLECT = 0
"""The schema's number of the mode."""
_BINARY = ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "PRELU"]
_RESIZES = ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]


@held("neutron.broadcast", operators=_BINARY, old=None, says="one input has as many elements as the output",
      why="only the other is repeated")
def broadcast(node: Node, variant: Variant) -> Iterator[Breach]:
    """Both inputs repeated."""
    sizes = [tensor.size for tensor in features(node)]
    if node.outputs and sizes and node.output.size not in sizes:
        shapes = " and ".join(shown(tensor.shape) for tensor in features(node))
        yield Breach(f"{shapes} are both repeated to {shown(node.output.shape)}",
                     {"elements": max(sizes), "limit": node.output.size}, "one input of the output's shape")


@held("neutron.divisor", operators=["DIV"], old=None, says="a divisor is constant",
      why="the converter multiplies with its inverse")
def divisor(node: Node, variant: Variant) -> Iterator[Breach]:
    """Divisors that are computed."""
    found = node.optional(1)
    if found is not None and found.data is None:
        yield Breach(f"its divisor '{found.name}' is computed at run time", {"tensor": found.name}, "a constant")


@held("neutron.reshape-rank", operators=["RESHAPE", "SQUEEZE", "EXPAND_DIMS"], old="inferred",
      says=f"the result has fewer than {RESHAPE_RANK} axes", why="the converter holds no more")
def rank(node: Node, variant: Variant) -> Iterator[Breach]:
    """Too many axes."""
    found = len(node.output.shape) if node.outputs else 0
    if found >= RESHAPE_RANK:
        yield Breach(f"its result has {found} axes, the limit is {RESHAPE_RANK - 1}",
                     {"rank": found, "limit": RESHAPE_RANK - 1}, f"{RESHAPE_RANK - 1} axes")


@held("neutron.slice-stride", operators=["STRIDED_SLICE"], c="inferred", old=None, says="slices have the step 1",
      why="ExecuTorch's way to the converter knows no other step")
def step(node: Node, variant: Variant) -> Iterator[Breach]:
    """Slices that leave out elements."""
    found = ints(node.optional(3))
    if found is not None and any(one != 1 for one in found):
        yield Breach(f"its steps are {shown(found)}, the limit is 1", {"steps": list(found), "limit": 1}, "1")


@held("neutron.mirror-mode", operators=["MIRROR_PAD"], old=None, says="a mirrored border leaves the edge out (REFLECT)",
      why="ExecuTorch's way to the converter has no other mode")
def mirror(node: Node, variant: Variant) -> Iterator[Breach]:
    """Borders that repeat the edge."""
    op = node.op
    assert isinstance(op, MirrorPad)
    if op.mode != _REFLECT:
        yield Breach("its border repeats the edge (SYMMETRIC)", {"mode": int(op.mode), "limit": _REFLECT}, "REFLECT")


@held("neutron.softmax-size", operators=["SOFTMAX"], old=None, s=None, fix="softmax-tiles",
      says=f"at most {SOFTMAX_CHANNELS} channels, {SOFTMAX_PIXELS} pixels and {SOFTMAX_VALUES} values in all",
      why="a row and the sums of all rows stay in local memory")
def softmax(node: Node, variant: Variant) -> Iterator[Breach]:
    """Softmax over too many values."""
    x = feature(node)
    if x is None or not x.shape:
        return
    channels, pixels = x.shape[-1], math.prod(x.shape[:-1])
    for found, limit, what in ((channels, SOFTMAX_CHANNELS, "channels"), (pixels, SOFTMAX_PIXELS, "pixels"),
                               (channels * pixels, SOFTMAX_VALUES, "values")):
        if found > limit:
            yield Breach(f"it has {found} {what}, the limit is {limit}", {what: found, "limit": limit}, f"{limit}")


def _factors(node: Node) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """New over old extents, height then width."""
    x, op = feature(node), node.op
    assert isinstance(op, ResizeBilinear | ResizeNearestNeighbor)
    if x is None or len(x.shape) != 4 or not node.outputs or len(node.output.shape) != 4:
        return None
    less = 1 if op.align_corners else 0
    pairs = [(new - less, old - less) if old > less else (new, old)
             for old, new in zip(x.shape[1:3], node.output.shape[1:3], strict=True)]
    return pairs[0], pairs[1]


def scaled(node: Node, allowed: tuple[int, ...], equal: bool) -> Iterator[Breach]:
    """Yield factors of a resize that are not allowed, or differ where they must be equal."""
    found = _factors(node)
    if found is None:
        return
    ratios = [new / old if old else math.inf for new, old in found]
    legal = all(ratio in allowed for ratio in ratios) and (not equal or ratios[0] == ratios[1])
    if not legal:
        names = ", ".join(map(str, allowed))
        both = ", the same over height and width" if equal else ""
        nearest = "x".join(str(sorted((abs(one - ratio), one) for one in allowed)[0][1]) for ratio in ratios)
        yield Breach(f"its factor {ratios[0]:g}x{ratios[1]:g} is none of {names}{both}",
                     {"factor_height": float(ratios[0]), "factor_width": float(ratios[1]), "limit": allowed[-1]},
                     nearest)


@held("neutron.resize-factor", operators=_RESIZES, old=None, says="height and width each grow 1, 2, 4 or 8 times",
      why="a resize is made of doublings", fix="resizes")
def factor(node: Node, variant: Variant) -> Iterator[Breach]:
    """Factors that are no doublings."""
    yield from scaled(node, FACTORS, equal=False)


@held("neutron.resize-corners", operators=_RESIZES, old="inferred", says=CORNERS,
      why="the two place pixels differently")
def corners(node: Node, variant: Variant) -> Iterator[Breach]:
    """Both flags."""
    op = node.op
    assert isinstance(op, ResizeBilinear | ResizeNearestNeighbor)
    if op.align_corners and op.half_pixel_centers:
        yield Breach("it has align_corners and half_pixel_centers", {}, "one of them")
