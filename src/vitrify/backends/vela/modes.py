"""Vela's memory modes: whether constants, and the values between operators, lie in on-chip memory or outside.

Source: Vela's vela.ini and OPTIONS.md, "Memory Mode": ``Sram_Only``, ``Shared_Sram``, ``Dedicated_Sram``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from vitrify.targets.base import Target

Side = Literal["near", "far"]


class Mode(NamedTuple):
    """Where constants and values lie, and the same in words."""

    constants: Side
    arena: Side
    says: str


MODES = {
    "Sram_Only": Mode("near", "near", "weights and values in on-chip memory"),
    "Shared_Sram": Mode("far", "near", "weights outside, values in on-chip memory"),
    "Dedicated_Sram": Mode("far", "far", "all outside, on-chip memory as the NPU's cache"),
}


def legal_modes(target: Target) -> list[str]:
    """Return the modes that ``target`` has: values can lie outside only where that memory can be written.

    Vela refuses an arena in flash: "Invalid configuration of arena_mem_area=OffChipFlash (must be Sram or Dram)".
    """
    return [name for name, mode in MODES.items() if mode.arena == "near" or target.far_memory == "dram"]


def usual_mode(target: Target) -> str:
    """Return the mode that the target's facts describe."""
    wanted = (target.constants, target.arena)
    return next(name for name, mode in MODES.items() if (mode.constants, mode.arena) == wanted)


def in_mode(target: Target, name: str) -> Target:
    """Return ``target`` with its memory used as the mode says."""
    return msgspec.structs.replace(target, constants=MODES[name].constants, arena=MODES[name].arena)
