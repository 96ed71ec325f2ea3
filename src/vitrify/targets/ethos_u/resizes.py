"""Rules on the factors of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.ir import Node
from vitrify.ops import ResizeBilinear, ResizeNearestNeighbor
from vitrify.targets.ethos_u.cores import SMALL, U85
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import feature, nhwc

_FACTORS, _HALF_PIXEL_FACTOR = (2, 4, 8), 2
_LARGEST, _LARGEST_CENTRED = 2048, 1024
_KINDS = ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]


def _extents(node: Node) -> tuple[tuple[int, int], tuple[int, int]] | None:
    x = feature(node)
    if x is None or not x.shape:
        return None
    before, after = nhwc(x.shape), nhwc(node.output.shape)
    return (before[1], before[2]), (after[1], after[2])


@rule("ethos-u.resize-factor", operators=_KINDS, cores=SMALL,
      says="both directions grow by the same factor, 2, 4 or 8, with half-pixel centres 2; or from a single pixel",
      why="the NPU doubles by repeating pixels; larger factors are doublings in a row", source=REPORT, fix="resizes")
def factor(node: Node, variant: Variant) -> Iterator[Breach]:
    """Factors that are no doublings."""
    found, op = _extents(node), node.op
    assert isinstance(op, ResizeBilinear | ResizeNearestNeighbor)
    if found is None or found[0] == (1, 1):
        return
    (high, wide), (new_high, new_wide) = found
    centred = op.half_pixel_centers and isinstance(op, ResizeBilinear)
    if (high, wide) == (new_high, new_wide):
        if centred:
            yield Breach("it keeps the size, with half-pixel centres", {"factor": 1, "limit": _HALF_PIXEL_FACTOR},
                         "no resize")
        return
    up, across = _factor(high, new_high, op.align_corners), _factor(wide, new_wide, op.align_corners)
    facts = {"factor_height": float(up), "factor_width": float(across)}
    shown = f"{up:g}x{across:g} ({high}x{wide} to {new_high}x{new_wide})"
    flat = (new_high == 1 and up == 1) or (new_wide == 1 and across == 1)
    if up != across and (not flat or centred):
        yield Breach(f"its factors {shown} differ", facts, "the same factor in both directions")
        return
    largest = max(up, across)
    allowed = (_HALF_PIXEL_FACTOR,) if centred else _FACTORS
    if largest not in allowed:
        yield Breach(f"its factor {shown} is none of {', '.join(map(str, allowed))}"
                     f"{' (half-pixel centres)' if centred else ''}", {**facts, "limit": allowed[-1]},
                     f"{min(allowed, key=lambda one: abs(one - largest))}x")


def _factor(before: int, after: int, corners: bool) -> np.float32:
    """The factor as the compiler computes it."""
    if not corners:
        return np.float32(after) / np.float32(before)
    if after == 1:
        return np.float32(1)
    return np.float32(after - 1) / np.float32(before - 1) if before > 1 else np.float32(np.inf)


def _ratios(before: tuple[int, int], after: tuple[int, int], corners: bool) -> list[tuple[int, int]]:
    return [(new - 1, old - 1) if corners and old > 1 else (new, old) for old, new in zip(before, after, strict=True)]


@rule("ethos-u.resize-corners", operators=_KINDS, cores=[U85],
      says="corners are aligned, or pixels centred, not both", why="the two place pixels differently", source=REPORT)
def corners(node: Node, variant: Variant) -> Iterator[Breach]:
    """Both flags."""
    op = node.op
    assert isinstance(op, ResizeBilinear | ResizeNearestNeighbor)
    if op.align_corners and op.half_pixel_centers:
        yield Breach("it has align_corners and half_pixel_centers", {}, "one of them")


@rule("ethos-u.resize-largest", operators=_KINDS, cores=[U85],
      says="a factor is at most 2048, with pixel centres 1024", why="the registers hold no more", source=REPORT)
def largest(node: Node, variant: Variant) -> Iterator[Breach]:
    """Factors beyond the registers."""
    found, op = _extents(node), node.op
    assert isinstance(op, ResizeBilinear | ResizeNearestNeighbor)
    if found is None:
        return
    nearest = isinstance(op, ResizeNearestNeighbor)
    centred = op.half_pixel_centers or (nearest and not op.align_corners)
    limit = _LARGEST_CENTRED if centred else _LARGEST
    for new, old in _ratios(*found, op.align_corners):
        if not new or not old or new // old > limit:
            yield Breach(f"its factor {new}/{old} is beyond {limit}", {"factor": [new, old], "limit": limit},
                         f"{limit}")
            return


@rule("ethos-u.resize-power", operators=["RESIZE_BILINEAR"], cores=[U85],
      says="a bilinear factor is a power of two", why="its fractions must be exact in binary", source=REPORT,
      fix="bilinear-products")
def power(node: Node, variant: Variant) -> Iterator[Breach]:
    """Factors that are no power of two."""
    found, op = _extents(node), node.op
    assert isinstance(op, ResizeBilinear)
    if found is None or found[0] == (1, 1):
        return
    for new, old in _ratios(*found, op.align_corners):
        if old and (new % old or (new // old) & (new // old - 1) or not new // old):
            yield Breach(f"its factor {new}/{old} is no power of two", {"factor": [new, old]},
                         f"{1 << max(0, round(np.log2(max(new / old, 1))))}")
            return
