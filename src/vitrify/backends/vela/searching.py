"""Searches the compiler's settings for the fastest estimate: how much on-chip memory it may plan with, and for what.

A smaller arena often helps: the compiler's plan for the whole of it is not always its best one. Every arena up to the
chip's is allowed on it, and results do not depend on it, so all settings are exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from vitrify.backends.vela.compiling import check_model
from vitrify.backends.vela.settings import Optimise
from vitrify.core.errors import VitrifyError
from vitrify.targets.base import Target

ARENAS = (0.75, 0.5, 0.875, 0.625, 0.375, 0.25, 0.125, 0.0625)
"""Shares of the chip's memory that are tried, the most promising first."""
ROUNDS = 3
"""How often the neighbourhood of the best share is halved afterwards."""
_STEP = 1024
"""Arenas are multiples of this many bytes."""


class Setting(msgspec.Struct, frozen=True):
    """What the compiler is told: how much on-chip memory there is, and whether to work for speed or for less of it."""

    arena_bytes: int
    optimise: Optimise = "Performance"

    def of(self, target: Target) -> Target:
        """Return ``target`` with this much memory."""
        fact = msgspec.structs.replace(target.fact("cache_bytes"), value=float(self.arena_bytes), low=None, high=None)
        return msgspec.structs.replace(target, facts={**target.facts, "cache_bytes": fact})


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What a setting gave; ``latency_ms`` is None where the compiler gave nothing, and ``problem`` says why."""

    setting: Setting
    latency_ms: float | None = None
    sram_bytes: int = 0
    dram_traffic_bytes: int = 0
    problem: str = ""


def search_settings(path: Path, target: Target, seconds: float,
                    tell: Callable[[Trial], None] = lambda trial: None) -> list[Trial]:
    """Return what each setting tried gave, the default first, and stop after about ``seconds``.

    The order of the trials does not depend on time, so a longer search never ends worse than a shorter one.
    """
    trials: list[Trial] = []
    started, spent = time.monotonic(), 0.0
    for setting in _settings(int(target.value("cache_bytes")), trials):
        began = time.monotonic()
        if trials and began - started + spent > seconds:
            break
        trials.append(_tried(path, target, setting))
        spent = max(spent, time.monotonic() - began)
        tell(trials[-1])
    return trials


def best(trials: list[Trial]) -> Trial | None:
    """Return the fastest trial, the earliest of equal ones; None where the compiler gave nothing at all."""
    done = [trial for trial in trials if trial.latency_ms is not None]
    return min(done, key=lambda trial: trial.latency_ms or 0.0, default=None)


def _settings(whole: int, trials: list[Trial]) -> Iterator[Setting]:
    """Yield settings, each once; the later ones lie around the best of the earlier."""
    seen: set[Setting] = set()

    def fresh(share: float, optimise: Optimise = "Performance") -> Iterator[Setting]:
        arena = max(_STEP, round(whole * share) // _STEP * _STEP) if share < 1 else whole
        setting = Setting(arena, optimise)
        if setting not in seen:
            seen.add(setting)
            yield setting

    yield from fresh(1.0)
    yield from fresh(1.0, "Size")
    for share in ARENAS:
        yield from fresh(share)
    width = 0.0625
    for _ in range(ROUNDS):
        winner = best(trials)
        if winner is None:
            return
        middle = winner.setting.arena_bytes / whole
        for share in (middle - width, middle + width):
            if 0 < share < 1:
                yield from fresh(share, winner.setting.optimise)
        yield from fresh(middle, "Size")
        width /= 2


def _tried(path: Path, target: Target, setting: Setting) -> Trial:
    try:
        compiled = check_model(path, setting.of(target), optimise=setting.optimise)
    except VitrifyError as error:
        return Trial(setting=setting, problem=error.findings[0].headline)
    if compiled.placement.npu_partitions == 0:
        return Trial(setting=setting, problem="nothing runs on the NPU")
    return Trial(setting=setting, latency_ms=compiled.estimate.latency_ms, sram_bytes=compiled.memory.sram_bytes,
                 dram_traffic_bytes=compiled.memory.dram_traffic_bytes)
