"""Quantizing well enough: where 8 bits keep too little of an output, operators compute in 16 bits, as few as possible.

Errors of the first layers go through all others, so the 16 bits begin at the input; how far they reach is searched for
by halving, on the calibration samples with the most signal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.ir import Model
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.scores import FOUND, MARGIN, Off, ScoreJudge, scores_of
from vitrify.pipeline.steps import quantize_model

if TYPE_CHECKING:
    from vitrify.quant import QuantizeResult, Recipe, Statistics

Array = np.ndarray[Any, np.dtype[Any]]
Outputs = Mapping[str, Array]

LOOKED_AT, COMPARED = 8, 4
"""Samples that the float model runs on, and how many of them the candidates are compared on."""

FINENESS = 16
"""The search ends when it knows the place to this share of the operators."""

SCORES_LOOKED_AT = 16
"""Samples on which the float model looks for scores that count."""

SCORE_FINENESS = 4
"""As FINENESS, for scores: their search runs without being asked for, so it takes few candidates."""

ENERGY = 0.99
"""Share of the outputs' energy that the compared samples must hold; fewer are taken when they do."""


def quantize_enough(model: Model, path: Path, statistics: Statistics, recipe: Recipe,
                    data: DataOptions) -> tuple[QuantizeResult, Recipe]:
    """Quantize a float model so that its outputs keep ``recipe.least_db``; returns the recipe that does.

    Args:
        model: the float model.
        path: its file.
        statistics: what calibration saw.
        recipe: what is quantized how; without ``least_db``, or with ``wide_until`` given, it is followed as it is.
        data: the calibration samples.

    Raises:
        VitrifyError: as ``quantize_model``.
    """
    if recipe.trials != "none" and not data.random:
        from vitrify.pipeline.quantizing.trials import tried

        recipe, line = tried(model, path, statistics, recipe, data)
        made, recipe = quantize_enough(model, path, statistics, msgspec.structs.replace(recipe, trials="none"), data)
        if line is not None:
            made.ledger.add(line)
        return made, recipe
    result = quantize_model(model, statistics, recipe)
    if data.random and recipe.least_db:
        return _with(result, _unjudged(recipe.least_db)), recipe
    if recipe.wide_until or recipe.activations == "int16" or data.random:
        return result, recipe
    if not recipe.least_db:
        return _score_well(result, model, statistics, recipe, data)
    with temporary_folder() as folder:
        search = _Search(model, path, statistics, recipe, data, Path(folder) / "candidate.tflite")
        return search.run(result)


def _score_well(result: QuantizeResult, model: Model, statistics: Statistics, recipe: Recipe,
                data: DataOptions) -> tuple[QuantizeResult, Recipe]:
    """Let operators of a detector compute in 16 bits until scores and boxes are as near as ``score_error`` asks."""
    from vitrify.data.binding import identity_interface

    names = scores_of(result, model) if recipe.score_error else []
    if not names:
        return result, recipe
    with temporary_folder() as folder:
        samples = list(data.open(model.interface or identity_interface(model), SCORES_LOOKED_AT).walk(skipped=[]))
        judge = ScoreJudge(model, names, samples, Path(folder))
        first = judge.off(result)
        if not judge.finds or first.share(recipe.score_error) <= MARGIN:
            return result, recipe
        order = _places(model, result)
        low, high = 0, len(order) - 1
        best: tuple[QuantizeResult, Recipe, Off] | None = None
        at = high
        while best is None or high - low > len(order) // SCORE_FINENESS:
            wider = msgspec.structs.replace(recipe, wide_until=order[at])
            candidate = quantize_model(model, statistics, wider)
            off = judge.off(candidate)
            enough = off.share(recipe.score_error) <= MARGIN
            if enough or best is None:
                best, high = (candidate, wider, off), at
            else:
                low = at + 1
            if not enough and at == len(order) - 1:
                break                                   # all in 16 bits is not enough: as good as it gets
            at = (low + high) // 2
    if best[2].share(recipe.score_error) >= first.share(recipe.score_error):
        return result, recipe
    return _with(best[0], _scored(best[0], best[1], first, best[2])), best[1]


def _places(model: Model, made: QuantizeResult) -> list[str]:
    """The operators, by name and in order, that 16 bits can reach to: those that are still in the file."""
    kept = {node.name for node in made.model.main}
    return list(dict.fromkeys(node.name for node in model.main if node.name in kept))


def _scored(result: QuantizeResult, recipe: Recipe, before: Off, after: Off) -> Finding:
    wide, nodes = len(result.plan.wide), len(result.model.main)
    return Finding(
        code="quant.scores", severity=Severity.WARNING, where=f"everything up to '{recipe.wide_until}'",
        headline=f"{wide} of {nodes} operators compute with 16-bit activations: of what scores above {FOUND} on "
                 f"the samples, {after}",
        why=f"score_error = {recipe.score_error:g} was asked for, and a pixel; all in 8 bits, {before}",
        help="an Ethos-U65 computes with 16 bits at about half the speed; score_error = 0 in the recipe keeps all in "
             "8 bits")


class _Search:
    """The float model's answers on a few samples, and candidates held against them."""

    def __init__(self, model: Model, path: Path, statistics: Statistics, recipe: Recipe, data: DataOptions,
                 candidate: Path) -> None:
        from vitrify.data.binding import identity_interface

        self._model = model
        self._statistics = statistics
        self._recipe = recipe
        self._candidate = candidate
        samples = list(data.open(model.interface or identity_interface(model), LOOKED_AT).walk(skipped=[]))
        self._compared = _loudest([(sample, answer) for sample, answer in zip(samples, _answers(path, samples, None),
                                                                             strict=True)])

    def run(self, narrow: QuantizeResult) -> tuple[QuantizeResult, Recipe]:
        """Return the candidate with the fewest operators in 16 bits that is good enough, or the best there is."""
        first = self._db(narrow)
        if first >= self._recipe.least_db:
            return narrow, self._recipe
        names = _places(self._model, narrow)
        low, high = 0, len(names) - 1
        best = None
        while high - low > len(names) // FINENESS:
            middle = (low + high) // 2
            found = self._try(names[middle])
            if found[1] >= self._recipe.least_db:
                best, high = found, middle
            else:
                low = middle + 1
        result, db, recipe = best or self._try(names[high])
        if db <= first:
            return _with(narrow, _short(first, self._recipe.least_db)), self._recipe
        return _with(result, _widened(result, recipe, first, db)), recipe

    def _try(self, name: str) -> tuple[QuantizeResult, float, Recipe]:
        recipe = msgspec.structs.replace(self._recipe, wide_until=name)
        result = quantize_model(self._model, self._statistics, recipe)
        return result, self._db(result), recipe

    def _db(self, result: QuantizeResult) -> float:
        """The SQNR of the worst output, over all compared samples together."""
        from vitrify import tflite

        tflite.write(result.model, self._candidate)
        given = _answers(self._candidate, [sample for sample, _ in self._compared], "optimized")
        wanted = [answer for _, answer in self._compared]
        return min(_sqnr([w[name] for w in wanted], [g[name] for g in given]) for name in wanted[0])


def _answers(path: Path, samples: Sequence[Mapping[str, Array]], kernels: str | None) -> list[Outputs]:
    from vitrify import runtimes

    with runtimes.open(path, kernels=kernels) if kernels else runtimes.open(path) as opened:
        return [opened.run(sample) for sample in samples]


def _loudest(answered: Sequence[tuple[Mapping[str, Array], Outputs]]) -> list[tuple[Mapping[str, Array], Outputs]]:
    """The samples whose outputs hold most of the energy: where nothing is found there is nothing to compare."""
    energies = [sum(_energy(value) for value in answer.values()) for _, answer in answered]
    order = sorted(range(len(answered)), key=lambda i: -energies[i])
    chosen: list[int] = []
    while len(chosen) < min(COMPARED, len(order)) and (
            not chosen or sum(energies[i] for i in chosen) < ENERGY * sum(energies)):
        chosen.append(order[len(chosen)])
    return [answered[i] for i in chosen]


def _energy(value: Array) -> float:
    return float(np.square(value.astype(np.float64)).sum())


def _sqnr(wanted: Sequence[Array], given: Sequence[Array]) -> float:
    signal = sum(_energy(value) for value in wanted)
    noise = sum(_energy(w.astype(np.float64) - g) for w, g in zip(wanted, given, strict=True))
    return float("inf") if noise == 0 else float(10 * np.log10(max(signal, 1e-300) / noise))


def _with(result: QuantizeResult, finding: Finding) -> QuantizeResult:
    from dataclasses import replace

    return replace(result, findings=(*result.findings, finding))


def _unjudged(least_db: float) -> Finding:
    return Finding(code="quant.unjudged", severity=Severity.WARNING,
                   headline=f"{least_db:g} dB are asked for, and everything was left in 8 bits",
                   why="what random samples keep tells nothing of real ones",
                   help="calibrate with --data and real samples")


def _widened(result: QuantizeResult, recipe: Recipe, before: float, after: float) -> Finding:
    wide, nodes = len(result.plan.wide), len(result.model.main)
    short = "" if after >= recipe.least_db else f", {recipe.least_db - after:.1f} dB short"
    return Finding(
        code="quant.wide", severity=Severity.WARNING, where=f"everything up to '{recipe.wide_until}'",
        headline=f"{wide} of {nodes} operators compute with 16-bit activations: {after:.1f} dB instead of "
                 f"{before:.1f}{short}",
        why=f"{recipe.least_db:g} dB were asked for; all in 8 bits, an output keeps {before:.1f} dB",
        help="an Ethos-U65 computes with 16 bits at about half the speed; least_db = 0 keeps all in 8 bits")


def _short(found: float, asked: float) -> Finding:
    return Finding(code="quant.short", severity=Severity.WARNING,
                   headline=f"an output keeps {found:.1f} dB of {asked:g} asked, and no more with 16-bit activations",
                   why="what is lost is not lost in the activations")
