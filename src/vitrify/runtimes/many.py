"""Many samples at once: one call into the child process for all, and the time spent inside the runtime."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from vitrify.runtimes.base import Runtime

Array = np.ndarray[Any, np.dtype[Any]]


@runtime_checkable
class RunsMany(Protocol):
    """A runtime that has a quicker way for many samples than one after the other."""

    def run_many(self, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], float]:
        """Take stacks [n, ...] by input name; give stacks by output name, and seconds inside the runtime."""


def run_many(runtime: Runtime, samples: Mapping[str, Array] | Sequence[Mapping[str, Array]]
             ) -> tuple[dict[str, Array], float]:
    """Run samples, a stack [n, ...] for each input or one by one; outputs are stacks.

    The seconds are those inside the runtime; where it does not tell, those of its whole calls.
    """
    stacks = samples if isinstance(samples, Mapping) else {
        name: np.stack([sample[name] for sample in samples]) for name in samples[0]}
    if isinstance(runtime, RunsMany):
        return runtime.run_many(stacks)
    count = len(next(iter(stacks.values())))
    started = time.perf_counter()
    answers = [runtime.run({name: stack[n] for name, stack in stacks.items()}) for n in range(count)]
    seconds = time.perf_counter() - started
    return {name: np.stack([answer[name] for answer in answers]) for name in answers[0]}, seconds
