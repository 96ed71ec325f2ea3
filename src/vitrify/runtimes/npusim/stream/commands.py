"""Every command of the Ethos-U55 and U65: its code, the fields of its word, and what they may hold.

Source of codes and fields: the register tables that come with Vela 5.2.0 (``ethos_u55_regs``) and its command stream
writer; the Linux kernel's ``drivers/accel/ethosu`` reads the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple


class Pooling(IntEnum):
    """What a pooling command computes."""

    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2


class Elementwise(IntEnum):
    """What an elementwise command computes."""

    MUL = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    LRELU = 5
    ABS = 6
    CLZ = 7
    SHR = 8
    SHL = 9


class Rounding(IntEnum):
    """How a scaled value is rounded: as TFLite does (twice), toward zero, or half up."""

    TFL = 0
    TRUNCATE = 1
    NATURAL = 2


class Upscale(IntEnum):
    """What is done to an input before the kernel: each value twice in both directions, or zeros in between."""

    NONE = 0
    NEAREST = 1
    ZEROS = 2


class Field(NamedTuple):
    """Bits ``low`` to ``low + width - 1`` of a command's value; ``allowed`` empty means any."""

    name: str
    low: int
    width: int
    signed: bool = False
    allowed: frozenset[int] = frozenset()

    def of(self, value: int) -> int:
        """Return the field's content in ``value``."""
        found = value >> self.low & (1 << self.width) - 1
        return found - (1 << self.width) if self.signed and found >> self.width - 1 else found


class Spec(NamedTuple):
    """One command: ``wide`` ones carry 32 bits more, which are the low half of their value.

    ``used`` are the bits that fields cover; any other that is set is an error.
    """

    name: str
    code: int
    wide: bool
    fields: tuple[Field, ...]

    @property
    def used(self) -> int:
        """The bits of the value that mean something."""
        bits = 0
        for field in self.fields:
            bits |= (1 << field.width) - 1 << field.low
        return bits

    @property
    def acts(self) -> bool:
        """True for a command that does something at once; the others set a register."""
        return not self.wide and self.code < _FIRST_REGISTER


_FIRST_REGISTER = 256
_SPECS: dict[tuple[bool, int], Spec] = {}


def _add(code: int, name: str, *fields: Field, wide: bool = False) -> None:
    _SPECS[wide, code] = Spec(name, code, wide, fields)


def _plain(code: int, name: str, bits: int, signed: bool = False, allowed: range | None = None) -> None:
    _add(code, name, Field("value", 0, bits, signed, frozenset(allowed or ())))


_PRECISIONS = (Field("signed", 0, 1), Field("layout", 6, 2, allowed=frozenset({0, 1})))
_SIZES = frozenset({0, 1, 2})


def _feature_map(zero_point: int, prefix: str, width: int, region: int) -> None:
    """The registers that IFM, IFM2 and OFM have alike; the extents of the tiles follow that of the width."""
    _plain(zero_point, f"{prefix}_ZERO_POINT", 16, signed=True)
    for offset, name in enumerate(("WIDTH0_M1", "HEIGHT0_M1", "HEIGHT1_M1")):
        _plain(width + offset, f"{prefix}_{name}", 16)
    _plain(region, f"{prefix}_REGION", 3)


def _input_precision(code: int, name: str) -> None:
    _add(code, name, *_PRECISIONS, Field("size", 2, 2, allowed=_SIZES), Field("scaled", 8, 2, allowed=_SIZES),
         Field("rounding", 14, 2, allowed=frozenset({0, 1, 2})))


def _addresses(first: int, prefix: str) -> None:
    for index in range(4):
        _add(first + index, f"{prefix}_BASE{index}", Field("value", 0, 40), wide=True)
    for offset, axis in ((4, "X"), (5, "Y"), (6, "C")):
        _add(first + offset, f"{prefix}_STRIDE_{axis}", Field("value", 0, 40, signed=True), wide=True)


def _operations() -> None:
    _plain(0, "STOP", 16)
    _plain(1, "IRQ", 16)
    _plain(2, "CONV", 16, allowed=range(1))
    _plain(3, "DEPTHWISE", 16, allowed=range(1))
    _plain(5, "POOL", 16, allowed=range(3))
    _plain(6, "ELEMENTWISE", 16, allowed=range(10))
    _plain(16, "DMA_START", 16, allowed=range(1))
    _plain(17, "DMA_WAIT", 4)
    _plain(18, "KERNEL_WAIT", 2)
    _plain(19, "PMU_MASK", 1)


def _registers() -> None:
    for code, name, bits in ((256, "TOP", 7), (257, "LEFT", 7), (258, "RIGHT", 8), (259, "BOTTOM", 8)):
        _plain(code, f"IFM_PAD_{name}", bits)
    _plain(260, "IFM_DEPTH_M1", 16)
    _input_precision(261, "IFM_PRECISION")
    _plain(263, "IFM_UPSCALE", 2, allowed=range(3))
    _feature_map(265, "IFM", width=266, region=271)
    _plain(269, "IFM_IB_END", 6)
    for code, name in ((273, "WIDTH"), (274, "HEIGHT"), (275, "DEPTH")):
        _plain(code, f"OFM_{name}_M1", 16)
    _add(276, "OFM_PRECISION", *_PRECISIONS, Field("size", 1, 2, allowed=_SIZES), Field("global_scale", 8, 1),
         Field("rounding", 14, 2, allowed=frozenset({0, 1, 2})))
    for code, name, bits in ((277, "WIDTH", 6), (278, "HEIGHT", 5), (279, "DEPTH", 7)):
        _plain(code, f"OFM_BLK_{name}_M1", bits)
    _feature_map(280, "OFM", width=282, region=287)
    _plain(288, "KERNEL_WIDTH_M1", 16)
    _plain(289, "KERNEL_HEIGHT_M1", 16)
    _add(290, "KERNEL_STRIDE", Field("x", 0, 1), Field("y", 1, 1), Field("part_kernel", 2, 1),
         Field("dilation_x", 3, 1), Field("dilation_y", 4, 1), Field("small_blocks", 5, 1), Field("x_high", 6, 3),
         Field("y_high", 9, 3))
    _plain(291, "PARALLEL_MODE", 1)
    _plain(292, "ACC_FORMAT", 2, allowed=range(2))
    _add(293, "ACTIVATION", Field("function", 0, 12, allowed=frozenset({0, 3, 4, *range(16, 24)})),
         Field("clip", 12, 3, allowed=frozenset({0, 2, 3, 5})))
    _plain(294, "ACTIVATION_MIN", 16, signed=True)
    _plain(295, "ACTIVATION_MAX", 16, signed=True)
    _plain(296, "WEIGHT_REGION", 3)
    _plain(297, "SCALE_REGION", 3)
    _plain(301, "AB_START", 6)
    _plain(303, "BLOCKDEP", 2)
    for code, name in ((304, "SRC"), (305, "DST")):
        _add(code, f"DMA0_{name}_REGION", Field("region", 0, 3), Field("internal", 8, 1),
             Field("stride_mode", 9, 2, allowed=frozenset({0, 1, 2})))
    _plain(306, "DMA0_SIZE0", 16)
    _plain(307, "DMA0_SIZE1", 16)
    _add(384, "IFM2_BROADCAST", Field("height", 0, 1), Field("width", 1, 1), Field("depth", 2, 1),
         Field("reversed", 6, 1), Field("scalar", 7, 1))
    _plain(385, "IFM2_SCALAR", 16, signed=True)
    _input_precision(389, "IFM2_PRECISION")
    _feature_map(393, "IFM2", width=394, region=399)
    _plain(397, "IFM2_IB_START", 6)


def _wide_registers() -> None:
    _addresses(0, "IFM")
    _addresses(16, "OFM")
    _addresses(128, "IFM2")
    for first, core in ((32, ""), (144, "1")):
        _add(first, f"WEIGHT{core}_BASE", Field("value", 0, 40), wide=True)
        _add(first + 1, f"WEIGHT{core}_LENGTH", Field("value", 0, 32), wide=True)
        _add(first + 2, f"SCALE{core}_BASE", Field("value", 0, 40), wide=True)
        _add(first + 3, f"SCALE{core}_LENGTH", Field("value", 0, 20), wide=True)
    for code, name in ((36, "OFM"), (37, "OPA")):
        _add(code, f"{name}_SCALE", Field("scale", 0, 32), Field("shift", 32, 6), wide=True)
    _add(38, "OPB_SCALE", Field("scale", 0, 16), wide=True)
    _add(48, "DMA0_SRC", Field("value", 0, 40), wide=True)
    _add(49, "DMA0_DST", Field("value", 0, 40), wide=True)
    _add(50, "DMA0_LEN", Field("value", 0, 40), wide=True)
    _add(51, "DMA0_SKIP0", Field("value", 0, 40, signed=True), wide=True)
    _add(52, "DMA0_SKIP1", Field("value", 0, 40, signed=True), wide=True)


_operations()
_registers()
_wide_registers()

COMMANDS: Mapping[tuple[bool, int], Spec] = MappingProxyType(_SPECS)
"""Every command by whether it is wide, and its code."""

BY_NAME: Mapping[str, Spec] = MappingProxyType({spec.name: spec for spec in _SPECS.values()})
"""Every command by name."""
