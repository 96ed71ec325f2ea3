"""Searching for mixed precision, from the model and the goal to the recipe that reaches it.

Two orders are looked into: by what each operator's rounding costs the outputs, and from the input on, where errors go
through all that follows. Of the shorter set that does, parts that are not needed are left out again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.progress import Reporter, Silent
from vitrify.ir import LedgerEntry, Model
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.search.candidates import (
    Candidates,
    Names,
    Task,
    Worth,
    digest,
    latency,
    lay_out,
    with_wide,
)
from vitrify.pipeline.quantizing.search.goal import Goal
from vitrify.pipeline.quantizing.search.kept import Kept
from vitrify.pipeline.quantizing.search.narrowing import FINENESS, SHORTER, pruned, shortest
from vitrify.pipeline.quantizing.search.telling import Outcome, over_budget, reached, unreached
from vitrify.pipeline.quantizing.widening import quantize_enough
from vitrify.pipeline.steps import quantize_model
from vitrify.quant.calibration.calibrators import node_names
from vitrify.tasks.agreement import METRICS, fitting

if TYPE_CHECKING:
    from vitrify.core.findings import Finding
    from vitrify.pipeline.quantizing.search.ordering import Step
    from vitrify.quant import QuantizeResult, Recipe, Statistics

Array = np.ndarray[Any, np.dtype[Any]]

LOOKED_AT, COMPARED = 16, 4
"""Samples that the float model runs on, and how many of them candidates are compared on, those with most signal."""

COSTS, TRIALS = "costs", "trials"
"""What the file of a search calls what rounding costs, and the recipe that trials before it took."""

COUNTED = 200
"""Samples for a metric that counts them."""

WORTH_IT = 1.0
"""In the metric's unit: where all operators in 16 bits are not enough, as few are taken as come so near to that."""


class How(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for and how: ``state`` is the file that keeps what was found, ``jobs`` the processes at once."""

    goal: Goal = Goal()
    state: Path | None = None
    jobs: int = 1


def quantize_well(model: Model, path: Path, statistics: Statistics, recipe: Recipe, data: DataOptions,
                  how: How = How(), reporter: Reporter | None = None) -> tuple[QuantizeResult, Recipe]:
    """Quantize a float model so that the goal is reached; returns the recipe that does, which asks for no search.

    Args:
        model: the float model.
        path: its file.
        statistics: what calibration saw.
        recipe: what is quantized how, as far as the search leaves it; what it says of a goal is not read here.
        data: the calibration samples.
        how: the goal; without one, the recipe alone decides.
        reporter: is told how far the search is.

    Raises:
        UsageError: the metric says nothing of this model.
        VitrifyError: as ``quantize_model``, or a candidate does not run.
    """
    recipe = recipe.without_goal
    if not how.goal.is_asked:
        return quantize_enough(model, path, statistics, recipe, data)
    with temporary_folder() as folder:
        search = _Search(model, path, statistics, recipe, data, how, Path(folder), reporter or Silent())
        return search.run()


class _Search:
    def __init__(self, model: Model, path: Path, statistics: Statistics, recipe: Recipe, data: DataOptions, how: How,
                 folder: Path, reporter: Reporter) -> None:
        self.model, self.path, self.statistics, self.recipe = model, path, statistics, recipe
        self.goal, self.folder, self.reporter = how.goal, folder, reporter
        self.least = how.goal.least
        self.steps: list[Step] = []
        self.sets: list[Names] = []
        self.samples, answers = _compared(model, path, data, how.goal)
        lay_out(folder, path, statistics, self.samples, answers)
        self.kept = Kept(how.state, self._key(answers))
        self.line: LedgerEntry | None = None
        self.recipe = self._after_trials(data)
        task = Task(folder=str(folder), recipe=self.recipe, goal=how.goal)
        self.candidates = Candidates(task, self.kept, how.jobs, lambda n: reporter.advance(n, 0))

    def _key(self, answers: Sequence[Mapping[str, Array]]) -> object:
        """All that what a candidate is worth depends on."""
        from vitrify.core.hashing import hash_file
        from vitrify.pipeline.versions import code

        return {"model": hash_file(self.path), "statistics": hash_file(self.folder / "statistics.npz"),
                "recipe": msgspec.to_builtins(self.recipe), "metric": self.goal.measure.name, "code": code(),
                "answers": [{k: v.tobytes().hex()[:4096] for k, v in a.items()} for a in answers[:2]]}

    def _after_trials(self, data: DataOptions) -> Recipe:
        """The recipe with the calibrator and the rounding that do best, as it asks for, found once for a search."""
        from vitrify.pipeline.quantizing.trials import tried
        from vitrify.quant.recipe import format_recipe, parse_recipe

        if self.recipe.trials == "none" or data.random:
            return msgspec.structs.replace(self.recipe, trials="none")
        if TRIALS not in self.kept:
            found, line = tried(self.model, self.path, self.statistics, self.recipe, data)
            self.kept.add(TRIALS, [format_recipe(found), msgspec.to_builtins(line)])
        text, told = self.kept[TRIALS]
        self.line = msgspec.convert(told, LedgerEntry | None)
        return msgspec.structs.replace(parse_recipe(text), trials="none")

    def _end(self, result: QuantizeResult, finding: Finding) -> QuantizeResult:
        """The result with what the trials and the search say."""
        if self.line is not None:
            result.ledger.add(self.line)
        return _told(result, finding)

    def run(self) -> tuple[QuantizeResult, Recipe]:
        narrow = quantize_model(self.model, self.statistics, self.recipe)
        times = self._times(narrow)
        try:
            first = self._tried([()])[0]
            before = times(())
            limit = self.goal.budget_ms
            if limit and before is not None and before > limit:
                self.kept.forget()
                return self._end(narrow, over_budget(self._outcome((), first, first, before, before))), self.recipe
            chosen: Names = () if self._is_good(first) else self._chosen(narrow, first)
            chosen = self._in_time(chosen, times)
            worth = self._tried([chosen])[0]
        finally:
            self.candidates.close()
        time = times(chosen)
        self.kept.forget()
        outcome = self._outcome(chosen, first, worth, before, time)
        if not chosen:
            return self._end(narrow, reached(outcome) if self._is_good(first) else unreached(outcome)), self.recipe
        recipe = with_wide(self.recipe, chosen)
        result = quantize_model(self.model, self.statistics, recipe)
        return self._end(result, reached(outcome)), recipe

    def _outcome(self, chosen: Names, first: Worth, worth: Worth, before: float | None,
                 time: float | None) -> Outcome:
        return Outcome(goal=self.goal, chosen=chosen, first=first, worth=worth, first_ms=before, ms=time,
                       evaluated=self.candidates.evaluated, reused=self.candidates.reused, samples=len(self.samples))

    def _times(self, narrow: QuantizeResult) -> Callable[[Names], float | None]:
        """What a set of operators takes on the target, by its compiler's estimate; None where there is none."""

        def time(names: Names) -> float | None:
            if not self.goal.target:
                return None
            name = f"time {digest(names)}"
            if name not in self.kept:
                made = narrow if not names else quantize_model(self.model, self.statistics,
                                                               with_wide(self.recipe, names))
                self.kept.add(name, self._latency(made))
                self.reporter.advance(self.candidates.evaluated, 0)
            found: float | None = self.kept[name]
            return found

        return time

    def _latency(self, made: QuantizeResult) -> float | None:
        try:
            return latency(made.model, self.goal.target, self.folder)
        except VitrifyError:
            if self.goal.budget_ms:
                raise
            return None                 # the time was not asked for, so it is not worth a refusal

    def _chosen(self, narrow: QuantizeResult, first: Worth) -> Names:
        """The operators that the goal takes, those needed most first."""
        from vitrify.pipeline.quantizing.search.ordering import order

        self.steps = self._open_steps(order(self.model.main, self._costs(narrow)))
        self.sets = _growing([step.names for step in self.steps])
        everything = self._everything()
        if not self.sets or not everything:
            return ()
        if not self.goal.metric:
            return everything
        whole = self._tried([everything])[0]
        if not self._is_good(whole):
            near = whole.quality - WORTH_IT / _unit(self.goal)
            if near < first.quality:
                return ()
            self.least = near
        found = shortest(self.sets, self._tried, self._is_good, self._guess(first))
        chosen = everything if found is None else self.sets[found]
        chosen = self._from_input(chosen, everything)
        return pruned(self._ranked(chosen), self._tried, self._is_good)

    def _costs(self, narrow: QuantizeResult) -> dict[str, float]:
        """What the rounding of each tensor costs the outputs; found once for a search, however often it is stopped."""
        from vitrify.pipeline.quantizing.search.ordering import rounding_costs

        if COSTS not in self.kept:
            self.kept.add(COSTS, rounding_costs(self.model, self.path, narrow.model, self.samples[0], self.folder,
                                                self.reporter.advance))
        return dict(self.kept[COSTS])

    def _open_steps(self, steps: Sequence[Step]) -> list[Step]:
        """The steps without the operators whose width the recipe itself says."""
        from dataclasses import replace

        said = {node.name for node in self.model.main
                if self.recipe.override(node_names(node), node.op.kind).activations is not None}
        left = [replace(step, names=tuple(n for n in step.names if n not in said)) for step in steps]
        return [step for step in left if step.names]

    def _from_input(self, chosen: Names, everything: Names) -> Names:
        """Return a shorter set of all operators up to some place, if one does; else the one that is known."""
        sets = [everything[:count] for count in range(1, len(everything) + 1)]
        most = int(SHORTER * len(chosen))
        if most < 1 or not self._is_good(self._tried([sets[most - 1]])[0]):
            return chosen
        found = shortest(sets[:most], self._tried, self._is_good, upper=most - 1)
        return chosen if found is None else sets[found]

    def _everything(self) -> Names:
        """All operators that 16 bits can do something for, in the file's order."""
        named = {name for step in self.steps for name in step.names}
        return tuple(dict.fromkeys(node.name for node in self.model.main if node.name in named))

    def _guess(self, first: Worth) -> int | None:
        """The step at which the rounding that is left should be little enough, for a goal in decibels."""
        if self.goal.measure.name != "sqnr":
            return None
        noise, allowed = 10 ** (-first.quality / 10), 10 ** (-self.least / 10)
        for number, step in enumerate(self.steps):
            noise -= step.gain
            if noise <= allowed:
                return number
        return None

    def _in_time(self, chosen: Names, times: Callable[[Names], float | None]) -> Names:
        """Return as many of the operators, those needed most, as the budget allows."""
        if not self.goal.budget_ms:
            return chosen
        ranked = self._ranked(chosen)

        def fits(count: int) -> bool:
            value = times(ranked[:count])
            return value is None or value <= self.goal.budget_ms

        if fits(len(ranked)):
            return chosen
        low, high = 0, len(ranked)
        while high - low > max(1, len(ranked) // FINENESS):
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return ranked[:low]

    def _ranked(self, chosen: Names) -> Names:
        """The chosen operators, those that gain most first."""
        wanted = set(chosen)
        ranked = [name for step in self.steps for name in step.names if name in wanted]
        return tuple(dict.fromkeys([*ranked, *chosen]))

    def _tried(self, sets: Sequence[Names]) -> list[Worth]:
        return self.candidates.worth(sets)

    def _is_good(self, worth: Worth) -> bool:
        """True when the goal is reached; with a budget alone it never is: the best is looked for."""
        return bool(self.goal.metric) and worth.quality >= self.least


def _compared(model: Model, path: Path, data: DataOptions,
              goal: Goal) -> tuple[list[Mapping[str, Array]], list[Mapping[str, Array]]]:
    """The samples that candidates are compared on, and the float model's answers to them."""
    from vitrify import runtimes
    from vitrify.data.binding import identity_interface

    most = COUNTED if goal.measure.is_share else LOOKED_AT
    samples = list(data.open(model.interface or identity_interface(model), most).walk(skipped=[]))
    with runtimes.open(path) as opened:
        answers = [opened.run(sample) for sample in samples]
    _refuse_misfit(goal, answers)
    if goal.measure.is_share:
        return list(samples), list(answers)
    energy = [sum(float(np.square(v.astype(np.float64)).sum()) for v in a.values() if v.dtype.kind == "f")
              for a in answers]
    loudest = sorted(range(len(samples)), key=lambda i: -energy[i])[:COMPARED]
    return [samples[i] for i in loudest], [answers[i] for i in loudest]


def _refuse_misfit(goal: Goal, answers: Sequence[Mapping[str, Array]]) -> None:
    """Refuse a metric that says nothing of what the model gives.

    Raises:
        UsageError: it does not.
    """
    why = goal.measure.misfit(answers)
    if why:
        fit = [METRICS[name] for name in fitting(answers)]
        raise UsageError.of("search.misfit", f"{goal.measure.name} says nothing of this model: {why}",
                            why=f"{goal.measure.name} counts {goal.measure.text}" if goal.measure.is_share else "",
                            help="say one of --target-quality " + ", ".join(
                                f"'{one.name}>={one.example:g}'" for one in fit) if fit else "")


def _growing(steps: Sequence[Names]) -> list[Names]:
    """Sets that grow by a step each, the first operators first."""
    sets: list[Names] = []
    for names in steps:
        sets.append((*(sets[-1] if sets else ()), *names))
    return sets


def _unit(goal: Goal) -> float:
    """What turns a metric's difference into the unit of WORTH_IT."""
    return 100.0 if not goal.measure.unit else 1.0


def _told(result: QuantizeResult, finding: Finding) -> QuantizeResult:
    from dataclasses import replace

    return replace(result, findings=(*result.findings, finding))

