"""The latency of a compiled model: the compiler's cycles, the CPU's share that it counts as nothing, and the calls."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.backends.vela.database import Perf
from vitrify.backends.vela.placing import Placed
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds, call_seconds, cpu_seconds, total
from vitrify.targets.placement import Estimate

_MS = 1e3


def npu_seconds(rows: Sequence[Perf], target: Target) -> Seconds:
    """Return the NPU's time: the compiler's cycles, and bounds that cover both doubts about them.

    One is DRAM's bandwidth: the bounds keep the schedule and stretch only what waits for DRAM (a compile for that
    bandwidth gives up to 3 % less). The other is how far measurements were from the compiler's model.
    """
    clock, dram, ratio = (target.fact(name) for name in ("clock_hz", "dram_bytes_per_s", "npu_time_ratio"))
    slow, fast = dram.value / dram.bounds[0], dram.value / dram.bounds[1]
    rows = [row for row in rows if not row.on_cpu]
    cycles = sum(row.cycles for row in rows) * ratio.value
    low = min(sum(row.cycles_with_dram(fast) for row in rows), cycles * ratio.bounds[0])
    high = max(sum(row.cycles_with_dram(slow) for row in rows), cycles * ratio.bounds[1])
    return Seconds(low / clock.value, cycles / clock.value, high / clock.value)


def estimate(placed: Sequence[Placed], unowned: Sequence[Perf], calls: int, target: Target, version: str) -> Estimate:
    """Return the latency of one inference.

    Args:
        placed: the nodes with their verdicts.
        unowned: scheduled operators that the compiler made by itself.
        calls: how often one inference calls the NPU.
        target: the chip.
        version: the compiler's version.
    """
    rows = [row for one in placed for row in one.perf] + list(unowned)
    npu = npu_seconds(rows, target)
    cpu = total(cpu_seconds(one.node, target) for one in placed if one.place == "cpu")
    driver = call_seconds(calls, target)
    both = total((npu, cpu, driver))
    dram = target.fact("dram_bytes_per_s")
    source = (f"Vela {version} cycle model, {target.value('clock_hz') / 1e9:g} GHz, "
              f"DRAM {dram.value / 1e9:.3g} GB/s ({dram.basis})")
    return Estimate(latency_ms=both.likely * _MS, low_ms=both.low * _MS, high_ms=both.high * _MS, source=source,
                    npu_ms=npu.likely * _MS, cpu_ms=cpu.likely * _MS, driver_ms=driver.likely * _MS,
                    npu_cycles=sum(row.cycles for row in rows if not row.on_cpu), assumptions=tuple(target.doubts()))
