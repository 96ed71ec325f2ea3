"""A measure makes of each sample a record of plain values, and of all records figures: the higher the better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from vitrify.tasks.found import Found
from vitrify.tasks.spec import TaskSpec

Truth = dict[str, Any]
Record = Any
RecordOf = Callable[[Any, Truth, TaskSpec], Record]
TotalOf = Callable[[Sequence[Record], Sequence[Truth], TaskSpec], dict[str, float]]
TruthOf = Callable[[Any, TaskSpec], Truth]


@dataclass(frozen=True)
class Measure:
    """How answers of some kinds of tasks are scored.

    ``needs`` is what a truth has to hold, ``main`` the figure that counts. ``record`` sums one sample up, ``total`` all
    of them; ``truth`` makes of an answer what others are held against.
    """

    kinds: tuple[str, ...]
    needs: tuple[str, ...]
    main: str
    record: RecordOf
    total: TotalOf
    truth: TruthOf


MEASURES: dict[str, Measure] = {}


def measure(*kinds: str, needs: tuple[str, ...], main: str, record: RecordOf, truth: TruthOf
            ) -> Callable[[TotalOf], TotalOf]:
    """Register the function that sums records up, with what belongs to it."""
    def register(total: TotalOf) -> TotalOf:
        for kind in kinds:
            MEASURES[kind] = Measure(kinds, needs, main, record, total, truth)
        return total
    return register


def measure_of(kind: str) -> Measure:
    """Return the measure of a kind of task."""
    for module in iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")
    return MEASURES[kind]


def percent(part: float, whole: float) -> float:
    """A share in percent, 0 of nothing."""
    return 100.0 * part / whole if whole else 0.0


__all__ = ["MEASURES", "Found", "Measure", "Record", "Truth", "measure", "measure_of", "percent"]
