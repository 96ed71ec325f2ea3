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
_MAX_READS = {"Sram": 16, "Dram": 24}
_MAX_WRITES = {"Sram": 16, "Dram": 12}


def system_name(target: Target) -> str:
    """Return the name of the target's sections in the configuration file."""
    return target.name.upper().replace("-", "_")


def configuration(target: Target, *, dram_bytes_per_s: float | None = None) -> str:
    """Return Vela's configuration file for ``target``: constants and arena in DRAM, on-chip RAM as a cache.

    Source: Vela OPTIONS.md, "Configuration File"; memory mode as ``Dedicated_Sram`` with a limit.
    """
    clock = target.value("clock_hz")
    bandwidth = {"Sram": target.value("sram_bytes_per_s"),
                 "Dram": dram_bytes_per_s or target.value("dram_bytes_per_s")}
    name = system_name(target)
    lines = [f"[System_Config.{name}]", f"core_clock={clock:g}", "axi0_port=Sram", "axi1_port=Dram"]
    for memory, rate in bandwidth.items():
        fact = f"{memory.lower()}_"
        lines += [f"{memory}_clock_scale={rate / clock / _BYTES_PER_CYCLE:.6g}",
                  f"{memory}_burst_length={target.value(fact + 'burst_bytes'):.0f}",
                  f"{memory}_read_latency={target.value(fact + 'read_latency_cycles'):.0f}",
                  f"{memory}_write_latency={target.value(fact + 'write_latency_cycles'):.0f}",
                  f"{memory}_max_reads={_MAX_READS[memory]}",
                  f"{memory}_max_writes={_MAX_WRITES[memory]}"]
    lines += [f"[Memory_Mode.{name}]", "const_mem_area=Axi1", "arena_mem_area=Axi1", "cache_mem_area=Axi0",
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
