"""Probes of what stops the compiler, each in a model of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.ir import DType, Node, Tensor
from vitrify.ops import (
    ArgMax,
    FullyConnected,
    HardSwish,
    MaxPool2D,
    Pack,
    Quantize,
    ResizeBilinear,
    ResizeNearestNeighbor,
    Shape,
    StridedSlice,
    Tile,
)
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant

_CODE = ("ethos-u.stops-compiler",)


@probe
def stops(variant: Variant) -> Iterator[Probe]:
    """What the compiler does not survive, beside its legal form."""
    def swish(sketch: Sketch) -> Node:
        return sketch.add(HardSwish(), [sketch.value((1, 4, 4, 8), DType.INT16)], dtype=DType.INT16)

    def pool(scale: float, zero: int) -> Draw:
        return lambda sketch: sketch.add(MaxPool2D(filter_height=2, filter_width=2), [sketch.value((1, 4, 4, 8))],
                                         scale=scale, zero=zero)

    def wide_arg_max(sketch: Sketch) -> Node:
        return sketch.add(ArgMax(output_type=DType.INT32.value), [
            sketch.value((1, 4, 4, 10), DType.INT16), sketch.constant(3)], dtype=DType.INT32, scale=None)

    yield Probe("HARD_SWISH int16", swish, _CODE, {"type": "int16"}, alone=True)
    yield Probe("ARG_MAX int16", wide_arg_max, _CODE, {"type": "int16"}, alone=True)
    yield Probe("maximum pool to another scale", pool(0.06, 0))
    yield Probe("maximum pool to another zero point", pool(0.05, 3))
    for size in (65536, 65537):
        yield Probe(f"layer of {size} inputs", _layer(size), _CODE if size > 65536 else (),
                    {"inputs": size, "limit": 65536} if size > 65536 else {}, alone=True)


@probe
def batches(variant: Variant) -> Iterator[Probe]:
    """Resizes of several samples."""
    def resize(kind: type[ResizeBilinear | ResizeNearestNeighbor], before: int, after: int) -> Draw:
        return lambda sketch: sketch.add(kind(), [sketch.value((2, before, before, 8)),
                                                  sketch.constant([after, after])])

    for kind in (ResizeBilinear, ResizeNearestNeighbor):
        for before, after in ((4, 8), (1, 8), (4, 4)):
            code = _CODE if variant.core in SMALL and (before, after) == (4, 8) else ()
            yield Probe(f"{kind.name} {before} to {after} of batch 2", resize(kind, before, after), code,
                        {"batch": 2} if code else {}, alone=True)


def _layer(size: int) -> Draw:
    return lambda sketch: sketch.add(FullyConnected(), [
        sketch.value((1, size)), sketch.constant(np.ones((4, size), np.int8), DType.INT8, scale=0.01),
        sketch.bias(4)])


@probe
def computed_sizes(variant: Variant) -> Iterator[Probe]:
    """Sizes computed from a shape."""
    def extents(sketch: Sketch, shape: tuple[int, ...], more: tuple[int, ...]) -> list[Tensor]:
        graph = sketch.graph
        of = graph.add(Shape(out_type=DType.INT32.value), [sketch.value(shape)], name=f"{sketch.prefix}/shape").output
        first = graph.add(StridedSlice(shrink_axis_mask=1), [of, *(sketch.constant([i]) for i in (0, 1, 1))]).output
        return [graph.add(Pack(values_count=len(more) + 1), [first, *(sketch.constant(v) for v in more)]).output]

    def tile(sketch: Sketch) -> Node:
        return sketch.add(Tile(), [sketch.value((1, 4, 4, 8)), *extents(sketch, (1, 4), (1, 2, 1))], shape=(1, 4, 8, 8))

    yield Probe("TILE as often as is computed", tile, _CODE, alone=True)


@probe
def scalings(variant: Variant) -> Iterator[Probe]:
    """QUANTIZE between widths."""
    def scaled(before: DType, after: DType) -> Draw:
        return lambda sketch: sketch.add(Quantize(), [sketch.value((1, 4, 4, 8), before)], dtype=after, scale=0.02,
                                         shape=(1, 4, 4, 8))

    small = variant.core in SMALL
    for before, after in ((DType.INT8, DType.INT16), (DType.INT16, DType.INT8), (DType.UINT8, DType.INT8)):
        yield Probe(f"QUANTIZE {before.label} to {after.label}", scaled(before, after))
    wide = ("ethos-u.element-width",)
    yield Probe("QUANTIZE int8 to int32", scaled(DType.INT8, DType.INT32), wide if small else ())
    yield Probe("QUANTIZE int32 to int8", scaled(DType.INT32, DType.INT8), wide if small else _CODE, alone=True)
