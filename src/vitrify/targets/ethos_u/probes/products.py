"""Probes of products of computed values, of tables, and of operators that need equal scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vitrify.ir import DType, Node
from vitrify.ops import BatchMatMul, Elu, Exp, Gelu, Log, Maximum, Minimum, Prelu, Rsqrt
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant


def _product(x: Sequence[int], y: Sequence[int], dtype: DType = DType.INT8, *, adj_x: bool = False,
             adj_y: bool = False) -> Draw:
    return lambda sketch: sketch.add(BatchMatMul(adj_x=adj_x, adj_y=adj_y),
                                     [sketch.value(x, dtype), sketch.value(y, dtype)], dtype=dtype)


@probe
def products(variant: Variant) -> Iterator[Probe]:
    """Types and extents of BATCH_MATMUL."""
    limited = variant.core in SMALL
    kind, extent = (("ethos-u.matmul-type",), ("ethos-u.matmul-extent",)) if limited else ((), ())
    yield Probe("matmul int8", _product((1, 4, 8, 16), (1, 4, 16, 8)))
    yield Probe("matmul int8 of the transposed second", _product((1, 4, 8, 16), (1, 4, 8, 16), adj_y=True))
    yield Probe("matmul int8 of the transposed first", _product((1, 16, 8), (1, 16, 8), adj_x=True))
    yield Probe("matmul int16", _product((1, 4, 8, 16), (1, 4, 16, 8), DType.INT16), kind,
                {"type": "int16"} if limited else {})
    if limited:
        for size in (65536, 65537):
            yield Probe(f"matmul over {size}", _product((1, 1, size), (1, size, 2)), extent if size > 65536 else (),
                        {"summed": size, "limit": 65536} if size > 65536 else {})
        yield Probe("matmul of 65537 columns", _product((1, 2, 4), (1, 4, 65537)), extent, {"columns": 65537})


def _table(op: Elu | Exp | Gelu | Log | Rsqrt, dtype: DType) -> Draw:
    zero = 128 if dtype is DType.UINT8 else 0
    return lambda sketch: sketch.add(op, [sketch.value((1, 4, 4, 8), dtype, zero=zero)], dtype=dtype, zero=zero)


@probe
def tables(variant: Variant) -> Iterator[Probe]:
    """Types of operators that are tables."""
    allowed: dict[type[Elu | Exp | Gelu | Log | Rsqrt], tuple[DType, ...]] = {
        Elu: (DType.INT8,), Gelu: (DType.INT8, DType.UINT8), Log: (DType.INT8, DType.INT16),
        Rsqrt: (DType.INT8, DType.INT16), Exp: (DType.INT8, DType.INT16)}
    for kind, types in allowed.items():
        for dtype in (DType.INT8, DType.INT16, DType.UINT8):
            if kind is Exp and dtype is DType.UINT8:
                continue
            wrong = dtype not in types
            yield Probe(f"{kind.name} {dtype.label}", _table(kind(), dtype), ("ethos-u.table-type",) if wrong else (),
                        {"type": dtype.label} if wrong else {})


@probe
def equals(variant: Variant) -> Iterator[Probe]:
    """MAXIMUM and MINIMUM of values on several scales."""
    def compared(kind: type[Maximum | Minimum], first: float, second: float, zero: int = 0) -> Draw:
        return lambda sketch: sketch.add(kind(), [sketch.value((1, 4, 4, 8), scale=first),
                                                  sketch.value((1, 4, 4, 8), scale=second, zero=zero)])

    code = ("ethos-u.unequal-scales",)
    for kind in (Maximum, Minimum):
        yield Probe(f"{kind.name} on one scale", compared(kind, 0.05, 0.05))
        yield Probe(f"{kind.name} on two scales", compared(kind, 0.05, 0.06), code)
        yield Probe(f"{kind.name} with two zero points", compared(kind, 0.05, 0.05, 3), code)
        yield Probe(f"{kind.name} with two other scales", compared(kind, 0.04, 0.06), code * 2)

    def prelu(sketch: Sketch) -> Node:
        return sketch.add(Prelu(), [sketch.value((1, 4, 4, 8)),
                                    sketch.constant([[[3] * 8]], DType.INT8, scale=0.01)])

    yield Probe("PRELU", prelu)
