"""Candidates of a search: models with a set of operators in 16 bits, made, run and timed in child processes.

What is found is kept in a file, one line each, so that a search that was killed goes on where it stopped. What a
candidate is worth depends on the candidate alone, so neither the number of processes nor a stop changes the answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.hashing import hash_value
from vitrify.core.isolation import Worker
from vitrify.pipeline.search.goal import Goal

if TYPE_CHECKING:
    from vitrify.ir import Model
    from vitrify.quant import QuantizeResult, Recipe, Statistics

Array = np.ndarray[Any, np.dtype[Any]]
Names = tuple[str, ...]

MODEL, STATISTICS, SAMPLES = "float.tflite", "statistics.npz", "samples"
_WORK = "vitrify.pipeline.search.candidates:evaluate_here"


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
    """Return the recipe that lets the named operators compute in 16 bits besides."""
    from vitrify.quant.recipe import Override

    chosen = tuple(sorted(set(names)))
    own = (Override(nodes=chosen, activations="int16"),) if chosen else ()
    return msgspec.structs.replace(recipe, overrides=(*recipe.overrides, *own))


def lay_out(folder: Path, path: Path, statistics: Statistics, samples: Sequence[Mapping[str, Array]],
            answers: Sequence[Mapping[str, Array]]) -> None:
    """Write what the child processes read."""
    (folder / MODEL).symlink_to(path.resolve())
    statistics.save(folder / STATISTICS)
    for number, (sample, answer) in enumerate(zip(samples, answers, strict=True)):
        held: dict[str, Any] = {f"i/{k}": v for k, v in sample.items()} | {f"o/{k}": v for k, v in answer.items()}
        np.savez(folder / f"{SAMPLES}_{number}.npz", **held)


class Candidates:
    """Evaluates sets of operators, several at once, and remembers what came out.

    ``state`` is the file that keeps it, ``key`` says what it is of: lines of another search are not taken.
    """

    def __init__(self, task: Task, state: Path | None, key: object, jobs: int, told: Callable[[int], None]) -> None:
        self.task = task
        self.told = told
        self.evaluated = 0
        self._used: set[str] = set()
        self._key = hash_value(key)
        self._state = state
        self._known: dict[str, Worth] = self._remembered()
        self._from_before = set(self._known)
        self._jobs = max(1, jobs)
        self._workers: list[Worker] = []

    def worth(self, sets: Sequence[Names]) -> list[Worth]:
        """Return what each set is worth, in order.

        Raises:
            VitrifyError: one of them cannot be made or run.
        """
        keys = [_digest(names) for names in sets]
        missing = {key: names for key, names in zip(keys, sets, strict=True) if key not in self._known}
        self._used |= set(keys) & self._from_before
        if missing:
            self._evaluate(missing)
        return [self._known[key] for key in keys]

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
            waiting = {key: pool.submit(one, names) for key, names in missing.items()}
            for key, future in waiting.items():
                self._keep(key, future.result())

    def _keep(self, key: str, worth: Worth) -> None:
        self._known[key] = worth
        self.evaluated += 1
        if self._state is not None:
            line = json.dumps([self._key, key, *msgspec.structs.astuple(worth)])
            with self._state.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        self.told(self.evaluated)

    def _remembered(self) -> dict[str, Worth]:
        """What an earlier search for the same left; a line that was not finished is left out."""
        found: dict[str, Worth] = {}
        if self._state is None or not self._state.is_file():
            return found
        for line in self._state.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                key, names, quality, wide, nodes = json.loads(line)
            except ValueError:
                continue
            if key == self._key:
                found[str(names)] = Worth(float(quality), int(wide), int(nodes))
        return found

    def close(self) -> None:
        """End the child processes."""
        for worker in self._workers:
            worker.close()

    def forget(self) -> None:
        """Remove the file: the search is over."""
        if self._state is not None:
            self._state.unlink(missing_ok=True)


def latency(model: Model, target: str, folder: Path) -> float | None:
    """The compiler's estimate for a model in milliseconds, None when it has none."""
    from vitrify import tflite
    from vitrify.backends.vela import compile_model

    tflite.write(model, folder / "timed.tflite")
    return compile_model(folder / "timed.tflite", target, folder / "timed_vela.tflite").estimate.latency_ms


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


def _digest(names: Names) -> str:
    return hash_value(sorted(set(names)))[:32]
