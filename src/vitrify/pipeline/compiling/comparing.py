"""A compiled file's tensors beside its source's: differences in steps, and how many are roundings.

An NPU may round other than LiteRT, and roundings pile up in a deep model. LiteRT's own two sets of kernels do too, and
how far these are apart on the same values is the measure: a compiled file may differ by twice as much, and by a few
steps in any case. Mean differences are held to the same, since a shifted zero point moves every value a little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from vitrify.ir import Model, Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Sample = Sequence[Array]

STEPS = 2.0
"""Steps that any value may differ by."""
MEAN_STEPS = 0.25
_MARGIN = 2.0           # times what LiteRT's kernels differ by
_FLOAT_STEPS = 127.0    # of a float tensor's largest value: its int8 step, were it quantized
SAMPLES = 3
SECONDS = 300.0


class Apart(NamedTuple):
    """How far two tensors are apart, in steps: the largest difference and the mean of all."""

    largest: float
    mean: float

    def __or__(self, other: Apart) -> Apart:
        return Apart(max(self.largest, other.largest), max(self.mean, other.mean))


NOTHING = Apart(0.0, 0.0)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What differences are allowed: ``steps`` for every value, where the user says so; None: as measured."""

    steps: float | None = None

    def allowed(self, floor: Apart) -> Apart:
        """Return what a tensor may differ by whose own kernels differ by ``floor``."""
        if self.steps is not None:
            return Apart(self.steps, self.steps)
        return Apart(max(STEPS, _MARGIN * floor.largest), max(MEAN_STEPS, _MARGIN * floor.mean))


def is_beyond(found: Apart, allowed: Apart) -> bool:
    """True when a difference is no rounding."""
    return found.largest > allowed.largest or found.mean > allowed.mean


def apart(given: Array, wanted: Array) -> Apart:
    """Return how far two tensors of one type and shape are apart; floats in 127ths of the largest value wanted."""
    if given.shape != wanted.shape or not wanted.size:
        return NOTHING if given.shape == wanted.shape else Apart(float("inf"), float("inf"))
    difference = np.abs(given.astype(np.float64) - wanted.astype(np.float64))
    if wanted.dtype.kind == "f":
        if not np.isfinite(difference).all():
            return Apart(float("inf"), float("inf"))
        difference /= max(float(np.abs(wanted).max()), 1e-30) / _FLOAT_STEPS
    return Apart(float(difference.max()), float(difference.mean()))


class Reference:
    """The source in LiteRT: what every tensor is, and how far LiteRT's own kernels are apart on it."""

    def __init__(self, path: Path, samples: Sequence[Sample]) -> None:
        self.path = path
        self.samples = samples
        self._values: list[dict[str, Array]] = []
        self._floors: dict[str, Apart] = {}
        self.name = ""

    def look(self, names: Sequence[str]) -> None:
        """Run the source on all samples and keep the named tensors.

        Raises:
            VitrifyError: LiteRT refuses the file.
        """
        from vitrify.runtimes.litert import LiteRT

        wanted = list(dict.fromkeys(names))
        with LiteRT(self.path, kernels="reference", seconds=SECONDS) as plain, \
                LiteRT(self.path, kernels="optimized", seconds=SECONDS) as quick:
            self.name = plain.name
            for sample in self.samples:
                values, other = plain.trace_raw(sample, wanted), quick.trace_raw(sample, wanted)
                self._values.append(values)
                for name in values:
                    self._floors[name] = self.floor(name) | apart(other[name], values[name])

    def value(self, sample: int, name: str) -> Array:
        """Return a tensor's value."""
        return self._values[sample][name]

    def floor(self, name: str) -> Apart:
        """Return how far LiteRT's kernels are apart on a tensor."""
        return self._floors.get(name, NOTHING)

    def against(self, name: str, given: Sequence[Array]) -> Apart:
        """Return how far the values of all samples are from the reference's."""
        found = NOTHING
        for number, array in enumerate(given):
            found |= apart(array, self.value(number, name))
        return found


def random_samples(model: Model, seed: int = 0) -> list[list[Array]]:
    """Return values over the whole range of each of the file's own inputs; the same for the same seed."""
    random = np.random.default_rng(seed)
    return [[_random(tensor, random) for tensor in model.main.inputs] for _ in range(SAMPLES)]


def _random(tensor: Tensor, random: np.random.Generator) -> Array:
    kind = np.dtype(tensor.dtype.numpy or np.uint8)
    if kind.kind == "f":
        return random.uniform(-1, 1, tensor.shape).astype(kind)
    if kind.kind in "iu" and tensor.quantization is not None:
        info = np.iinfo(kind)
        return random.integers(info.min, info.max, tensor.shape, kind, endpoint=True)
    return random.integers(0, 2, tensor.shape).astype(kind)      # indices, lengths and flags are 0 or 1 almost always


def recorded_samples(tensors: Sequence[Tensor], recorded: Mapping[str, Array]) -> Iterator[tuple[str, list[Array]]]:
    """Yield the recorded values of each tensor that was recorded, one for each sample, as the file holds them."""
    for tensor in tensors:
        if tensor.name in recorded:
            values = np.asarray(recorded[tensor.name])
            each = [values] if values.shape == tensor.shape else list(values)
            yield tensor.name, [_as_held(tensor, one) for one in each]


def _as_held(tensor: Tensor, value: Array) -> Array:
    kind = np.dtype(tensor.dtype.numpy or value.dtype)
    if value.dtype.kind == "f" and kind.kind in "iu" and tensor.quantization is not None:
        info, how = np.iinfo(kind), tensor.quantization
        steps = np.rint(value / how.scale[0]) + how.zero_point[0]
        return np.asarray(np.clip(steps, info.min, info.max)).astype(kind)
    return value.astype(kind)
