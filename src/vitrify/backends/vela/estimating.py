"""The latency of a compiled model: the compiler's cycles, the CPU's share that it counts as nothing, and the calls."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.backends.vela.database import Perf
from vitrify.backends.vela.placing import Placed
from vitrify.targets.base import Target
from vitrify.targets.estimating import Seconds, call_seconds, cpu_seconds, total
from vitrify.targets.placement import Estimate

_MS = 1e3
_MEMORIES = {"dram": "DRAM", "flash": "flash"}


def npu_seconds(rows: Sequence[Perf], target: Target) -> Seconds:
    """Return the NPU's time: the compiler's cycles, and bounds that cover both doubts about them.

    One is the bandwidth of the far memory: the bounds keep the schedule and stretch only what waits for it (a compile
    for that bandwidth gives up to 3 % less). The other is how far measurements were from the compiler's model.
    """
    clock, ratio, far = target.fact("clock_hz"), target.fact("npu_time_ratio"), target.far_bytes_per_s
    slow, fast = far.value / far.bounds[0], far.value / far.bounds[1]
    rows = [row for row in rows if not row.on_cpu]
    cycles = sum(row.cycles for row in rows) * ratio.value
    low = min(sum(row.cycles_with_far(fast) for row in rows), cycles * ratio.bounds[0])
    high = max(sum(row.cycles_with_far(slow) for row in rows), cycles * ratio.bounds[1])
    return Seconds(low, cycles, high).times(target.correction("npu") / clock.value)


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
    far = target.far_bytes_per_s
    source = (f"Vela {version} cycle model, {target.value('clock_hz') / 1e9:g} GHz, "
              f"{_MEMORIES[target.far_memory]} {far.value / 1e9:.3g} GB/s ({far.basis})")
    return Estimate(latency_ms=both.likely * _MS, low_ms=both.low * _MS, high_ms=both.high * _MS,
                    source=target.told(source),
                    npu_ms=npu.likely * _MS, cpu_ms=cpu.likely * _MS, driver_ms=driver.likely * _MS,
                    npu_cycles=sum(row.cycles for row in rows if not row.on_cpu), assumptions=tuple(target.doubts()))
