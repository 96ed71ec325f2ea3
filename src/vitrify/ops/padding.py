"""Padding."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Pad(Operator):
    """PAD."""

    name = "PAD"
    options = "PadOptions"


@operator
@dataclass(frozen=True)
class PadV2(Operator):
    """PADV2."""

    name = "PADV2"
    options = "PadV2Options"


@operator
@dataclass(frozen=True)
class MirrorPad(Operator):
    """MIRROR_PAD."""

    name = "MIRROR_PAD"
    options = "MirrorPadOptions"
    mode: int = 0
