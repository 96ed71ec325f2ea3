"""Probes of MEAN, ARG_MAX, SOFTMAX and the reductions without limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vitrify.ir import DType, Node
from vitrify.ops import ArgMax, Mean, ReduceMax, ReduceMin, Softmax, Sum
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant


def _mean(shape: Sequence[int], axes: Sequence[int], dtype: DType = DType.INT8, *, variable: bool = False) -> Draw:
    def draw(sketch: Sketch) -> Node:
        if variable:
            return sketch.add(Mean(keep_dims=True), [sketch.value(shape, dtype), sketch.value((1,), DType.INT32)],
                              shape=(1, 1, 1, shape[-1]))
        return sketch.add(Mean(keep_dims=True), [sketch.value(shape, dtype), sketch.constant(list(axes))], dtype=dtype)
    return draw


@probe
def means(variant: Variant) -> Iterator[Probe]:
    """Axes, batches and sizes of means."""
    depth, batch, extent, count = (f"ethos-u.{name}" for name in
                                   ("depth-reduction", "batch", "mean-extent", "mean-elements"))
    yield Probe("mean over height and width", _mean((1, 7, 7, 16), (1, 2)))
    yield Probe("mean over width", _mean((1, 7, 7, 16), (2,)))
    yield Probe("mean of rank 2 over depth", _mean((1, 64), (1,)))
    yield Probe("mean of rank 3 over the middle", _mean((1, 49, 16), (1,)))
    for shape, wrong in (((1, 4, 5, 8), True), ((1, 1, 5, 8), False), ((1, 4, 1, 8), False), ((1, 4, 5, 1), False)):
        yield Probe(f"mean over depth of {list(shape)}", _mean(shape, (3,)), (depth,) if wrong else (),
                    {"shape": list(shape)} if wrong else {})
    yield Probe("mean over all of an image", _mean((1, 4, 5, 8), (1, 2, 3)), (depth,))
    for size in (1, 2):
        yield Probe(f"mean of batch {size}", _mean((size, 4, 4, 8), (1, 2)), (batch,) if size > 1 else (),
                    {"batch": 2, "limit": 1} if size > 1 else {})
    yield Probe("mean of batch 2 over depth", _mean((2, 4, 5, 8), (3,)), (batch, depth))
    for size in (4096, 4097):
        yield Probe(f"mean over {size}", _mean((1, size, 1, 8), (1,)), (extent,) if size > 4096 else (),
                    {"extent": size, "limit": 4096} if size > 4096 else {})
    yield Probe("mean over 4096x2 of int8", _mean((1, 4096, 2, 8), (1, 2)))
    yield Probe("mean over 256x256 of int16", _mean((1, 256, 256, 4), (1, 2), DType.INT16))
    yield Probe("mean over 257x256 of int16", _mean((1, 257, 256, 4), (1, 2), DType.INT16), (count,),
                {"elements": 257 * 256, "limit": 65536})
    yield Probe("mean over 4097 of batch 2", _mean((2, 4097, 1, 8), (1,)), (batch, extent))
    yield Probe("mean of int32", _mean((1, 4, 4, 8), (1, 2), DType.INT32),
                (*(("ethos-u.element-width",) * 2 if variant.core in SMALL else ()), "ethos-u.mean-type"))


def _arg_max(shape: Sequence[int], axis: int) -> Draw:
    def draw(sketch: Sketch) -> Node:
        return sketch.add(ArgMax(output_type=DType.INT32.value), [sketch.value(shape), sketch.constant(axis)],
                          dtype=DType.INT32, scale=None)
    return draw


@probe
def arg_max(variant: Variant) -> Iterator[Probe]:
    """Depth and axis of ARG_MAX."""
    limited = variant.core in SMALL
    depth, axis = (("ethos-u.arg-max-depth",), ("ethos-u.arg-max-axis",)) if limited else ((), ())
    for size in (127, 128):
        yield Probe(f"arg max of {size}", _arg_max((1, 4, 4, size), 3), depth if size > 127 else (),
                    {"depth": size, "limit": 127} if size > 127 and limited else {})
    yield Probe("arg max over axis -1", _arg_max((1, 4, 4, 10), -1))
    yield Probe("arg max over axis 1", _arg_max((1, 4, 4, 10), 1), axis, {"axis": 1, "limit": 3} if limited else {})
    yield Probe("arg max over axis 1 of depth 200", _arg_max((1, 4, 4, 200), 1), (*axis, *depth))


@probe
def softmaxes(variant: Variant) -> Iterator[Probe]:
    """Rows of SOFTMAX, and the other reductions."""
    def softmax(rows: int) -> Draw:
        return lambda sketch: sketch.add(Softmax(beta=1.0), [sketch.value((1, rows, 1, 4))], scale=1 / 256, zero=-128)

    for rows in (65536, 65537):
        yield Probe(f"softmax of {rows} rows", softmax(rows), ("ethos-u.softmax-size",) if rows > 65536 else (),
                    {"rows": rows, "limit": 65536} if rows > 65536 else {})

    def reduced(kind: type[Sum | ReduceMax | ReduceMin], axis: int) -> Draw:
        return lambda sketch: sketch.add(kind(keep_dims=True), [sketch.value((1, 4, 5, 8)), sketch.constant([axis])])

    for kind in (Sum, ReduceMax, ReduceMin):
        for axis in (1, 2, 3):
            yield Probe(f"{kind.name} over axis {axis}", reduced(kind, axis))
