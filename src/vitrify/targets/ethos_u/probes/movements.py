"""Probes of transposes, slices, pads, splits, reversals and gathers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vitrify.ir import DType, Node
from vitrify.ops import (
    Concatenation,
    Gather,
    MirrorPad,
    Pack,
    Pad,
    PadV2,
    Reshape,
    ReverseV2,
    ScatterND,
    Slice,
    Split,
    SplitV,
    StridedSlice,
    Tile,
    Transpose,
    Unpack,
)
from vitrify.targets.ethos_u.cores import SMALL, U85
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant


def _transpose(shape: Sequence[int], order: Sequence[int], dtype: DType = DType.INT8) -> Draw:
    return lambda sketch: sketch.add(Transpose(), [sketch.value(shape, dtype), sketch.constant(list(order))],
                                     dtype=dtype)


@probe
def transposes(variant: Variant) -> Iterator[Probe]:
    """Permutations and their sizes."""
    limited = variant.core in SMALL
    code = ("ethos-u.transpose",) if limited else ()
    for order in ((0, 2, 1, 3), (0, 1, 3, 2), (0, 3, 1, 2), (0, 2, 3, 1), (0, 3, 2, 1)):
        yield Probe(f"transpose {list(order)}", _transpose((1, 6, 7, 8), order))
    yield Probe("transpose rank 2", _transpose((6, 7), (1, 0)))
    yield Probe("transpose rank 3", _transpose((5, 6, 7), (2, 0, 1)))
    for wide in (65536, 65537):
        yield Probe(f"transpose of {wide} columns", _transpose((1, 2, wide, 2), (0, 2, 1, 3)),
                    code if wide > 65536 else (), {"largest": wide, "limit": 65536} if limited and wide > 65536 else {})
    for size in (32, 33):
        yield Probe(f"transpose of a batch, products of {size * 2048}", _transpose((2, size, 2048, 3), (1, 0, 2, 3)),
                    code if size > 32 else (), {"largest": size * 2048} if limited and size > 32 else {})
    yield Probe("transpose rank 5", _transpose((1, 2, 3, 4, 5), (0, 1, 4, 2, 3)))
    yield Probe("transpose rank 6", _transpose((1, 2, 3, 4, 5, 2), (0, 1, 4, 2, 3, 5)))
    of_wide = ("ethos-u.wide-transpose",) if limited else ()
    for order in ((0, 2, 1, 3), (0, 1, 3, 2), (0, 3, 1, 2), (0, 2, 3, 1)):
        yield Probe(f"transpose int32 {list(order)}", _transpose((1, 6, 7, 8), order, DType.INT32),
                    of_wide if order[1:] in ((3, 1, 2), (2, 3, 1)) else ())
    yield Probe("transpose int32 of depth 16385", _transpose((1, 2, 3, 16385), (0, 2, 1, 3), DType.INT32), of_wide,
                {"limit": 16384} if limited else {})
    yield Probe("transpose rank 9", _transpose((1, 1, 1, 1, 1, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5, 7, 6, 8)),
                ("ethos-u.rank",), {"rank": 9, "limit": 8}, alone=True)


def _slice(shape: Sequence[int], steps: Sequence[int], begin: Sequence[int] | None = None) -> Draw:
    def draw(sketch: Sketch) -> Node:
        first = list(begin or [0] * len(shape))
        return sketch.add(StridedSlice(), [sketch.value(shape), sketch.constant(first), sketch.constant(list(shape)),
                                           sketch.constant(list(steps))])
    return draw


@probe
def slices(variant: Variant) -> Iterator[Probe]:
    """Steps of slices."""
    code = ("ethos-u.slice-stride",)
    for axis in range(4):
        steps = [1] * 4
        steps[axis] = 2
        wrong = axis in (0, 3)
        yield Probe(f"slice step 2 on axis {axis}", _slice((2, 8, 8, 8), steps), code if wrong else (),
                    {"axis": axis, "step": 2} if wrong else {})
    yield Probe("slice step 2 on height and width", _slice((1, 8, 8, 8), (1, 2, 2, 1)))
    yield Probe("slice without steps", _slice((1, 8, 8, 8), (1, 1, 1, 1), (0, 1, 1, 1)))

    def plain(sketch: Sketch) -> Node:
        return sketch.add(Slice(), [sketch.value((1, 8, 8, 8)), sketch.constant([0, 1, 1, 0]),
                                    sketch.constant([1, 4, 4, 8])])

    def variable(sketch: Sketch) -> Node:
        return sketch.add(Slice(), [sketch.value((1, 8, 8, 8)), sketch.value((4,), DType.INT32),
                                    sketch.constant([1, 4, 4, 8])], shape=(1, 4, 4, 8))

    yield Probe("SLICE", plain)
    yield Probe("SLICE from a computed place", variable, ("ethos-u.parameter-variable",))


@probe
def pads(variant: Variant) -> Iterator[Probe]:
    """Pads on every axis, and their parameters."""
    def padded(kind: type[Pad | MirrorPad], places: Sequence[Sequence[int]], dtype: DType = DType.INT32) -> Draw:
        return lambda sketch: sketch.add(kind(), [sketch.value((1, 6, 6, 8)), sketch.constant(places, dtype)])

    def valued(sketch: Sketch) -> Node:
        return sketch.add(PadV2(), [sketch.value((1, 6, 6, 8)), sketch.constant([[0, 0], [1, 1], [1, 1], [0, 0]]),
                                    sketch.constant(3, DType.INT8, scale=0.05)])

    for name, places in {"height and width": [[0, 0], [1, 1], [2, 1], [0, 0]], "channels": [[0, 0]] * 3 + [[1, 2]],
                         "batch": [[0, 1]] + [[0, 0]] * 3}.items():
        yield Probe(f"PAD of {name}", padded(Pad, places))
    yield Probe("PAD of int64 places", padded(Pad, [[0, 0], [1, 1], [1, 1], [0, 0]], DType.INT64))
    yield Probe("PAD of int16 places", padded(Pad, [[0, 0], [1, 1], [1, 1], [0, 0]], DType.INT16),
                ("ethos-u.pad-type",), {"type": "int16"}, alone=True)
    yield Probe("MIRROR_PAD", padded(MirrorPad, [[0, 0], [1, 1], [1, 1], [0, 0]]))
    yield Probe("PADV2", valued)


@probe
def joins(variant: Variant) -> Iterator[Probe]:
    """Splits, packs, tiles, reshapes and reversals."""
    def split(sketch: Sketch) -> Node:
        return sketch.add(Split(num_splits=2), [sketch.constant(3), sketch.value((1, 4, 4, 8))])

    def split_v(sketch: Sketch) -> Node:
        return sketch.add(SplitV(num_splits=2), [sketch.value((1, 4, 4, 8)), sketch.constant([3, 5]),
                                                 sketch.constant(3)])

    def pack(sketch: Sketch) -> Node:
        return sketch.add(Pack(values_count=2, axis=1), [sketch.value((1, 4, 8)), sketch.value((1, 4, 8))])

    def unpack(sketch: Sketch) -> Node:
        return sketch.add(Unpack(num=3, axis=1), [sketch.value((1, 3, 4, 8))])

    def joined(axis: int) -> Draw:
        return lambda sketch: sketch.add(Concatenation(axis=axis), [sketch.value((1, 4, 4, 8)) for _ in range(2)])

    def tile(dtype: DType, scale: float | None = 0.05) -> Draw:
        return lambda sketch: sketch.add(Tile(), [sketch.value((1, 4, 4, 8), dtype, scale=scale),
                                                  sketch.constant([1, 2, 2, 1])], dtype=dtype, scale=scale)

    def reversed_(axis: int) -> Draw:
        return lambda sketch: sketch.add(ReverseV2(), [sketch.value((1, 4, 4, 8)), sketch.constant([axis])])

    def reshaped(sketch: Sketch) -> Node:
        return sketch.add(Reshape(new_shape=(16, 8)), [sketch.value((1, 4, 4, 8)), sketch.constant([16, 8])])

    yield from (Probe("SPLIT", split), Probe("SPLIT_V", split_v), Probe("PACK", pack), Probe("UNPACK", unpack),
                Probe("TILE", tile(DType.INT8)), Probe("RESHAPE", reshaped))
    yield from (Probe(f"CONCATENATION on axis {axis}", joined(axis)) for axis in (1, 2, 3))
    limited = variant.core in SMALL
    yield Probe("TILE bool", tile(DType.BOOL, None), ("ethos-u.tensor-type",) * 2 if limited else (),
                {"type": "bool"} if limited else {})
    yield Probe("TILE uint32", tile(DType.UINT32, None), ("ethos-u.tensor-type",) * 2 + (
        ("ethos-u.element-width",) * 2 if limited else ()), {"type": "uint32"})
    for axis in (1, 2, 3):
        yield Probe(f"REVERSE_V2 of axis {axis}", reversed_(axis), ("ethos-u.reverse",) if limited else (),
                    {"axes": [axis]} if limited else {})


@probe
def gathers(variant: Variant) -> Iterator[Probe]:
    """GATHER and SCATTER_ND, which the U85 has."""
    def gathered(axis: int, batch: int) -> Draw:
        return lambda sketch: sketch.add(Gather(axis=axis, batch_dims=batch), [
            sketch.value((2, 6, 8)), sketch.value((2, 3) if batch else (3,), DType.INT32, scale=None)])

    def scattered(places: Sequence[Sequence[int]]) -> Draw:
        return lambda sketch: sketch.add(ScatterND(), [
            sketch.constant(places), sketch.value((len(places), 8)), sketch.constant([6, 8])])

    large = variant.core == U85
    for axis, batch in ((0, 0), (1, 1), (1, 0), (2, 1)):
        code = ("ethos-u.gather-axis",) if axis != batch else ()
        yield Probe(f"GATHER axis {axis}, {batch} batch axes", gathered(axis, batch),
                    code if large else ("ethos-u.unsupported-operator",),
                    {"axis": axis, "limit": batch} if large and code else {})
    yield Probe("SCATTER_ND", scattered([[1], [3]]), () if large else ("ethos-u.unsupported-operator",))
    if large:
        yield Probe("SCATTER_ND of a row twice", scattered([[1], [1]]), ("ethos-u.scatter",))
