"""Values for the inputs of drafts: what the user's data becomes inside the model, or random ones of that range."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.reducing.drafts import Array, Draft, InputView, cropped
from vitrify.pipeline.steps import is_tflite


class Values:
    """Gives values by the user's names. ``traced`` is a folder with one array for each tensor, where there is one."""

    def __init__(self, traced: Path | None, names: Mapping[str, int], seed: int, is_random: bool) -> None:
        self._folder, self._names, self._seed = traced, names, seed
        self.is_random = is_random
        self.is_needed = True

    @property
    def is_traced(self) -> bool:
        """True when the values are those of a run of the whole model."""
        return self._folder is not None

    def of(self, draft: Draft) -> dict[str, Array]:
        """Values for each input: those of the whole model's run, cut to the shape."""
        return {view.name: self._value(view) for view in draft.inputs} if self.is_needed else {}

    def drawn(self, draft: Draft) -> dict[str, Array]:
        """Random values with the range of those."""
        found = {}
        for view in draft.inputs:
            value = self._value(view)
            rng = self._rng(view)
            if value.dtype.kind == "f" and value.size:
                low, high = np.nanmin(value), np.nanmax(value)
                value = rng.uniform(low, high, view.shape).astype(value.dtype)
                value.reshape(-1)[[0, -1]] = low, high
            elif value.dtype.kind in "iu" and value.size:
                value = rng.integers(int(value.min()), int(value.max()), view.shape, endpoint=True).astype(value.dtype)
            found[view.name] = value
        return found

    def _value(self, view: InputView) -> Array:
        if self._folder is not None and view.source in self._names:
            array = np.load(self._folder / f"{self._names[view.source]}.npy", mmap_mode="r")
            return np.array(cropped(array, view.shape))
        return self._made_up(view)

    def _made_up(self, view: InputView) -> Array:
        dtype = np.dtype(view.dtype if view.dtype in np.sctypeDict else "float32")
        rng = self._rng(view)
        if dtype.kind == "f":
            return np.asarray(rng.random(view.shape), dtype)
        if dtype.kind == "b":
            return np.asarray(rng.random(view.shape) > 0.5)
        if dtype.itemsize == 1:
            return np.asarray(rng.integers(0, 100, view.shape), dtype)
        return np.zeros(view.shape, dtype)

    def _rng(self, view: InputView) -> Any:
        return np.random.default_rng((self._seed, zlib.crc32(view.source.encode())))


def trace(path: Path, folder: Path, data: DataOptions, conversion: ConvertOptions, seed: int) -> Values:
    """Run the whole model once and keep all of its tensors; where nothing runs it, values are made up."""
    from vitrify import runtimes

    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, int] = {}
    try:
        values = None if is_tflite(path) else conversion.values
        with runtimes.open(path, shapes=conversion.sizes, values=values) as runtime:
            given = data if data.given else DataOptions(random=True, samples=1, seed=seed)
            sample = next(iter(given.open(runtime.interface, 1, purpose="comparison")))
            found: dict[str, Any] = {name: np.asarray(array) for name, array in sample.items()}
            found |= {name: np.asarray(t.raw) for name, t in runtime.trace(sample).items()}
    except VitrifyError:
        if data.given:
            data.check()
        return Values(None, {}, seed, True)
    for number, (name, array) in enumerate(found.items()):
        np.save(folder / f"{number}.npy", array)
        names[name] = number
    return Values(folder, names, seed, not data.given)
