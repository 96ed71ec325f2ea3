"""What int8 does to the tasks of pretrained models: a table of measurements, each with what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import vitrify as vt
from vitrify.runtimes import open as open_model
from vitrify.runtimes.base import Runtime

Array = np.ndarray[Any, np.dtype[Any]]
Find = Callable[[str], Path]
Run = Callable[[Mapping[str, Array]], dict[str, Array]]
Score = Callable[[Find, Runtime], Any]


@dataclass(frozen=True)
class Measured:
    """A task's results in words: of the source, of ours, and of another int8 file where one is had; and the verdict."""

    before: str
    after: str
    other: str
    holds: bool


@dataclass(frozen=True)
class Task:
    """A model, what is measured, what is asked, and what measures it."""

    title: str
    file: str
    measured: str
    asked: str
    measure: Callable[[Find, Path], Measured]
    met: bool = True
    """False where what is asked is not met, and the page says so."""


TASKS: dict[str, Task] = {}


def task(name: str, title: str, file: str, measured: str, asked: str, *,
         met: bool = True) -> Callable[[Callable[[Find, Path], Measured]], Callable[[Find, Path], Measured]]:
    """Enter the decorated measurement under ``name``."""
    def enter(measure: Callable[[Find, Path], Measured]) -> Callable[[Find, Path], Measured]:
        assert name not in TASKS
        TASKS[name] = Task(title, file, measured, asked, measure, met)
        return measure

    return enter


@dataclass
class Sides:
    """The source model and its int8 form, both open."""

    source: Runtime
    ours: Runtime
    results: dict[str, Any] = field(default_factory=dict)

    def first(self, inputs: Mapping[str, Array]) -> tuple[Array, Array]:
        """The first output of both."""
        before, after = self.source.run(inputs), self.ours.run(inputs)
        name = next(iter(before))
        return before[name], after[name]


def sides(source: Path, data: object, folder: Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None,
          **how: Any) -> Sides:
    """Quantize a model and open it beside its source."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vt.QualityWarning)
        made = vt.quantize(source, data=data, shapes=shapes, **how)
    target = folder / "int8.tflite"
    vt.convert(made, target)
    fixed: dict[str, Any] = {} if source.suffix == ".tflite" else {"shapes": shapes}
    return Sides(open_model(source, **fixed), open_model(target, kernels="optimized"))


def total_db(pairs: Iterable[tuple[Array, Array]]) -> float:
    """Signal to error of several outputs together."""
    kept = [(before.astype(np.float64), after.astype(np.float64)) for before, after in pairs]
    signal = sum(float(np.square(before).sum()) for before, _ in kept)
    error = sum(float(np.square(before - after).sum()) for before, after in kept)
    return float(10 * np.log10(signal / max(error, 1e-30)))
