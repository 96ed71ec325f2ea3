"""Trying other calibrators and roundings: what keeps most of the outputs on the calibration samples is taken.

No rule tells beforehand whether a model's rare large values matter. At best effort the quantized model answers the
samples with each candidate in turn, and its answers are held against the float model's.
"""

from __future__ import annotations

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

SAMPLES = 8
"""Samples that candidates answer at most."""

CANDIDATES: tuple[tuple[dict[str, Any], ...], ...] = (
    ({"calibrator": "minmax"}, {"calibrator": "percentile"}, {"calibrator": "least-error"}),
    ({"rounding": "learned"}, {"rounding": "nearest"}),
    ({"bias_correction": False},),
)
"""One question after the other: what is best in one is kept for the next."""

WORTH_DB = 0.1
"""Less than this is chance."""


def tried(model: Model, path: Path, statistics: Statistics, recipe: Recipe,
          data: DataOptions) -> tuple[Recipe, LedgerEntry]:
    """Return the recipe, with what came out best, and a line that says what it won.

    Args:
        model: the float model.
        path: its file.
        statistics: what calibration saw, with histograms.
        recipe: what is quantized how.
        data: the calibration samples.
    """
    with temporary_folder() as folder:
        trial = _Trial(model, path, statistics, data, Path(folder) / "candidate.tflite")
        first = best = trial.decibels(recipe)
        asked, won = 1, []
        for question in CANDIDATES:
            chosen = recipe
            for candidate in question:
                changed = msgspec.structs.replace(recipe, **candidate)
                if changed == recipe:
                    continue
                found, asked = trial.decibels(changed), asked + 1
                if found > best + WORTH_DB:
                    won.append(f"{', '.join(f'{k} = {v}' for k, v in candidate.items())}: {found - best:+.1f} dB")
                    chosen, best = changed, found
            recipe = chosen
    return recipe, LedgerEntry(
        name="trials", summary=f"{asked} ways to quantize compared on the calibration samples", changes=len(won),
        nodes_before=len(model.main), nodes_after=len(model.main), exactness=Exactness.APPROXIMATE,
        note=f"{'; '.join(won) or 'the first was best'}; the worst output keeps {best:.1f} dB, {first:.1f} at first")


class _Trial:
    """The float model's answers, and candidates held against them."""

    def __init__(self, model: Model, path: Path, statistics: Statistics, data: DataOptions, file: Path) -> None:
        from vitrify import runtimes
        from vitrify.data.binding import identity_interface

        self._model, self._statistics, self._file = model, statistics, file
        self._samples = list(data.open(model.interface or identity_interface(model), SAMPLES).walk(skipped=[]))
        with runtimes.open(path, kernels="xnnpack") as opened:
            answers = [opened.run(sample) for sample in self._samples]
        self._wanted = [{n: v.astype(np.float64) for n, v in a.items() if v.dtype.kind == "f"} for a in answers]

    def decibels(self, recipe: Recipe) -> float:
        """The SQNR of the worst output over all samples together."""
        from vitrify import runtimes, tflite

        result: QuantizeResult = quantize_model(self._model, self._statistics, recipe)
        tflite.write(result.model, self._file)
        with runtimes.open(self._file, kernels="optimized") as opened:
            given = [opened.run(sample) for sample in self._samples]
        return min((_sqnr([w[name] for w in self._wanted], [g[name] for g in given]) for name in self._wanted[0]),
                   default=0.0)


def _sqnr(wanted: list[Array], given: list[Array]) -> float:
    signal = sum(float(np.square(w).sum()) for w in wanted)
    noise = sum(float(np.square(w - g).sum()) for w, g in zip(wanted, given, strict=True))
    return float(10 * np.log10(max(signal, 1e-300) / max(noise, 1e-300)))
