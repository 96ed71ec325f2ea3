"""Candidates of a search: models with a set of operators in 16 bits, made, run and timed in child processes.

What is found is kept in a file, one line each, so that a search that was killed goes on where it stopped. What a
candidate is worth depends on the candidate alone, so neither the number of processes nor a stop changes the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.hashing import hash_value
from vitrify.core.isolation import Worker
from vitrify.pipeline.quantizing.search.goal import Goal
from vitrify.pipeline.quantizing.search.kept import Kept

if TYPE_CHECKING:
    from vitrify.ir import Model
    from vitrify.quant import QuantizeResult, Recipe, Statistics

Array = np.ndarray[Any, np.dtype[Any]]
Names = tuple[str, ...]

MODEL, STATISTICS, SAMPLES = "float.tflite", "statistics.npz", "samples"
_WORK = "vitrify.pipeline.quantizing.search.candidates:evaluate_here"


class Worth(msgspec.Struct, frozen=True):
    """What a candidate is worth: its quality, and how many operators compute in 16 bits of how many."""

    quality: float
    wide: int
    nodes: int


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What all candidates of a search share, in a folder; picklable."""

    folder: str
    recipe: Recipe
    goal: Goal


def with_wide(recipe: Recipe, names: Iterable[str]) -> Recipe:
    """Return the recipe that lets the named operators compute in 16 bits besides; its own overrides come before."""
    from vitrify.quant.recipe import Override

    chosen = tuple(sorted(set(names)))
    own = (Override(nodes=chosen, activations="int16"),) if chosen else ()
    return msgspec.structs.replace(recipe, overrides=(*own, *recipe.overrides))


def lay_out(folder: Path, path: Path, statistics: Statistics, samples: Sequence[Mapping[str, Array]],
            answers: Sequence[Mapping[str, Array]]) -> None:
    """Write what the child processes read."""
    (folder / MODEL).symlink_to(path.resolve())
    statistics.save(folder / STATISTICS)
    for number, (sample, answer) in enumerate(zip(samples, answers, strict=True)):
        held: dict[str, Any] = {f"i/{k}": v for k, v in sample.items()} | {f"o/{k}": v for k, v in answer.items()}
        np.savez(folder / f"{SAMPLES}_{number}.npz", **held)


class Candidates:
    """Evaluates sets of operators, several at once, and remembers what came out in ``kept``."""

    def __init__(self, task: Task, kept: Kept, jobs: int, told: Callable[[int], None]) -> None:
        self.task = task
        self.told = told
        self.evaluated = 0
        self._used: set[str] = set()
        self._kept = kept
        self._from_before = kept.names()
        self._jobs = max(1, jobs)
        self._workers: list[Worker] = []

    def worth(self, sets: Sequence[Names]) -> list[Worth]:
        """Return what each set is worth, in order.

        Raises:
            VitrifyError: one of them cannot be made or run.
        """
        keys = [digest(names) for names in sets]
        missing = {key: names for key, names in zip(keys, sets, strict=True) if key not in self._kept}
        self._used |= set(keys) & self._from_before
        if missing:
            self._evaluate(missing)
        return [Worth(*self._kept[key]) for key in keys]

    @property
    def reused(self) -> int:
        """How many of those asked for an earlier search left."""
        return len(self._used)

    def _evaluate(self, missing: Mapping[str, Names]) -> None:
        while len(self._workers) < min(self._jobs, len(missing)):
            self._workers.append(Worker("a candidate of the search"))
        idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            idle.put(worker)

        def one(names: Names) -> Worth:
            worker = idle.get()
            try:
                found: Worth = worker.call(_WORK, self.task, names)
                return found
            finally:
                idle.put(worker)

        with ThreadPoolExecutor(len(self._workers)) as pool:
            waiting = {pool.submit(one, names): key for key, names in missing.items()}
            for future in as_completed(waiting):
                worth = future.result()
                self._kept.add(waiting[future], msgspec.structs.astuple(worth))
                self.evaluated += 1
                self.told(self.evaluated)

    def close(self) -> None:
        """End the child processes."""
        for worker in self._workers:
            worker.close()


def latency(model: Model, target: str, folder: Path) -> float | None:
    """The compiler's estimate for a model in milliseconds, None when it has none."""
    from vitrify import tflite
    from vitrify.backends.base import driver_of
    from vitrify.targets import load

    chip = load(target)
    driver = driver_of(chip)
    if driver is None or not driver.installations():
        return None
    tflite.write(model, folder / "timed.tflite")
    estimate = driver.compile(folder / "timed.tflite", chip, folder / f"timed{driver.ending}").estimate
    return None if estimate is None else estimate.latency_ms


_open: dict[str, tuple[Model, Statistics, list[dict[str, Array]], list[dict[str, Array]]]] = {}


def evaluate_here(task: Task, names: Names) -> Worth:
    """Run in a child: quantize with the named operators in 16 bits, run the samples and compare the answers."""
    from vitrify.pipeline.steps import quantize_model

    model, statistics, samples, answers = _opened(task)
    result = quantize_model(model, statistics, with_wide(task.recipe, names))
    given = _run(result, Path(task.folder), samples)
    return Worth(task.goal.measure(answers, given), len(result.plan.wide), len(result.model.main))


def _opened(task: Task) -> tuple[Model, Statistics, list[dict[str, Array]], list[dict[str, Array]]]:
    if task.folder not in _open:
        from vitrify import tflite
        from vitrify.quant import Statistics

        folder = Path(task.folder)
        samples: list[dict[str, Array]] = []
        answers: list[dict[str, Array]] = []
        while (file := folder / f"{SAMPLES}_{len(samples)}.npz").exists():
            with np.load(file) as held:
                samples.append({k[2:]: held[k] for k in held.files if k[0] == "i"})
                answers.append({k[2:]: held[k] for k in held.files if k[0] == "o"})
        _open[task.folder] = (tflite.read(folder / MODEL), Statistics.load(folder / STATISTICS), samples, answers)
    return _open[task.folder]


def _run(result: QuantizeResult, folder: Path, samples: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
    """Run a model in this process, which is a child already."""
    from vitrify import tflite
    from vitrify.data.binding import identity_interface, to_file_inputs, to_source_outputs
    from vitrify.runtimes.base import stamp
    from vitrify.runtimes.litert.session import Session
    from vitrify.runtimes.litert.spec import Spec

    path = folder / f"candidate_{os.getpid()}.tflite"
    tflite.write(result.model, path)
    try:
        session = Session(Spec(str(path), stamp(path), "optimized", False, 1))
        interface = result.model.interface or identity_interface(result.model)
        answers = []
        for sample in samples:
            session.reset()
            session.invoke(to_file_inputs(interface, sample, session.inputs))
            raw = [session.read(d["index"]) for d in session.outputs]
            if any(value is None for value in raw):
                raise VitrifyError.of("litert.read", "an output of a candidate cannot be read")
            answers.append(to_source_outputs(interface, [np.array(v) for v in raw if v is not None], session.outputs))
        return answers
    finally:
        path.unlink(missing_ok=True)


def digest(names: Names) -> str:
    """What a set of operators is called in the file that keeps what was found."""
    return hash_value(sorted(set(names)))[:32]
