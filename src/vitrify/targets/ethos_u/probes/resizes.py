"""Probes of the factors of resizes."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import Node
from vitrify.ops import ResizeBilinear, ResizeNearestNeighbor
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant

_Kind = type[ResizeBilinear | ResizeNearestNeighbor]


def _resize(kind: _Kind, before: tuple[int, int], after: tuple[int, int], corners: bool = False,
            centres: bool = False) -> Draw:
    def draw(sketch: Sketch) -> Node:
        return sketch.add(kind(align_corners=corners, half_pixel_centers=centres),
                          [sketch.value((1, *before, 4)), sketch.constant(list(after))])
    return draw


@probe
def small_cores(variant: Variant) -> Iterator[Probe]:
    """Equal doublings and everything else."""
    if variant.core not in SMALL:
        return
    code = ("ethos-u.resize-factor",)
    for kind in (ResizeBilinear, ResizeNearestNeighbor):
        name = kind.name
        for factor in (2, 3, 4, 8, 16):
            yield Probe(f"{name} x{factor}", _resize(kind, (5, 6), (5 * factor, 6 * factor)),
                        () if factor in (2, 4, 8) else code, {} if factor in (2, 4, 8) else {"factor_height": factor})
            good = factor in (2, 4, 8)
            yield Probe(f"{name} x{factor} corners", _resize(kind, (5, 6), (4 * factor + 1, 5 * factor + 1), True),
                        () if good else code)
        yield Probe(f"{name} x0.5", _resize(kind, (6, 6), (3, 3)), code, {"factor_width": 0.5})
        yield Probe(f"{name} 2x4", _resize(kind, (5, 6), (10, 24)), code, {"factor_height": 2, "factor_width": 4})
        yield Probe(f"{name} from one pixel", _resize(kind, (1, 1), (7, 5)))
        yield Probe(f"{name} of one row", _resize(kind, (1, 6), (1, 12)))
        yield Probe(f"{name} same size", _resize(kind, (5, 6), (5, 6)))
    yield Probe("bilinear x2 centres", _resize(ResizeBilinear, (5, 6), (10, 12), centres=True))
    yield Probe("bilinear x4 centres", _resize(ResizeBilinear, (5, 6), (20, 24), centres=True), code)
    yield Probe("bilinear same size centres", _resize(ResizeBilinear, (5, 6), (5, 6), centres=True), code)
    yield Probe("bilinear of one row centres", _resize(ResizeBilinear, (1, 6), (1, 12), centres=True), code)
    yield Probe("nearest x4 centres", _resize(ResizeNearestNeighbor, (5, 6), (20, 24), centres=True))


@probe
def large_core(variant: Variant) -> Iterator[Probe]:
    """Powers of two for bilinear, any factor for nearest."""
    if variant.core in SMALL:
        return
    power, largest = ("ethos-u.resize-power",), ("ethos-u.resize-largest",)
    for factor in (2, 3, 16):
        yield Probe(f"bilinear x{factor}", _resize(ResizeBilinear, (5, 6), (5 * factor, 6 * factor)),
                    power if factor == 3 else ())
        yield Probe(f"nearest x{factor}", _resize(ResizeNearestNeighbor, (5, 6), (5 * factor, 6 * factor)))
    yield Probe("bilinear 2x4", _resize(ResizeBilinear, (5, 6), (10, 24)))
    yield Probe("bilinear x0.5", _resize(ResizeBilinear, (6, 6), (3, 3)), power)
    yield Probe("bilinear x4 centres", _resize(ResizeBilinear, (5, 6), (20, 24), centres=True))
    yield Probe("bilinear corners", _resize(ResizeBilinear, (5, 6), (9, 11), True))
    for factor in (1024, 1025):
        yield Probe(f"nearest x{factor}", _resize(ResizeNearestNeighbor, (1, 2), (1, 2 * factor)),
                    largest if factor > 1024 else (), {"limit": 1024} if factor > 1024 else {})
    yield Probe("bilinear x2 with both flags", _resize(ResizeBilinear, (5, 6), (9, 11), True, True),
                ("ethos-u.resize-corners",))
