"""Runs a model before and after fixes in LiteRT's reference kernels, on the same values, and compares them in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from vitrify import tflite
from vitrify.ir import Interface, Model, Tensor
from vitrify.runtimes.base import Observation
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.litert.runtime import Kernels

Array = np.ndarray[Any, np.dtype[Any]]
Inputs = Mapping[str, Array]

RUNS = 3
SECONDS = 300.0
"""The limit of one run: reference kernels take a minute for the largest models of the zoo."""
_PLAIN_ONLY = frozenset({"CEIL", "DEPTH_TO_SPACE", "ELU", "ROUND", "SUM"})
"""LiteRT 2.3 has no reference kernels of these, or wrong ones; such a model runs in plain kernels, before and after."""
_FLOAT = 0.01
"""Float outputs of two runtimes may differ by so much of what would be a step, and count as equal."""
_UNBOUNDED = 3.0
_INDICES = 2
"""Integers without a scale are indices, lengths or flags: 0 and 1 are so almost always."""


class Proof:
    """The model as it was: its inputs, and what it gives for them."""

    def __init__(self, model: Model, folder: Path, runs: int = RUNS, seed: int = 0) -> None:
        self.folder = folder
        self.path = folder / "before.tflite"
        tflite.write(model, self.path)
        plain = any(node.op.kind in _PLAIN_ONLY for node in model.main)
        self._kernels: Kernels = "optimized" if plain else "reference"
        self._runtime = self._open(self.path)
        self.name = self._runtime.name
        self.inputs = random_inputs(model, self._runtime.interface, runs, seed)
        self._known = frozenset(self._runtime.tensors)
        self._before = [self._runtime.observe(given) for given in self.inputs]

    def __enter__(self) -> Proof:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._runtime.close()

    def _open(self, path: Path) -> LiteRT:
        return LiteRT(path, kernels=self._kernels, seconds=SECONDS)

    def _more(self, runtime: LiteRT) -> dict[str, Array]:
        """Zeros for inputs that the model did not have before: states start so."""
        return {b.name: np.zeros(b.shape, b.dtype) for b in runtime.interface.inputs if b.name not in self.inputs[0]}

    def worst(self, path: Path, *, cut: bool = False) -> float:
        """Return the largest difference of the outputs of the file at ``path``, in steps; 0 when all are equal.

        Of a file that is ``cut``, the outputs that it still has and those that were inner tensors before.

        Raises:
            VitrifyError: LiteRT refuses the file or dies of it.
        """
        with self._open(path) as runtime:
            more = self._more(runtime)
            apart = max((_difference(old, runtime.observe({**given, **more}), cut)
                         for given, old in zip(self.inputs, self._before, strict=True)), default=0.0)
            ends = [binding.name for binding in runtime.interface.outputs] if cut else []
        return max([apart, *self.at(path, ends).values()])

    def at(self, path: Path, names: Sequence[str]) -> dict[str, int]:
        """Return the largest difference of inner tensors by name, in steps of the tensor; of the first input only."""
        with self._open(path) as runtime:
            both = frozenset(runtime.tensors) & self._known
            wanted = [name for name in dict.fromkeys(names) if name in both]
            if not wanted:
                return {}
            old = self._runtime.trace(self.inputs[0], wanted)
            new = runtime.trace({**self.inputs[0], **self._more(runtime)}, wanted)
        return {name: _apart(old[name].raw, new[name].raw) for name in wanted if name in old and name in new}


def random_inputs(model: Model, interface: Interface, runs: int, seed: int) -> list[dict[str, Array]]:
    """Return values over the whole range of each input of the source model, by name; the same for the same seed."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        given: dict[str, Array] = {}
        for binding in interface.inputs:
            tensor = model.main.inputs[binding.position]
            low, high = _interval(tensor)
            kind = np.dtype(binding.dtype)
            if kind.kind == "f":
                given[binding.name] = random.uniform(low, high, binding.shape).astype(kind)
            elif kind.kind in "iu" and tensor.quantization is not None:
                info = np.iinfo(kind)
                given[binding.name] = random.integers(info.min, info.max, binding.shape, kind, endpoint=True)
            else:
                given[binding.name] = random.integers(0, _INDICES, binding.shape).astype(kind)
        found.append(given)
    return found


def _interval(tensor: Tensor) -> tuple[float, float]:
    """The real values that an input stands for, or that the QUANTIZE behind a float input takes."""
    beside = [tensor, *(user.output for user in tensor.users if user.op.kind == "QUANTIZE")]
    for one in beside:
        kind = one.dtype.numpy
        if one.quantization is not None and kind is not None and kind.kind in "iu" and one.quantization.scale.size == 1:
            info, scale, zero = np.iinfo(kind), float(one.quantization.scale[0]), int(one.quantization.zero_point[0])
            return scale * (int(info.min) - zero), scale * (int(info.max) - zero)
    return -_UNBOUNDED, _UNBOUNDED


def _difference(old: Observation, new: Observation, cut: bool) -> float:
    worst = 0.0
    for name, before in old.outputs.items():
        if cut and name not in new.outputs:
            continue
        after = new.outputs[name]
        if before.shape != after.shape:
            return float("inf")
        if np.array_equal(before, after, equal_nan=before.dtype.kind == "f"):
            continue
        apart = np.abs(np.asarray(before, np.float64) - np.asarray(after, np.float64))
        step = old.steps.get(name, new.steps.get(name))
        if step is None:        # of a host program or a float output: there are no steps to count
            step = np.maximum(np.abs(np.asarray(before, np.float64)).max() / 255, 1e-12)
            apart = np.where(apart < _FLOAT * step, 0, apart)
        with np.errstate(invalid="ignore"):
            worst = max(worst, float(np.nanmax(apart / step)))
    return worst


def _apart(old: Array, new: Array) -> int:
    if old.shape != new.shape:
        return 1 << 30
    if old.dtype.kind == "f" or old.dtype.kind == "b":
        return int(not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"))
    return int(np.abs(old.astype(np.int64) - new.astype(np.int64)).max()) if old.size else 0
