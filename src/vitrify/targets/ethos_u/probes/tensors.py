"""Probes of what holds for every tensor: types, widths, scales, zero points, free dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node, Operator
from vitrify.ops import (
    Abs,
    Add,
    AveragePool2D,
    Cast,
    Cos,
    Dequantize,
    Floor,
    GatherND,
    HardSwish,
    LeakyRelu,
    Logistic,
    Mul,
    Quantize,
    Relu,
    Softmax,
    Sqrt,
    SquaredDifference,
    Sub,
    Tanh,
)
from vitrify.targets.ethos_u.cores import SMALL, U85, core
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant

SHAPE = (1, 4, 4, 8)
_UNARY: tuple[Operator, ...] = (Abs(), Relu(), Logistic(), Tanh(), LeakyRelu(alpha=0.1))
_BINARY: tuple[Operator, ...] = (Add(), Sub(), Mul(), SquaredDifference())


def _one(op: Operator, dtype: DType = DType.INT8, *, inputs: int = 1, scale: float | None = 0.05, zero: int = 0,
         scales: int = 1, out_zero: int = 0) -> Draw:
    def draw(sketch: Sketch) -> Node:
        values = [sketch.value(SHAPE, dtype, scale=scale, zero=zero, scales=scales) for _ in range(inputs)]
        return sketch.add(op, values, dtype=dtype, scale=scale, zero=out_zero)
    return draw


@probe
def kinds(variant: Variant) -> Iterator[Probe]:
    """Operators in no table, and some in it."""
    code = ("ethos-u.unsupported-operator",)
    missing: tuple[Operator, ...] = (Floor(), Cos(), Sqrt())
    for op in missing:
        yield Probe(f"{op.kind} int8", _one(op), code, {"operator": op.kind})

    def gather(sketch: Sketch) -> Node:
        return sketch.add(GatherND(), [sketch.value((4, 8)), sketch.constant([[1], [2]])])

    yield Probe("GATHER_ND", gather, code, {"operator": "GATHER_ND"})
    for op in _UNARY:
        yield Probe(f"{op.kind} int8", _one(op))


@probe
def types(variant: Variant) -> Iterator[Probe]:
    """Element types by operator."""
    wide = core(variant.core).wide
    for op in (*_UNARY[1:], *_BINARY):
        inputs = 1 + (op in _BINARY)
        yield Probe(f"{op.kind} float32", _one(op, DType.FLOAT32, inputs=inputs, scale=None),
                    ("ethos-u.float-tensor",) * (inputs + 1), {"type": "float32"})
    for op in _BINARY:
        able = wide[32]
        wrong = able is not None and op.kind not in able
        yield Probe(f"{op.kind} int32", _one(op, DType.INT32, inputs=2),
                    ("ethos-u.element-width",) * 3 if wrong else (), {"bits": 32, "limit": 16} if wrong else {})
    for dtype in (DType.UINT8, DType.INT16):
        zero = 128 if dtype is DType.UINT8 else 0
        for op in (*_UNARY[1:], *_BINARY[:3], Softmax(beta=1.0)):
            yield Probe(f"{op.kind} {dtype.label}",
                        _one(op, dtype, inputs=1 + (op in _BINARY), zero=zero, out_zero=zero))

    def cast(sketch: Sketch) -> Node:
        return sketch.add(Cast(in_data_type=DType.INT8.value, out_data_type=DType.INT32.value),
                          [sketch.value(SHAPE)], dtype=DType.INT32)

    def entering(sketch: Sketch) -> Node:
        return sketch.add(Quantize(), [sketch.value(SHAPE, DType.FLOAT32, scale=None)])

    def leaving(sketch: Sketch) -> Node:
        return sketch.add(Dequantize(), [sketch.value(SHAPE)], dtype=DType.FLOAT32, scale=None)

    for name, draw in (("QUANTIZE of float", entering), ("DEQUANTIZE", leaving)):
        yield Probe(name, draw, ("ethos-u.float-border",), {"type": "float32"})
    yield Probe("CAST int8 to int32", cast, () if variant.core == U85 else ("ethos-u.unsupported-operator",))


@probe
def parameters(variant: Variant) -> Iterator[Probe]:
    """Scales and zero points."""
    some: tuple[Operator, ...] = (Relu(), Add())
    for op in some:
        inputs = 1 + (op in _BINARY)
        yield Probe(f"{op.kind} without scale", _one(op, inputs=inputs, scale=None),
                    ("ethos-u.missing-scale",) * (inputs + 1))
        yield Probe(f"{op.kind} with a scale per channel", _one(op, inputs=inputs, scales=8),
                    ("ethos-u.per-axis-quantization",) * inputs, {"scales": 8, "limit": 1})
    for op in _BINARY[:3]:
        yield Probe(f"{op.kind} int32 without scale", _one(op, DType.INT32, inputs=2, scale=None))
        yield Probe(f"{op.kind} int16 without scale", _one(op, DType.INT16, inputs=2, scale=None),
                    ("ethos-u.missing-scale",) * 3)
    for zero in (-128, 127):
        yield Probe(f"ADD zero point {zero}", _one(Add(), inputs=2, zero=zero, out_zero=zero))
    code = "ethos-u.zero-point"
    yield Probe("ADD int32 zero point 1", _one(Add(), DType.INT32, inputs=2, zero=1), (code,) * 2,
                {"zero_point": 1, "low": 0, "high": 0})
    yield Probe("MUL int16 zero point 5", _one(Mul(), DType.INT16, inputs=2, zero=5),
                (code,) * 2 if variant.core == U85 else ())
    yield Probe("ADD uint8 zero point -1", _one(Add(), DType.UINT8, inputs=2, zero=-1), (code,) * 2,
                {"zero_point": -1, "low": 0})
    if variant.core == U85:
        yield Probe("ADD uint8 zero point 256", _one(Add(), DType.UINT8, inputs=2, zero=256), (code,) * 2,
                    {"zero_point": 256, "high": 255})
        yield Probe("ADD int8 zero point 128", _one(Add(), inputs=2, zero=128), (code,) * 2, {"zero_point": 128})
    yield Probe("RELU scale 2^31", _one(Relu(), scale=2.0 ** 31))
    yield Probe("RELU scale 2^33", _one(Relu(), scale=2.0 ** 33), ("ethos-u.large-scale",) * 2)
    if variant.core in SMALL:
        yield Probe("SQUARED_DIFFERENCE int32 without scale",
                    _one(SquaredDifference(), DType.INT32, inputs=2, scale=None),
                    ("ethos-u.element-width",) * 3)


def _free(axis: int) -> Draw:
    def draw(sketch: Sketch) -> Node:
        value = sketch.value(SHAPE)
        value.shape_signature = tuple(-1 if i == axis else extent for i, extent in enumerate(SHAPE))
        return sketch.add(AveragePool2D(filter_height=2, filter_width=2), [value])
    return draw


@probe
def shapes(variant: Variant) -> Iterator[Probe]:
    """Free dimensions."""
    yield Probe("a free batch", _free(0))
    for axis in (1, 2, 3):
        yield Probe(f"dimension {axis} free", _free(axis), ("ethos-u.dynamic-shape",), {"axis": axis})


@probe
def swish(variant: Variant) -> Iterator[Probe]:
    """HARD_SWISH, on the 16-bit form of which the compiler stops."""
    yield Probe("HARD_SWISH int8", _one(HardSwish()))
    yield Probe("HARD_SWISH uint8", _one(HardSwish(), DType.UINT8, zero=128, out_zero=128))
