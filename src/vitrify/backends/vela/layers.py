"""What a profile needs of the debug database: layers with their cycles, the totals, and where tensors were put."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.backends.base import Layer, Life
from vitrify.backends.vela.database import Database, Perf, Row, number

_TOTALS = {"cycles": ("cycles_total",), "compute": ("cycles_npu",), "near": ("cycles_sram_access",),
           "far": ("cycles_dram_access", "cycles_off_chip_flash_access"), "macs": ("nn_macs",),
           "far_bytes": ("dram_total_bytes", "off_chip_flash_total_bytes"), "near_bytes": ("sram_total_bytes",)}


def layers_of(rows: Sequence[Perf]) -> tuple[Layer, ...]:
    """Return scheduled operators as any backend tells them."""
    return tuple(Layer(name=row.name, operator=row.operator, cycles=row.cycles, compute_cycles=row.npu_cycles,
                       near_cycles=row.sram_cycles, far_cycles=row.far_cycles, macs=row.macs,
                       near_bytes=row.near_bytes, far_bytes=row.far_bytes, passed=row.on_cpu) for row in rows)


def totals_of(summary: Row) -> dict[str, int]:
    """Return the compiler's own sums."""
    return {name: sum(number(summary.get(cell, "")) for cell in cells) for name, cells in _TOTALS.items()}


def lives_of(database: Database) -> tuple[Life, ...]:
    """Return the tensors that have a place, the largest first."""
    found = [Life(name=row.get("name", ""), memory=row.get("memory", ""), usage=row.get("usage", ""),
                  offset=_hexadecimal(row.get("start_address", "")), bytes=_hexadecimal(row.get("size", "")),
                  first=number(row.get("start_time", "")), last=number(row.get("end_time", "")))
             for row in database.tensors]
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _hexadecimal(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
