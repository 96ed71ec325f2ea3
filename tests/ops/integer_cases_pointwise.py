"""Random cases of elementwise operators."""

from __future__ import annotations

import numpy as np
from integer_draw import Draw, drawn

import vitrify.ops as ops
from vitrify.ir import DType, Operator, Quantization
from vitrify.ops import Activation

FUSED = (Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
BOTH = ("int8", "int16")


def _operands(draw: Draw) -> tuple:
    """Two inputs, some of the second constant."""
    first, second = draw.pair()
    a = draw.x(first, draw.affine())
    b = (draw.constant(draw.steps(second), draw.affine()) if draw.chance(0.3) else draw.x(second, draw.affine()))
    return a, b, *(float(t.quantization.scale[0]) for t in (a, b))


def _sum(draw: Draw, kind: type[Operator]) -> None:
    a, b, first, second = _operands(draw)
    op = kind(fused_activation_function=draw.among(FUSED), pot_scale_int16=False)
    draw.node(op, [a, b], draw.affine(max(first, second) * draw.scale(0.05, 20)))


@drawn("ADD", "int8", "int16", "uint8")
def _add(draw: Draw) -> None:
    _sum(draw, ops.Add)


@drawn("SUB", "int8", "int16", "uint8")
def _sub(draw: Draw) -> None:
    _sum(draw, ops.Sub)


def _power_sum(draw: Draw, kind: type[Operator]) -> None:
    first = second = draw.shape()      # LiteRT dies of an ADD of this kind that broadcasts
    power = draw.size(-1, -14)
    shifts = draw.among([(0, 0), (0, draw.size(4)), (draw.size(4), 0)])
    a, b = (draw.x(shape, draw.affine(2.0 ** (power - shift)))
            for shape, shift in zip((first, second), shifts, strict=True))
    op = kind(fused_activation_function=draw.among(FUSED), pot_scale_int16=True)
    draw.node(op, [a, b], draw.affine(2.0**power))


@drawn("ADD (powers of two)", "int16")
def _add_powers(draw: Draw) -> None:
    _power_sum(draw, ops.Add)


@drawn("SUB (powers of two)", "int16")
def _sub_powers(draw: Draw) -> None:
    _power_sum(draw, ops.Sub)


@drawn("MUL", "int8", "int16", "uint8")
def _mul(draw: Draw) -> None:
    a, b, first, second = _operands(draw)
    scale = first * second * np.iinfo(draw.dtype).max * draw.scale(0.02, 5)
    draw.node(ops.Mul(fused_activation_function=draw.among(FUSED)), [a, b], draw.affine(scale))


@drawn("DIV", "int8", "uint8", "int16")
def _div(draw: Draw) -> None:
    """Quotients that are not too small: LiteRT gives anything where it shifts by more than 31 bits."""
    info = np.iinfo(draw.dtype)
    first, second = draw.pair()
    q, r = draw.affine(), draw.affine()
    above, below = (int(side.zero_point[0]) for side in (q, r))
    divisors = draw.steps(second)
    divisors[divisors == below] = below + 1 if below < info.max else below - 1
    ratio = draw.scale(0.5, 200) * (64 if draw.is_wide else 1)
    bits = int(np.abs(divisors.astype(int) - below).max()).bit_length()
    least = 2 ** max(0, bits - 1 - int(np.frexp(ratio)[1]))
    up = info.max - above >= least
    steps = draw.steps(first)
    steps[np.abs(steps.astype(int) - above) < least] = above + least if up else above - least
    op = ops.Div(fused_activation_function=draw.among(FUSED))
    draw.node(op, [draw.x(first, q, steps), draw.x(second, r, divisors)],
              draw.affine(float(q.scale[0] / r.scale[0]) / ratio))


@drawn("SQUARED_DIFFERENCE", "int8")
def _squared_difference(draw: Draw) -> None:
    a, b, first, second = _operands(draw)
    scale = max(first, second) ** 2 * 128 * draw.scale(0.02, 5)
    draw.node(ops.SquaredDifference(), [a, b], draw.affine(scale))


def _shared(draw: Draw, op: Operator) -> None:
    first, second = draw.pair()
    q = draw.affine()
    draw.node(op, [draw.x(first, q), draw.x(second, q)], q)


@drawn("MAXIMUM", *BOTH)
def _maximum(draw: Draw) -> None:
    _shared(draw, ops.Maximum())


@drawn("MINIMUM", *BOTH)
def _minimum(draw: Draw) -> None:
    _shared(draw, ops.Minimum())


def _comparison(name: str, kind: type[Operator]) -> None:
    @drawn(name, "int8", "uint8", "int16")
    def compare(draw: Draw) -> None:
        first, second = draw.pair()
        q = draw.affine(draw.scale(1e-3, 0.9))
        other = q if draw.chance(0.4) else draw.affine(draw.scale(1e-3, 0.9))
        draw.node(kind(), [draw.x(first, q), draw.x(second, other)])


for _name, _kind in {"LESS": ops.Less, "LESS_EQUAL": ops.LessEqual, "GREATER": ops.Greater,
                     "GREATER_EQUAL": ops.GreaterEqual, "EQUAL": ops.Equal, "NOT_EQUAL": ops.NotEqual}.items():
    _comparison(_name, _kind)


def _unary(name: str, kind: type[Operator], *dtypes: str, output: tuple[float, float] = (0.05, 20)) -> None:
    @drawn(name, *dtypes)
    def unary(draw: Draw) -> None:
        q = draw.affine()
        draw.node(kind(), [draw.x(draw.shape(), q)], draw.affine(float(q.scale[0]) * draw.scale(*output)))


_unary("RELU", ops.Relu, "int8", "int16", "uint8")
_unary("RELU6", ops.Relu6, "int8", "int16", "uint8")
_unary("RELU_N1_TO_1", ops.ReluN1To1, "int8")
_unary("RELU_0_TO_1", ops.Relu0To1, "int8")
_unary("ABS", ops.Abs, *BOTH)
_unary("HARD_SWISH", ops.HardSwish, "int8", "uint8", output=(0.02, 5))


@drawn("LEAKY_RELU", "int8", "int16", "uint8")
def _leaky_relu(draw: Draw) -> None:
    q = draw.affine()
    op = ops.LeakyRelu(alpha=float(draw.rng.uniform(-1, 1)) if draw.chance(0.7) else draw.scale(1e-3, 4))
    draw.node(op, [draw.x(draw.shape(), q)], draw.affine(float(q.scale[0]) * draw.scale(0.05, 20)))


@drawn("PRELU", "int8", "uint8")
def _prelu(draw: Draw) -> None:
    q, shape = draw.affine(), draw.shape()
    narrow = tuple(1 if draw.chance(0.4) else extent for extent in shape)
    alpha = draw.constant(draw.steps(narrow), draw.affine(draw.scale(1e-3, 0.03)))
    draw.node(ops.Prelu(), [draw.x(shape, q), alpha], draw.affine(float(q.scale[0]) * draw.scale(0.05, 20)))


def _table(name: str, make: type[Operator] | Operator, *dtypes: str, reach: tuple[float, float] = (0.5, 12),
           output: tuple[float, float] | None = None, fixed: dict[str, tuple[float, int]] | None = None) -> None:
    """A function by table: every value of the type is tried."""
    @drawn(name, *dtypes)
    def table(draw: Draw) -> None:
        info = np.iinfo(draw.dtype)
        q = draw.affine(draw.scale(*reach) / info.max)
        if fixed is not None:
            out = Quantization.per_tensor(*fixed[draw.dtype.name])
        else:
            out = draw.affine((draw.scale(*output) if output else draw.scale(0.3, 15)) / info.max)
        steps = np.arange(info.min, info.max + 1).astype(draw.dtype)
        draw.node(make if isinstance(make, Operator) else make(), [draw.x(steps.shape, q, steps)], out)


_table("LOGISTIC", ops.Logistic, "int8", "int16", "uint8",
       fixed={"int8": (1 / 256, -128), "int16": (1 / 32768, 0), "uint8": (1 / 256, 0)})
_table("TANH", ops.Tanh, "int8", "int16", "uint8",
       fixed={"int8": (1 / 128, 0), "int16": (1 / 32768, 0), "uint8": (1 / 128, 128)})
_table("ELU", ops.Elu, "int8")
_table("GELU", ops.Gelu(), *BOTH)
_table("GELU (tanh)", ops.Gelu(approximate=True), *BOTH)
_table("EXP", ops.Exp, "int8", "int16", output=(0.5, 200))
_table("LOG", ops.Log, "int8", "int16", output=(2, 12))


def _powers(name: str, op: Operator) -> None:
    @drawn(f"{name} (powers of two)", "int16")
    def powers(draw: Draw) -> None:
        steps = np.arange(-32768, 32768).astype(np.int16)
        x = draw.x(steps.shape, draw.affine(2.0 ** -draw.size(15, 8)), steps)
        draw.node(op, [x], Quantization.per_tensor(1 / 32768, 0))


_powers("LOGISTIC", ops.Logistic())
_powers("TANH", ops.Tanh())


@drawn("RSQRT", *BOTH)
def _rsqrt(draw: Draw) -> None:
    info = np.iinfo(draw.dtype)
    zero = 0 if draw.is_wide else draw.size(40, info.min)
    q = draw.affine(draw.scale(1e-4, 1), zero)
    steps = np.arange(zero, info.max + 1).astype(draw.dtype)
    top = 1 / np.sqrt(float(q.scale[0]) * (1 if draw.chance(0.5) else 20))
    draw.node(ops.Rsqrt(), [draw.x(steps.shape, q, steps)], draw.affine(top / info.max))


@drawn("SQRT", *BOTH)
def _sqrt(draw: Draw) -> None:
    info = np.iinfo(draw.dtype)
    zero = 0 if draw.is_wide else draw.size(40, info.min)
    q = draw.affine(draw.scale(1e-4, 1), zero)
    steps = np.arange(zero, info.max + 1).astype(draw.dtype)
    top = np.sqrt(float(q.scale[0]) * (info.max - zero)) * draw.scale(0.3, 3)
    draw.node(ops.Sqrt(), [draw.x(steps.shape, q, steps)], draw.affine(top / info.max))


@drawn("SELECT_V2", *BOTH)
def _select(draw: Draw) -> None:
    first, second = draw.pair()
    q = draw.affine()
    condition = draw.x(first, None, draw.rng.integers(0, 2, first).astype(np.bool_))
    draw.node(ops.SelectV2(), [condition, draw.x(first, q), draw.x(second, q)], q)


def _reals(draw: Draw, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Real values over some steps, many steps, or halfway between two and the floats beside."""
    if draw.chance(0.6):
        return draw.rng.normal(0, scale * draw.scale(1, 1e5), shape).astype(np.float32)
    halves = np.float32(scale) * (draw.rng.integers(-200, 200, shape).astype(np.float32) + np.float32(0.5))
    return np.asarray(np.nextafter(halves, halves * np.float32(draw.among((-1, 1, 4)))), np.float32)


def _quantize(name: str, *pair: tuple[str, str]) -> None:
    for source, wanted in pair:
        @drawn(f"{name} to {wanted} from", source)
        def quantize(draw: Draw, wanted: str = wanted) -> None:
            shape, out = draw.shape(), Draw(draw.rng, np.dtype(wanted)).affine()
            scale = float(out.scale[0])
            if draw.dtype.kind == "f":
                x = draw.x(shape, None, _reals(draw, shape, scale))
            else:
                x = draw.x(shape, draw.affine(scale * draw.scale(0.01, 30)))
            draw.node(ops.Quantize(), [x], out, dtypes=[DType.of(np.dtype(wanted))])


_quantize("QUANTIZE", ("float32", "int8"), ("float32", "uint8"), ("float32", "int16"), ("int8", "int8"),
          ("int8", "uint8"), ("uint8", "int8"), ("int16", "int16"), ("int16", "int8"), ("int16", "int32"),
          ("int32", "int8"), ("int32", "int16"))


@drawn("DEQUANTIZE", "int8", "uint8", "int16")
def _dequantize(draw: Draw) -> None:
    draw.node(ops.Dequantize(), [draw.x(draw.shape(), draw.affine())], None)
