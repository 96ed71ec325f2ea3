"""The options that Vela is called with, made from a target's facts.

Its own defaults are another chip (Ethos-U55 with 256 MACs), so nothing is left to them.
"""

from __future__ import annotations

from typing import Literal

from vitrify.targets.base import Target

Optimise = Literal["Performance", "Size"]

MODEL, CONFIG, OUTPUT = "model.tflite", "target.ini", "out"
"""The names inside the working folder; the user's own path never reaches the compiler."""

_BYTES_PER_CYCLE = 16      # of an AXI port at clock scale 1. Source: Vela OPTIONS.md, "clock scale".
_MAX_READS = {"sram": 16, "dram": 24, "flash": 2}
_MAX_WRITES = {"sram": 16, "dram": 12, "flash": 0}
_SECTIONS = {"sram": "Sram", "dram": "Dram", "flash": "OffChipFlash"}
_ARENAS = {"near": "Axi0", "far": "Axi1"}


def system_name(target: Target) -> str:
    """Return the name of the target's sections in the configuration file."""
    return target.name.upper().replace("-", "_")


def configuration(target: Target, *, far_bytes_per_s: float | None = None) -> str:
    """Return Vela's configuration file for ``target``: constants in far memory, values there or in on-chip memory.

    Source: Vela OPTIONS.md, "Configuration File"; memory modes ``Dedicated_Sram`` and ``Shared_Sram`` with a limit.
    """
    clock, name = target.value("clock_hz"), system_name(target)
    far = _SECTIONS[target.far_memory]
    lines = [f"[System_Config.{name}]", f"core_clock={clock:g}", "axi0_port=Sram", f"axi1_port={far}"]
    for prefix in ("sram", target.far_memory):
        memory = _SECTIONS[prefix]
        rate = (far_bytes_per_s if memory == far else None) or target.value(f"{prefix}_bytes_per_s")
        lines += [f"{memory}_clock_scale={rate / clock / _BYTES_PER_CYCLE:.6g}",
                  f"{memory}_burst_length={target.value(f'{prefix}_burst_bytes'):.0f}",
                  f"{memory}_read_latency={target.value(f'{prefix}_read_latency_cycles'):.0f}",
                  f"{memory}_write_latency={target.value(f'{prefix}_write_latency_cycles'):.0f}",
                  f"{memory}_max_reads={_MAX_READS[prefix]}",
                  f"{memory}_max_writes={_MAX_WRITES[prefix]}"]
    lines += [f"[Memory_Mode.{name}]", f"const_mem_area={_ARENAS[target.constants]}",
              f"arena_mem_area={_ARENAS[target.arena]}", "cache_mem_area=Axi0",
              f"arena_cache_size={target.value('cache_bytes'):.0f}", ""]
    return "\n".join(lines)


def arguments(target: Target, *, optimise: Optimise = "Performance", ignore: tuple[str, ...] = ()) -> list[str]:
    """Return Vela's command line after the program's name, for a working folder laid out as named here.

    The database holds all that the printed tables hold, so the verbose options stay off; ``--show-cpu-operations``
    fails on some models after they are compiled.
    """
    name = system_name(target)
    options = [MODEL, "--accelerator-config", target.accelerator, "--config", CONFIG, "--system-config", name,
               "--memory-mode", name, "--optimise", optimise, "--output-dir", OUTPUT, "--enable-debug-db"]
    return [*options, "--ignore-ops", ",".join(ignore)] if ignore else options
