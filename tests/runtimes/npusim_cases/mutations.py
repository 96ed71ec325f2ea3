"""Numeric rules of the functional model, each with how it is altered and a case that tells."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from vitrify.ops.reference.integer import tables
from vitrify.runtimes.npusim.machine import (
    activation,
    convolving,
    elementwise,
    features,
    numerics,
    pooling,
    windows,
)


class Mutation(NamedTuple):
    """``old`` stands in the function's source once, and becomes ``new``; ``case`` then differs."""

    rule: str
    function: Callable[..., Any]
    old: str
    new: str
    case: str = ""
    core: str = "Regor"

    def code(self) -> Any:
        """The altered function's code."""
        lines = textwrap.dedent(inspect.getsource(self.function)).splitlines()
        source = "\n".join(lines[next(n for n, line in enumerate(lines) if line.startswith("def ")):])
        assert source.count(self.old) == 1, f"{self.rule}: {self.old!r} stands {source.count(self.old)} times"
        space: dict[str, Any] = {}
        exec("from __future__ import annotations\n" + source.replace(self.old, self.new), self.function.__globals__,
             space)
        return space[self.function.__name__].__code__

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Alter the function for as long as the patch lasts, wherever it is called."""
        patch.setattr(self.function, "__code__", self.code())
        features.pieces.cache_clear()


MUTATIONS = (
    Mutation("TFLite's rounding is in two steps", numerics.twice,
             "half_away(half_up(product, first), shift - first)", "half_up(product, shift)",
             "CONV_2D 1x1"),
    Mutation("the first step has 31 bits", numerics.twice, "np.minimum(shift, _FIRST_SHIFT)", "np.minimum(shift, 30)",
             "CONV_2D 1x1"),
    Mutation("the first step rounds", numerics.twice, "half_up(product, first)", "(product >> first)",
             "CONV_2D 1x1"),
    Mutation("the first step rounds half up", numerics.twice, "half_up(product, first)", "half_away(product, first)",
             "MUL fine result"),
    Mutation("the second step rounds half away from zero", numerics.twice, "return half_away", "return half_up",
             "CONV_2D 1x1"),
    Mutation("natural rounding is half up", numerics.rescale, "_RULES[Rounding(rounding)]",
             "half_away if rounding == Rounding.NATURAL else _RULES[Rounding(rounding)]",
             "CONV_2D halves int16"),
    Mutation("natural rounding rounds", numerics.half_up, "one << np.maximum(shift - 1, 0)", "0 * one",
             "CONV_2D 1x1 int16"),
    Mutation("natural rounding is in one step", numerics.rescale, "_RULES[Rounding(rounding)]",
             "twice if rounding == Rounding.NATURAL else _RULES[Rounding(rounding)]",
             "SUM h"),
    Mutation("the rounding is that of the command", numerics.rescale, "_RULES[Rounding(rounding)]", "half_up",
             "CONV_2D 1x1"),
    Mutation("an average rounds half away from zero", numerics.divide, "np.sign(total) * ((np.abs(total) + count // 2) "
             "// count)", "(2 * total + count) // (2 * count)",
             "AVERAGE_POOL_2D 2x2"),
    Mutation("an average rounds", numerics.divide, "+ count // 2", "",
             "AVERAGE_POOL_2D 2x2"),
    Mutation("an average is of the taps within the input", pooling._average, "divide(total, count)",
             "divide(total, len(over.taps) * np.ones_like(total))",
             "AVERAGE_POOL_2D 2x2"),
    Mutation("a largest value leaves padding out", pooling.pooling, "_LEAST if largest else 0", "0",
             "MAX_POOL_2D 2x2"),
    Mutation("a sum over depth is scaled once", pooling.pooling, "total.sum(axis=2, keepdims=True)",
             "total[:, :, :1]",
             "BATCH_MATMUL plain"),
    Mutation("a shift to the right rounds", elementwise._combine, "rescale(a, 1, by, rounding)", "(a >> by)",
             "SOFTMAX row"),
    Mutation("padding is zero after the zero point", windows.padded_input, "x.shape[2]), fill, kind)",
             "x.shape[2]), fill - source.zero_point, kind)", "CONV_2D 3x3"),
    Mutation("values lose their zero point", windows.padded_input, "kind(source.zero_point)", "kind(0)",
             "DEPTHWISE_CONV_2D 3x3"),
    Mutation("the result has a zero point", activation.finish, "values = values + ofm.zero_point", "pass",
             "CONV_2D 1x1"),
    Mutation("raw 32-bit results have no zero point", activation.finish, "if ofm.bits < 32 or "
             "registers.raw(\"ACTIVATION\"):", "if True:",
             "SOFTMAX row", "legacy"),
    Mutation("raw 32-bit results are not bounded", activation.finish, "if ofm.bits < 32 or function >= _FIRST_TABLE:",
             "if True:",
             "SQUARED_DIFFERENCE equal"),
    Mutation("bounds come after the zero point", activation.finish, "np.clip(values, registers[\"ACTIVATION_MIN\"], "
             "registers[\"ACTIVATION_MAX\"])", "np.clip(values - ofm.zero_point, registers[\"ACTIVATION_MIN\"], "
             "registers[\"ACTIVATION_MAX\"]) + ofm.zero_point",
             "CONV_2D 3x3"),
    Mutation("results are bounded", activation.finish, "np.clip(values, registers[\"ACTIVATION_MIN\"], "
             "registers[\"ACTIVATION_MAX\"])", "values",
             "CONV_2D relu"),
    Mutation("sigmoid and tanh come before the bounds", activation.finish, "if function in _NATIVE:",
             "if function in _NATIVE and (values := np.clip(values, registers[\"ACTIVATION_MIN\"], "
             "registers[\"ACTIVATION_MAX\"])) is not None:",
             "LOGISTIC image int16"),
    Mutation("tables of 8 bits are signed", activation._look_up, "low = -128 if signed else 0", "low = 0",
             "LOGISTIC image"),
    Mutation("between entries of 16 bits lies a line", activation._look_up, "(slope * (values & 0x7F) + 64 >> 7)", "0",
             "SOFTMAX row int16"),
    Mutation("the line rounds", activation._look_up, "+ 64 >> 7", ">> 7",
             "SOFTMAX image int16"),
    Mutation("the line starts at the entry below", activation._look_up, "values & 0x7F", "(values & 0x7F) - 64",
             "SOFTMAX row int16"),
    Mutation("sigmoid rounds", tables.sigmoid_16, "value + 512", "value",
             "LOGISTIC image int16"),
    Mutation("sigmoid of negatives rounds the other way", tables.sigmoid_16, "- value + 511", "- value + 512",
             "LOGISTIC image int16"),
    Mutation("tanh rounds", tables.tanh_16, "value - half + 128", "value - half",
             "TANH image int16"),
    Mutation("tanh of negatives rounds the other way", tables.tanh_16, "half - value + 127", "half - value + 128",
             "TANH image int16"),
    Mutation("the scaled operand is widened by 20 or 15 bits", elementwise._operand_scales,
             "room = _HEADROOM[first.bits]", "room = _HEADROOM[first.bits] // 2",
             "ADD equal"),
    Mutation("the scaled operand is rounded as TFLite does", elementwise._operand_scales,
             "return rescale(a << room, scale_a, shift_a + room, Rounding.TFL), b << room - 1",
             "return rescale(a << room, scale_a, shift_a + room, Rounding.NATURAL), b << room - 1",
             "ADD second larger"),
    Mutation("the other scaled operand is rounded as TFLite does", elementwise._operand_scales,
             "return a << room - 1, rescale(b << room, scale_a, shift_a + room, Rounding.TFL)",
             "return a << room - 1, rescale(b << room, scale_a, shift_a + room, Rounding.NATURAL)",
             "ADD equal"),
    Mutation("the scaled operand is rounded", elementwise._operand_scales,
             "return rescale(a << room, scale_a, shift_a + room, Rounding.TFL), b << room - 1",
             "return rescale(a << room, scale_a, shift_a + room, Rounding.TRUNCATE), b << room - 1",
             "ADD second larger"),
    Mutation("equal operands have 16-bit scales", elementwise._operand_scales,
             "return a * (scale_a & 0xFFFF), b * scale_b", "return a, b",
             "ADD equal scales int16"),
    Mutation("products of 32 bits are only shifted", elementwise.elementwise, "1 if first.bits == 32 else scale",
             "scale",
             "SQUARED_DIFFERENCE equal", "legacy"),
    Mutation("operands are swapped before they are scaled", elementwise.elementwise, "a, b = b, a", "pass",
             "SUB first depth"),
    Mutation("a scalar loses its zero point", elementwise.elementwise,
             "registers[\"IFM2_SCALAR\"] - registers[\"IFM2_ZERO_POINT\"]", "registers[\"IFM2_SCALAR\"]",
             "ADD constant one value"),
    Mutation("the second operand loses its zero point", elementwise.elementwise,
             "_part(held[1], place) - maps[1].zero_point", "_part(held[1], place)",
             "ADD equal"),
    Mutation("only negatives are scaled in a leaky slope", elementwise._unary, "np.where(a < 0, "
             "rescale(a, scale, shift, rounding), a)", "rescale(a, scale, shift, rounding)",
             "LEAKY_RELU one scale int16", "legacy"),
    Mutation("absolute values are scaled", elementwise._unary, "rescale(np.abs(a), scale, shift, rounding) if scaled "
             "else np.abs(a)", "np.abs(a)",
             "ABS image int16"),
    Mutation("the bias comes before the scale", convolving.convolving, "total = total + found.bias",
             "total = total + found.bias // 2",
             "CONV_2D 1x1"),
    Mutation("each channel has a scale of its own", convolving.convolving, "rescale(total, found.scale, found.shift, "
             "rounding)", "rescale(total, found.scale[0], found.shift[0], rounding)",
             "CONV_2D 1x1"),
    Mutation("nearest upscaling repeats", windows.padded_input, "x.repeat(2, 0).repeat(2, 1)",
             "np.tile(x, (2, 2, 1))",
             "RESIZE_NEAREST_NEIGHBOR x2"),
    Mutation("zeros are put behind values", windows.padded_input, "spread[::2, ::2] = x", "spread[1::2, 1::2] = x",
             "TRANSPOSE_CONV 3x3 stride 2"),
    Mutation("bricks hold 16 channels", features._of_tile, "_BRICK * size, layout.stride_c, size)",
             "_BRICK * size // 2, layout.stride_c, size)", "chain rows"),
)
UNREACHED = ("a shift to the left wraps at 32 bits", "zero has 32 leading zeros", "toward-zero rounding (TRUNCATE)")
"""Rules as they are documented that no compiled case reaches: the shift of a softmax never overflows, its sum is never
zero, and no compiler asks for the third rounding."""
