"""Two forms of one model on a few samples: how much the worst output keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from vitrify.core.progress import Reporter
from vitrify.ir.interface import Interface
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.verifying.verify import compare_files

EQUAL = math.inf
"""The decibels of outputs without any error."""


class Ruler:
    """Measures all forms alike; ``worst`` is what the last one that was measured calls its worst output."""

    def __init__(self, interface: Interface, data: DataOptions, conversion: ConvertOptions, limit: int,
                 reporter: Reporter) -> None:
        self.interface, self.data, self.conversion = interface, data, conversion
        self.limit, self.reporter = limit, reporter
        self.runs = self.samples = 0
        self.worst = ""

    def measure(self, reference: Path, candidate: Path, kernels: Sequence[str | None] = ("xnnpack", "optimized")
                ) -> float:
        """The SQNR in dB of the worst output, or group of its channels; minus infinity where nothing is left.

        Raises:
            VitrifyError: one of the two cannot be run.
        """
        found = compare_files([reference, candidate], self.interface, self.data, self.conversion,
                              self.reporter.advance, limit=self.limit, names=["reference", "candidate"],
                              kernels=kernels, tensors=False)
        self.runs += 1
        self.samples = found.stages[0].samples
        lowest = found.stages[0].lowest()
        self.worst = lowest.name if lowest is not None else ""
        return EQUAL if lowest is None else lowest.sqnr_db


def figure(decibels: float) -> float | None:
    """As results hold it: null is no error at all, and nothing left is far below all that is measured."""
    return None if decibels == EQUAL else max(decibels, -999.0)


def told(decibels: float) -> str:
    """The same in words."""
    if decibels == EQUAL:
        return "equal"
    return f"{decibels:.1f} dB" if math.isfinite(decibels) else "no signal"
