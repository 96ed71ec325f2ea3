"""Samples from Python: arrays, dicts of arrays, and iterables of them, taken one at a time and never gathered.

What an iterable gives can be had only once, so a few samples, spread over all, are kept in files for what comes after
calibration.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.data.fitting import fit
from vitrify.data.preprocess import PictureShape, Preprocess, read_picture
from vitrify.data.samples import Samples, open_samples
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding, Interface

Array = np.ndarray[Any, np.dtype[Any]]

KEPT = 16
"""Samples that stay at hand at most."""


class Feed:
    """The samples that Python code gives; walked once. ``folder`` takes those that are kept.

    Each item is an array, a picture's path, a dict of them by input name, or a tuple in the order of the inputs; one
    array or dict may hold several samples along its first axis. What follows the inputs in a tuple, as labels do, is
    left out.
    """

    def __init__(self, data: object, folder: Path, preprocess: Preprocess | None = None,
                 limit: int | None = None, enough: bool = False) -> None:
        self._items = _items(data)
        self.enough = enough
        self._folder, self.preprocess, self._limit = folder, preprocess or Preprocess(), limit
        self.inputs: tuple[InputBinding, ...] = ()
        self.findings: list[Finding] = []
        self.declared: Preprocess | None = None
        self._step = 1
        self._kept: dict[int, Path] = {}

    def bind(self, interface: Interface) -> Feed:
        """Say what inputs the samples are for."""
        self.inputs = tuple(interface.inputs)
        return self

    def name(self, number: int) -> str:
        """What messages call sample ``number``."""
        return f"sample {number} of the data given"

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Yield the samples.

        Raises:
            DataError: one does not fit; says which.
        """
        every = itertools.chain.from_iterable(self._split(item, number) for number, item in enumerate(self._items))
        for number, sample in enumerate(itertools.islice(every, self._limit)):
            self._keep(number, sample)
            yield sample

    def kept(self, limit: int | None = None) -> Samples:
        """The samples that were kept.

        Raises:
            DataError: there are none: the feed has not been walked.
        """
        return open_samples(self._folder, Interface(inputs=self.inputs, outputs=()), limit=limit)

    def _keep(self, number: int, sample: Mapping[str, Array]) -> None:
        if number % self._step:
            return
        path = self._folder / f"{number:012d}.npz"
        np.savez(path, **{name: np.asarray(array) for name, array in sample.items()})  # type: ignore[arg-type]
        self._kept[number] = path
        if len(self._kept) > KEPT:
            self._step *= 2
            for other in [n for n in self._kept if n % self._step]:
                self._kept.pop(other).unlink()

    def _split(self, item: object, number: int) -> Iterator[dict[str, Array]]:
        """The samples of one item."""
        given = self._by_name(item, number)
        problems, fits = [], {}
        for binding in self.inputs:
            if binding.name not in given:
                problems.append(Finding(code="data.missing_input", where=f"item {number} of the data given", headline=
                                        f"no array for input '{binding.name}'; there are "
                                        f"{', '.join(map(repr, given)) or 'none'}"))
                continue
            array = given[binding.name] = self._array(given[binding.name], binding, number)
            fitted = fit(f"item {number}", binding, array.shape, array.dtype, self.preprocess)
            if isinstance(fitted, Finding):
                problems.append(fitted)
            else:
                fits[binding.name] = fitted
                self.declared = self.preprocess if fitted.pixels else self.declared
        if not problems and len({f.count for f in fits.values()}) > 1:
            listed = ", ".join(f"'{name}' {fitted.count}" for name, fitted in fits.items())
            problems.append(Finding(code="data.counts", where=f"item {number} of the data given",
                                    headline=f"the inputs have unequal numbers of samples: {listed}"))
        if problems:
            raise DataError(problems)
        for index in range(next(iter(fits.values())).count):
            yield {b.name: fits[b.name].apply(_one(given[b.name], index, fits[b.name].inner), b, self.preprocess)
                   for b in self.inputs}

    def _by_name(self, item: object, number: int) -> dict[str, Any]:
        if isinstance(item, Mapping):
            return dict(item)
        if isinstance(item, tuple | list) and (len(self.inputs) > 1 or not _is_numbers(item)):
            if len(item) > len(self.inputs) and not self.findings:
                self.findings.append(Finding(
                    code="data.extra", severity=Severity.INFO, where=f"item {number} of the data given",
                    headline=f"an item has {len(item)} values, the model takes {len(self.inputs)} of them"))
            return {b.name: value for b, value in zip(self.inputs, item, strict=False)}
        return {self.inputs[0].name: item} if len(self.inputs) == 1 else {}

    def _array(self, value: object, binding: InputBinding, number: int) -> Array:
        shape = PictureShape.of(tuple(binding.shape))
        if isinstance(value, str | Path) and shape is not None:
            self.declared = self.preprocess
            return read_picture(Path(value), self.preprocess, shape)
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise _no_array(value, binding, number) from error
        if array.dtype.kind not in "fiubV":
            raise _no_array(value, binding, number)
        plain = isinstance(value, int | float | list)                      # Python's numbers have no type of their own
        return array.astype(np.float64) if plain and is_float(element_type(binding.dtype)) else array


def _items(data: object) -> Iterable[Any]:
    """What is walked: an array or a dict is one item, and so is a list of numbers."""
    if isinstance(data, Mapping) or hasattr(data, "__array__"):
        return [data]
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return [data] if isinstance(data, list | tuple) and _is_numbers(data) else data
    raise UsageError.of("call.data", f"data is of type {type(data).__name__}",
                        help="give a folder, an array, a dict of arrays by input name, or an iterable of those")


def _is_numbers(items: Sequence[Any]) -> bool:
    """True for numbers, nested as they may be."""
    first = items[0] if len(items) else 0
    return isinstance(first, int | float) or (isinstance(first, list) and _is_numbers(first))


def _one(array: Array, index: int, inner: tuple[int, ...]) -> Array:
    return array if array.shape == inner else array[index]


def _no_array(value: object, binding: InputBinding, number: int) -> DataError:
    return DataError.of("data.array", f"what is given for input '{binding.name}' is of type {type(value).__name__}, no "
                        "array", where=f"item {number} of the data given")
