"""An .npz file of samples beside their labels: read as stacks, a stretch at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.arrays import Member, unreadable
from vitrify.data.fitting import Fit, fit
from vitrify.data.preprocess import PIXEL, PictureShape, Preprocess
from vitrify.ir.interface import InputBinding
from vitrify.pipeline.evaluating.sets.plain import LABELS

Array = np.ndarray[Any, np.dtype[Any]]


class LabelledArrays:
    """The only array of a file that is no labels, for a model's only input; read forward, nothing stays in memory."""

    def __init__(self, path: Path, name: str, binding: InputBinding, how: Preprocess) -> None:
        self._path, self._name, self._binding, self._how = path, name, binding, how
        self._place = 0
        self._member = self._opened()
        fitted = fit(path, binding, self._fitting(), self._member.dtype, how)
        if isinstance(fitted, Finding):
            raise DataError(fitted)
        self._fit: Fit = fitted
        self._count = int(self._member.shape[0])

    @classmethod
    def of(cls, path: Path, inputs: Sequence[InputBinding], how: Preprocess) -> LabelledArrays | None:
        """Open a file that has labels; None for any other."""
        if path.suffix.lower() != ".npz" or len(inputs) != 1:
            return None
        try:
            with zipfile.ZipFile(path) as archive:
                names = [n.removesuffix(".npy") for n in archive.namelist()]
            others = [n for n in names if n not in LABELS]
            if len(others) == len(names):
                return None
            own = inputs[0].name if inputs[0].name in others else others[0] if len(others) == 1 else ""
            return cls(path, own, inputs[0], how) if own else None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise unreadable(path, error) from error

    def _opened(self) -> Member:
        return Member(zipfile.ZipFile(self._path), f"{self._name}.npy")

    def _fitting(self) -> tuple[int, ...]:
        """The array's shape; grey pictures [n,h,w] of 8 bits have their channel last."""
        shape: tuple[int, ...] = tuple(self._member.shape)
        return (*shape, 1) if self._is_grey(shape) else shape

    def _is_grey(self, shape: tuple[int, ...]) -> bool:
        picture = PictureShape.of(tuple(self._binding.shape))
        return self._member.dtype == np.uint8 and len(shape) == 3 and picture is not None

    def __len__(self) -> int:
        return self._count

    def sample(self, index: int) -> dict[str, Array]:
        """Read one."""
        return {self._binding.name: self._fit.apply(self._values(index, 1), self._binding, self._how)}

    def _values(self, first: int, count: int) -> Array:
        each = self._fit.elements
        try:
            if first < self._place:
                self._member, self._place = self._opened(), 0
            self._member.skip((first - self._place) * each)
            self._place = first + count
            return self._member.read(count * each)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise unreadable(self._path, error) from error

    def stack(self, first: int, count: int) -> dict[str, Array] | None:
        """A stretch as one stack; None where each has to be brought to the model's size by itself."""
        shape, how, inner = PictureShape.of(tuple(self._binding.shape)), self._how, self._fit.inner
        if not self._fit.pixels:
            if self._fit.perm:
                return None
            values = self._values(first, count).reshape(count, *self._binding.shape)
            return {self._binding.name: values.astype(self._binding.dtype)}
        if shape is None or inner != (shape.height, shape.width, shape.channels) or how.fit == "crop" \
                or how.color == "bgr" or (how.color == "gray" and shape.channels != 1):
            return None
        pixels = self._values(first, count).reshape(count, *inner).astype(np.float32)
        values = pixels / np.float32(255) if how.scale == PIXEL else pixels * np.float32(how.scale)
        values = (values - np.asarray(how.mean, np.float32)) / np.asarray(how.std, np.float32)
        if shape.channels_first:
            values = values.transpose(0, 3, 1, 2)
        return {self._binding.name: np.ascontiguousarray(values).reshape(count, *self._binding.shape)}
