"""Trying other calibrators and roundings: what keeps most of the outputs on the calibration samples is taken.

No rule tells beforehand whether a model's rare large values matter: a single loud sample may stretch every range of a
network, and a single confident score may be all that a detector is for. So the quantized model answers the samples with
each candidate in turn, and its answers are held against the float model's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.files import temporary_folder
from vitrify.ir import LedgerEntry, Model
from vitrify.ir.ledger import Exactness
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.steps import quantize_model

if TYPE_CHECKING:
    from vitrify.quant import QuantizeResult, Recipe, Statistics

Array = np.ndarray[Any, np.dtype[Any]]
Question = tuple[dict[str, Any], ...]

SAMPLES = 8
"""Samples that candidates answer at most."""

TRIED_MACS = 8_000_000_000
"""Multiplications that a candidate may cost: heavy models answer fewer samples."""

FEWEST = 3
"""With fewer samples nothing can be told of how they differ."""

RANGES: Question = ({"calibrator": "percentile"}, {"calibrator": "moving-average"})
QUESTIONS: dict[str, tuple[Question, ...]] = {
    "ranges": (RANGES,),
    "all": ((*RANGES, {"calibrator": "minmax"}, {"calibrator": "least-error"}),
            ({"rounding": "learned"}, {"rounding": "nearest"}), ({"bias_correction": False},)),
}
"""One question after the other: what is best in one is kept for the next."""

QUICK: dict[str, Any] = {"rounding": "nearest", "weight_clipping": False}
"""How weights are rounded while only ranges are compared."""

WORTH_DB = 0.1
"""Less than this is chance."""

STRETCHED = 1.4
"""Ranges of this many times the average of the samples' own, in half of the tensors, are worth the time to ask."""

TOTAL = 0.25
"""How much the SQNR of all samples together counts, in which the loudest decide, beside that of each by itself."""

SMALL = 1 / 16
"""Rows of an output that stay below this share of the largest are judged apart, as scores beside boxes."""

CEILING = 80.0
"""More decibels than this are as good as any."""


def tried(model: Model, path: Path, statistics: Statistics, recipe: Recipe,
          data: DataOptions) -> tuple[Recipe, LedgerEntry | None]:
    """Return the recipe, with what came out best, and a line that says what it won; None where nothing was asked.

    Args:
        model: the float model.
        path: its file.
        statistics: what calibration saw, with histograms.
        recipe: what is quantized how.
        data: the calibration samples.
    """
    if recipe.trials == "ranges" and not _is_open(recipe, statistics):
        return recipe, None
    quick = QUICK if recipe.trials == "ranges" else {}
    with temporary_folder() as folder:
        trial = _Trial(model, path, statistics, data, Path(folder) / "candidate.tflite")
        if len(trial.wanted) < FEWEST or not trial.wanted[0]:
            return recipe, None
        first = best = trial.decibels(msgspec.structs.replace(recipe, **quick))
        asked, won = 1, []
        for question in QUESTIONS[recipe.trials]:
            chosen = recipe
            for candidate in question:
                changed = msgspec.structs.replace(recipe, **candidate)
                if changed == recipe:
                    continue
                found, asked = trial.decibels(msgspec.structs.replace(changed, **quick)), asked + 1
                if found > best + WORTH_DB:
                    won.append(f"{', '.join(f'{k} = {v}' for k, v in candidate.items())}: {found - best:+.1f} dB")
                    chosen, best = changed, found
            recipe = chosen
    return recipe, LedgerEntry(
        name="trials", summary=f"{asked} ways to quantize compared on the calibration samples", changes=len(won),
        nodes_before=len(model.main), nodes_after=len(model.main), exactness=Exactness.APPROXIMATE,
        note=f"{'; '.join(won) or 'the first was best'}; a sample's worst output keeps {best:.1f} dB, "
             f"{first:.1f} at first")


def _is_open(recipe: Recipe, statistics: Statistics) -> bool:
    """True where samples differ in their ranges, and the recipe leaves them to us."""
    if recipe.calibrator != "mixed" or recipe.activations == "int16":
        return False
    widths = [(seen.range.with_zero().width, seen.average.with_zero().width) for seen in statistics.tensors.values()]
    shares = [whole / own for whole, own in widths if own > 0]
    return bool(shares) and float(np.median(shares)) >= STRETCHED


class _Trial:
    """The float model's answers, and candidates held against them."""

    def __init__(self, model: Model, path: Path, statistics: Statistics, data: DataOptions, file: Path) -> None:
        from vitrify import runtimes
        from vitrify.data.binding import identity_interface

        self._model, self._statistics, self._file = model, statistics, file
        macs = sum(node.op.macs(node) for node in model.main)
        most = max(FEWEST, min(SAMPLES, TRIED_MACS // max(macs, 1)))
        self._samples = list(data.open(model.interface or identity_interface(model), most).walk(skipped=[]))
        with runtimes.open(path, kernels="xnnpack") as opened:
            answers = [opened.run(sample) for sample in self._samples]
        self.wanted = [{n: v.astype(np.float64) for n, v in a.items() if v.dtype.kind == "f"} for a in answers]
        self._parts = {n: _parts([w[n] for w in self.wanted]) for n in self.wanted[0]} if self.wanted else {}

    def decibels(self, recipe: Recipe) -> float:
        """What is kept of the worst part of the outputs, most samples counting alike."""
        from vitrify import tflite
        from vitrify.runtimes.litert import LiteRT

        result: QuantizeResult = quantize_model(self._model, self._statistics, recipe)
        tflite.write(result.model, self._file)
        with LiteRT(self._file, kernels="optimized", interface=result.model.interface) as opened:
            given = [opened.run(sample) for sample in self._samples]
        return min(self._kept(given, name, part) for name, parts in self._parts.items() for part in parts)

    def _kept(self, given: Sequence[Mapping[str, Array]], name: str, part: Any) -> float:
        """Halfway between mean and median of the samples' SQNR, and somewhat that of all together."""
        signal = np.array([np.square(w[name][part]).sum() for w in self.wanted])
        noise = np.array([np.square(w[name][part] - g[name][part]).sum() for w, g in zip(self.wanted, given,
                                                                                         strict=True)])
        own = _decibels(signal, noise)
        return float((np.mean(own) + np.median(own)) / 2 + TOTAL * _decibels(signal.sum(), noise.sum())) / (1 + TOTAL)


def _decibels(signal: Any, noise: Any) -> Any:
    return np.minimum(10 * np.log10(np.maximum(signal, 1e-300) / np.maximum(noise, 1e-300)), CEILING)


def _parts(answers: Sequence[Array]) -> list[Any]:
    """What of an output is judged apart: its large rows, and its small ones."""
    if answers[0].ndim < 3:
        return [...]
    others = tuple(axis for axis in range(answers[0].ndim) if axis != 1)
    extent = np.max([np.abs(answer).max(axis=others) for answer in answers], axis=0)
    large = extent >= SMALL * extent.max()
    return [(slice(None), rows) for rows in (large, ~large & (extent > 0)) if rows.any()]
