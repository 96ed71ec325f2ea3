"""Elementwise commands: one value of each operand makes one value of the output."""

from __future__ import annotations

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.features import FeatureMap, feature_map
from vitrify.runtimes.npusim.machine.memory import Memory
from vitrify.runtimes.npusim.machine.numerics import Values, leading_zeros, rescale, wrap32
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.work import Place, Work
from vitrify.runtimes.npusim.stream.commands import Elementwise, Rounding

_UNARY = (Elementwise.LRELU, Elementwise.ABS, Elementwise.CLZ)
_HEADROOM = {8: 20, 16: 15}
"""By how many bits an operand of 8 or 16 bits is widened before it is scaled."""
_LONGEST = 63


def operands(mode: int, registers: Registers, shape: tuple[int, int, int]) -> list[FeatureMap]:
    """The maps that a command reads."""
    first = feature_map(registers, "IFM", shape)
    if mode in _UNARY or registers.field("IFM2_BROADCAST", "scalar"):
        return [first]
    extents = tuple(1 if registers.field("IFM2_BROADCAST", axis) else extent
                    for axis, extent in zip(("height", "width", "depth"), shape, strict=True))
    return [first, feature_map(registers, "IFM2", (extents[0], extents[1], extents[2]))]


def elementwise(mode: int, registers: Registers, memory: Memory, shape: tuple[int, int, int]) -> Work:
    """Return what makes the scaled values of one command, and the bytes it read."""
    maps = operands(mode, registers, shape)
    first, held = maps[0], [one.read_as(memory, one.dtype) for one in maps]
    rounding = registers.field("OFM_PRECISION", "rounding")
    scaled = bool(registers.field("OFM_PRECISION", "global_scale"))

    def made(place: Place) -> Values:
        a = _part(held[0], place) - first.zero_point
        if mode in _UNARY:
            return _unary(mode, a, registers, rounding, scaled)
        if len(maps) == 1:
            b: Values = np.full((1, 1, 1), registers["IFM2_SCALAR"] - registers["IFM2_ZERO_POINT"], np.int64)
        else:
            b = _part(held[1], place) - maps[1].zero_point
        b = np.broadcast_to(b, a.shape)
        if registers.field("IFM2_BROADCAST", "reversed"):
            a, b = b, a
        if mode in (Elementwise.ADD, Elementwise.SUB):
            a, b = _operand_scales(a, b, first, registers)
        values = _combine(mode, a, b, rounding)
        if not scaled:
            return values
        scale, shift = registers.scaling("OFM_SCALE")
        # Of 32-bit operands only the shift takes effect.
        return rescale(values, 1 if first.bits == 32 else scale, shift, rounding)

    return Work(made, [one.touch(writes=False) for one in maps], held[0].size)


def _part(held: Values, place: Place) -> Values:
    """A part of an operand; of an extent that is one, the one."""
    some = tuple(slice(1) if extent == 1 else one for extent, one in zip(held.shape[:2], place, strict=True))
    return held[some].astype(np.int64)


def _unary(mode: int, a: Values, registers: Registers, rounding: int, scaled: bool) -> Values:
    if mode == Elementwise.CLZ:
        return leading_zeros(a)
    scale, shift = registers.scaling("OFM_SCALE")
    if mode == Elementwise.LRELU:
        return np.where(a < 0, rescale(a, scale, shift, rounding), a)
    return rescale(np.abs(a), scale, shift, rounding) if scaled else np.abs(a)


def _operand_scales(a: Values, b: Values, first: FeatureMap, registers: Registers) -> tuple[Values, Values]:
    """Bring both operands of a sum to one scale."""
    scale_a, shift_a = registers.scaling("OPA_SCALE")
    scale_b = registers.field("OPB_SCALE", "scale")
    which = registers.field("IFM_PRECISION", "scaled")
    if first.bits == 32 or (scale_a, scale_b, which) == (1, 1, 0):
        return a, b
    if which == 0:
        return a * (scale_a & 0xFFFF), b * scale_b
    if registers.field("IFM_PRECISION", "rounding") != Rounding.TFL:
        raise ModelError.of("npusim.not-modelled", "a scaled operand that is not rounded as TFLite does",
                            why="no compiler was seen to ask for it")
    room = _HEADROOM[first.bits]
    if which == 1:
        return rescale(a << room, scale_a, shift_a + room, Rounding.TFL), b << room - 1
    return a << room - 1, rescale(b << room, scale_a, shift_a + room, Rounding.TFL)


def _combine(mode: int, a: Values, b: Values, rounding: int) -> Values:
    if mode == Elementwise.MUL:
        return np.asarray(a * b)
    if mode == Elementwise.ADD:
        return np.asarray(a + b)
    if mode == Elementwise.SUB:
        return np.asarray(a - b)
    if mode == Elementwise.MIN:
        return np.minimum(a, b)
    if mode == Elementwise.MAX:
        return np.maximum(a, b)
    by = np.clip(b, 0, _LONGEST)
    return rescale(a, 1, by, rounding) if mode == Elementwise.SHR else wrap32(a << by)
