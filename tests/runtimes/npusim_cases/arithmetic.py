"""Operators of two operands: every way in which one is broadcast, and every relation of the scales."""

from __future__ import annotations

from collections.abc import Iterator

from npusim_cases.pen import INT16, Case, Draw, Pen, both, table
from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ops import Activation

Shape = tuple[int, ...]
_FINE = 166.0
WHOLE: Shape = (1, 7, 6, 10)
SHAPES: dict[str, tuple[Shape, Shape]] = {
    "equal": (WHOLE, WHOLE), "row": (WHOLE, (1, 1, 6, 10)), "column": (WHOLE, (1, 7, 1, 10)),
    "depth": (WHOLE, (1, 1, 1, 10)), "plane": (WHOLE, (1, 7, 6, 1)), "height": (WHOLE, (1, 7, 1, 1)),
    "width": (WHOLE, (1, 1, 6, 1)), "one value": (WHOLE, (1, 1, 1, 1)), "first depth": ((1, 1, 1, 10), WHOLE),
    "first plane": ((1, 7, 6, 1), WHOLE), "first row": ((1, 1, 6, 10), WHOLE), "lower rank": (WHOLE, (10,)),
    "both": ((1, 7, 1, 10), (1, 1, 6, 10)), "both other": ((1, 7, 6, 1), (1, 1, 1, 10)), "rank 2": ((9, 14), (9, 14)),
    "rank 1": ((23,), (23,)), "rank 3": ((5, 6, 7), (5, 6, 7)), "rank 3 row": ((5, 6, 7), (1, 6, 7))}
SCALES: dict[str, tuple[float, float, float]] = {
    "first larger": (0.07, 0.031, 0.09), "second larger": (0.031, 0.07, 0.09), "equal scales": (0.05, 0.05, 0.08),
    "one scale": (0.05, 0.05, 0.05), "far apart": (0.9, 0.004, 0.8), "far apart the other way": (0.004, 0.9, 0.8),
    "fine result": (0.05, 0.03, 0.004), "coarse result": (0.05, 0.03, 0.9), "powers of two": (0.0625, 0.03125, 0.125),
    "equal powers of two": (0.0625, 0.0625, 0.0625), "halves": (0.0625, 0.0625, 0.125)}
EXACT = {"equal powers of two": (0.0625, 0.0625, 0.0625), "twice": (0.125, 0.0625, 0.125),
         "half": (0.0625, 0.125, 0.125)}
"""As TFLite's kernel takes them: one operand has the scale of the result."""
SUMS = {"ADD": ops.Add, "SUB": ops.Sub, "MUL": ops.Mul}


def two(kind: type[ops.Operator], shapes: tuple[Shape, Shape], scales: tuple[float, float, float] = (0.07, 0.031, 0.09),
        activation: Activation | None = None, zeros: tuple[int, int, int] = (5, -9, 3), exact: bool = False,
        place: int | None = None) -> Draw:
    """``place``: which operand is a constant. ``exact``: 16 bits with scales as they are in 8."""
    def draw(pen: Pen) -> Tensor:
        by = 1 / 256 if exact else 1 / _FINE
        a, b, c = (scale * by if pen.wide else scale for scale in scales)
        operands = [pen.values(*shape, scale=scale, zero=zero) if place == number else
                    pen.x(*shape, scale=scale, zero=zero)
                    for number, (shape, scale, zero) in enumerate(zip(shapes, (a, b), zeros, strict=False))]
        options = {} if activation is None else {"fused_activation_function": activation}
        if kind in (ops.Add, ops.Sub) and pen.wide and not exact:
            options["pot_scale_int16"] = False
        if kind is ops.Mul and pen.wide:
            c = a * b * 2e4
        return pen.op(kind(**options), operands, c, zeros[2])
    return draw


def extreme(kind: type[ops.Operator], shapes: tuple[Shape, Shape], place: int | None = None) -> Draw:
    """MAXIMUM and MINIMUM: one scale throughout."""
    def draw(pen: Pen) -> Tensor:
        operands = [pen.values(*shape, zero=4) if place == number else pen.x(*shape, zero=4)
                    for number, shape in enumerate(shapes)]
        return pen.op(kind(), operands, like=operands[0])
    return draw


def squared(shapes: tuple[Shape, Shape], scales: tuple[float, float, float]) -> Draw:
    return two(ops.SquaredDifference, shapes, scales)


@table
def sums() -> Iterator[Case]:
    """Sums and products."""
    for operator, kind in SUMS.items():
        for name, shapes in SHAPES.items():
            yield from both(operator, name, two(kind, shapes))
        for name, scales in SCALES.items():
            yield from both(operator, name, two(kind, SHAPES["equal"], scales))
            if operator != "MUL":
                yield from both(operator, f"depth, {name}", two(kind, SHAPES["depth"], scales))
                yield from both(operator, f"first depth, {name}", two(kind, SHAPES["first depth"], scales))
        for activation in (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1):
            yield from both(operator, activation.name.lower(), two(kind, SHAPES["equal"], (0.07, 0.031, 0.05),
                                                                   activation))
        for name in ("equal", "depth", "one value", "row"):
            yield from both(operator, f"constant {name}", two(kind, SHAPES[name], place=1))
        yield from both(operator, "constant first", two(kind, SHAPES["first depth"], place=0))
        yield Case(operator, "zero points at the ends", two(kind, SHAPES["equal"], zeros=(-128, 127, -128)))
        yield Case(operator, "no zero points", two(kind, SHAPES["equal"], zeros=(0, 0, 0)))


@table
def exact_scales() -> Iterator[Case]:
    """Sums in 16 bits of scales that are powers of two, which TFLite computes by shifts alone."""
    for operator, kind in (("ADD", ops.Add), ("SUB", ops.Sub)):
        for name in ("equal powers of two", "twice", "half"):
            yield Case(operator, f"{name} by shifts", two(kind, SHAPES["equal"], EXACT[name], exact=True), INT16)


@table
def others() -> Iterator[Case]:
    """Extremes and squared differences."""
    for operator, kind in (("MAXIMUM", ops.Maximum), ("MINIMUM", ops.Minimum)):
        for name in ("equal", "row", "column", "depth", "plane", "one value", "first depth", "both", "rank 2"):
            yield from both(operator, name, extreme(kind, SHAPES[name]))
        yield from both(operator, "constant one value", extreme(kind, SHAPES["one value"], place=1))
    for name in ("equal", "depth", "plane", "one value"):
        yield Case("SQUARED_DIFFERENCE", name, squared(SHAPES[name], (0.05, 0.05, 0.4)))
    for name in ("first larger", "equal scales", "fine result", "coarse result"):
        yield Case("SQUARED_DIFFERENCE", name, squared(SHAPES["equal"], SCALES[name]))
