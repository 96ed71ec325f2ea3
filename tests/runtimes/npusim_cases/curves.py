"""Operators of one operand that bend it: tables, native functions, softmax, requantization."""

from __future__ import annotations

from collections.abc import Iterator

from npusim_cases.pen import INT8, INT16, Case, Draw, Pen, both, table
from vitrify import ops
from vitrify.ir import DType, Tensor
from vitrify.ops import Operator

Shape = tuple[int, ...]
SHAPES: dict[str, Shape] = {"image": (1, 9, 7, 11), "row": (1, 37), "line": (41,), "rank 3": (3, 6, 9)}


def curve(op: Operator, shape: Shape = SHAPES["image"], scale: float = 0.05, zero: int = -3,
          result: tuple[float, int] | None = None, fine: float = 1 / 166) -> Draw:
    """``result``: scale and zero point of the result, by default about the input's."""
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape, scale=scale * fine if pen.wide else scale, zero=zero)
        found = result or (scale * 0.8, 7)
        return pen.op(op, [x], found[0] * fine if pen.wide else found[0], found[1])
    return draw


def fixed(op: Operator, shape: Shape, scale: float, result: tuple[float, int]) -> Draw:
    """LOGISTIC and TANH: the result's scale is given by the operator; in 16 bits 1/32768."""
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape, scale=scale / 256 if pen.wide else scale)
        return pen.op(op, [x], *((1 / 32768, 0) if pen.wide else result))
    return draw


def softmax(shape: Shape, scale: float = 0.1, beta: float = 1.0) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape, scale=scale / 250 if pen.wide else scale)
        return pen.op(ops.Softmax(beta=beta), [x], *((1 / 32768, 0) if pen.wide else (1 / 256, -128)))
    return draw


def prelu(alpha: Shape, computed: bool = False, scales: tuple[float, float, float] = (0.05, 0.01, 0.04),
          positive: bool = False) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, 7, 6, 10, scale=scales[0])
        make = pen.x if computed else pen.values
        slope = make(*alpha, scale=scales[1], zero=-128 if positive else 2)
        return pen.op(ops.Prelu(), [x, slope], scales[2])
    return draw


def requantized(source: DType, target: DType, first: tuple[float, int], second: tuple[float, int]) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, 9, 7, 11, scale=first[0], zero=first[1], dtype=source)
        return pen.op(ops.Quantize(), [x], *second, dtype=target)
    return draw


def same(op: Operator, zero: int = -3, scale: float = 0.05) -> Draw:
    """An operator that keeps scale and zero point."""
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, 9, 7, 11, scale=scale / 166 if pen.wide else scale, zero=zero)
        return pen.op(op, [x], like=x)
    return draw


@table
def bounded() -> Iterator[Case]:
    """Sigmoid and tanh, in 8 bits by tables and in 16 by native functions."""
    for operator, op, result in (("LOGISTIC", ops.Logistic(), (1 / 256, -128)), ("TANH", ops.Tanh(), (1 / 128, 0))):
        for name, shape in SHAPES.items():
            yield from both(operator, name, fixed(op, shape, 0.05, result))
        for scale in (0.002, 0.0117, 0.03125, 0.125, 0.25, 0.31):
            yield from both(operator, f"scale {scale:g}", fixed(op, (1, 16, 16, 8), scale, result))


@table
def tables() -> Iterator[Case]:
    """Operators that the compiler makes tables of."""
    plain: dict[str, tuple[Operator, bool]] = {
        "HARD_SWISH": (ops.HardSwish(), False), "GELU": (ops.Gelu(), False), "ELU": (ops.Elu(), False),
        "RELU": (ops.Relu(), True), "RELU6": (ops.Relu6(), True), "RELU_N1_TO_1": (ops.ReluN1To1(), False),
        "RELU_0_TO_1": (ops.Relu0To1(), False), "ABS": (ops.Abs(), True),
        "LEAKY_RELU": (ops.LeakyRelu(alpha=0.1), True),
        "NEG": (ops.Neg(), False)}
    for operator, (op, wide) in plain.items():
        makes = both if wide else lambda *all: iter([Case(*all)])
        yield from makes(operator, "image", curve(op))
        yield from makes(operator, "fine result", curve(op, result=(0.01, -20)))
        yield from makes(operator, "coarse result", curve(op, result=(0.3, 1)))
        yield from makes(operator, "row", curve(op, SHAPES["row"], 0.021, 100))
        yield from makes(operator, "one scale", same(op))
    yield Case("GELU", "approximate", curve(ops.Gelu(approximate=True)))
    for alpha in (0.01, 0.3, 0.99, 1.5, -0.5, 0.0):
        yield from both("LEAKY_RELU", f"alpha {alpha:g}", curve(ops.LeakyRelu(alpha=alpha)))
        yield from both("LEAKY_RELU", f"one scale, alpha {alpha:g}", same(ops.LeakyRelu(alpha=alpha)))
    for operator, op in (("EXP", ops.Exp()), ("RSQRT", ops.Rsqrt()), ("LOG", ops.Log())):
        zero, positive = 0 if operator == "EXP" else -128, operator != "EXP"
        yield from both(operator, "image", curve(op, zero=zero, scale=0.02, result=(0.03, -128)), positive=positive)
        yield from both(operator, "coarse", curve(op, zero=zero, scale=0.005, result=(0.1, -100)), positive=positive)


@table
def slopes() -> Iterator[Case]:
    """PRELU by every form of its slope."""
    for name, alpha in {"depth": (1, 1, 10), "one value": (1, 1, 1), "whole": (7, 6, 10)}.items():
        yield Case("PRELU", name, prelu(alpha))
        yield Case("PRELU", f"computed {name}", prelu(alpha, computed=True))
    yield Case("PRELU", "no negative slope", prelu((1, 1, 10), positive=True))
    yield Case("PRELU", "one scale", prelu((1, 1, 10), scales=(0.05, 0.01, 0.05)))
    yield Case("PRELU", "fine result", prelu((1, 1, 10), scales=(0.05, 0.01, 0.004)))


@table
def shares() -> Iterator[Case]:
    """Softmax."""
    for name, shape in {"row": (1, 21), "ten rows": (10, 17), "image": (1, 5, 4, 9), "two classes": (6, 2),
                        "one class": (4, 1), "many classes": (1, 300), "rank 3": (2, 3, 12)}.items():
        yield from both("SOFTMAX", name, softmax(shape))
    for scale in (0.01, 0.4, 1.5):
        yield from both("SOFTMAX", f"scale {scale:g}", softmax((4, 20), scale))
    yield Case("SOFTMAX", "beta 0.5", softmax((4, 20), beta=0.5))


@table
def requantizing() -> Iterator[Case]:
    """Between scales and widths."""
    fine, coarse = (3e-4, 0), (0.05, -3)
    yield Case("QUANTIZE", "int8 finer", requantized(INT8, INT8, coarse, (0.02, 9)))
    yield Case("QUANTIZE", "int8 coarser", requantized(INT8, INT8, coarse, (0.13, -50)))
    yield Case("QUANTIZE", "int8 halved", requantized(INT8, INT8, (0.0625, 0), (0.125, 0)))
    yield Case("QUANTIZE", "int8 other zero point", requantized(INT8, INT8, coarse, (0.05, 40)))
    yield Case("QUANTIZE", "int8 to int16", requantized(INT8, INT16, coarse, fine))
    yield Case("QUANTIZE", "int16 to int8", requantized(INT16, INT8, fine, coarse))
    yield Case("QUANTIZE", "int16 halved to int8", requantized(INT16, INT8, (2.0 ** -12, 0), (2.0 ** -4, 0)))
    yield Case("QUANTIZE", "int16 finer", requantized(INT16, INT16, fine, (1e-4, 0)))
    yield Case("QUANTIZE", "int16 coarser", requantized(INT16, INT16, fine, (7e-4, 0)))
    yield Case("QUANTIZE", "int16 halved", requantized(INT16, INT16, (2.0 ** -12, 0), (2.0 ** -11, 0)))
    yield Case("QUANTIZE", "uint8 to int8", requantized(DType.UINT8, INT8, (0.05, 128), (0.05, 0)))
    yield Case("QUANTIZE", "int8 to uint8", requantized(INT8, DType.UINT8, coarse, (0.04, 100)))
