"""Samples in .npy and .npz files, read one at a time."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.fitting import Fit, fit
from vitrify.data.preprocess import Preprocess
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]


def unreadable(path: Path, error: Exception) -> DataError:
    """The error of a file that numpy cannot read."""
    return DataError(Finding(code="data.unreadable", headline=f"cannot read {path.name}: {error}", where=str(path),
                             help="repair or remove the file"))


class NpySource:
    """One .npy file: a sample, or several along its first axis. Nothing of it stays in memory."""

    def __init__(self, path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> None:
        if len(inputs) != 1:
            raise DataError(Finding(code="data.inputs", headline=f"{path.name} holds one array, the model takes "
                                    f"{len(inputs)}: {', '.join(repr(i.name) for i in inputs)}", where=str(path),
                                    help="give .npz files with an array for each input name"))
        try:
            self._array = np.load(path, mmap_mode="r", allow_pickle=False)       # for its header, mostly
        except (OSError, ValueError, EOFError) as error:
            raise unreadable(path, error) from error
        self._binding, self._preprocess = inputs[0], preprocess
        fitted = fit(path, self._binding, self._array.shape, self._array.dtype, preprocess)
        if isinstance(fitted, Finding):
            raise DataError(fitted)
        self._path, self._fit = path, fitted

    def __len__(self) -> int:
        return self._fit.count

    def sample(self, index: int) -> dict[str, Array]:
        """Read sample ``index``."""
        return {self._binding.name: self._fit.apply(self._read(index), self._binding, self._preprocess)}

    def _read(self, index: int) -> Array:
        mapped: Array = self._array
        elements = self._fit.elements
        if not isinstance(mapped, np.memmap) or not mapped.flags.c_contiguous:
            return mapped if mapped.shape == self._fit.inner else mapped[index]
        try:        # pages of a mapping would count as this process's memory, one sample after the other
            values: Array = np.fromfile(self._path, mapped.dtype, elements,
                                        offset=mapped.offset + index * elements * mapped.dtype.itemsize)
        except OSError as error:
            raise unreadable(self._path, error) from error
        if values.size != elements:
            raise unreadable(self._path, ValueError(f"it ends after {values.size} of {elements} values of a sample"))
        return values


class NpzSource:
    """One .npz file with an array for each input name; samples are read forward, one at a time.

    ``taken`` is the name of the only array and that of the only input, where they differ.
    """

    def __init__(self, path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> None:
        self._path, self._preprocess = path, preprocess
        self._inputs = tuple(inputs)
        self._members: dict[str, str] = {}
        self._fits: dict[str, Fit] = {}
        self.taken: tuple[str, str] | None = None
        self._streams: dict[str, tuple[int, Member]] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                self._count = self._inspect(archive)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise unreadable(path, error) from error

    def _inspect(self, archive: zipfile.ZipFile) -> int:
        names = {n.removesuffix(".npy"): n for n in archive.namelist()}
        problems: list[Finding] = []
        counts: dict[str, int] = {}
        for binding in self._inputs:
            key = self._key(binding, names)
            if key is None:
                listed = ", ".join(map(repr, names)) or "none"
                problems.append(Finding(code="data.missing_input", where=str(self._path), headline=f"{self._path.name} "
                                        f"has no array '{binding.name}'; it has {listed}"))
                continue
            self._members[binding.name] = names[key]
            member = Member(archive, names[key])
            fitted = fit(self._path, binding, member.shape, member.dtype, self._preprocess)
            if isinstance(fitted, Finding):
                problems.append(fitted)
                continue
            self._fits[binding.name], counts[binding.name] = fitted, fitted.count
        if not problems and len(set(counts.values())) > 1:
            listed = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            problems.append(Finding(code="data.counts", where=str(self._path),
                                    headline=f"{self._path.name} has unequal numbers of samples: {listed}"))
        if problems:
            raise DataError(problems)
        return next(iter(counts.values()), 0)

    def _key(self, binding: InputBinding, names: Sequence[str] | dict[str, str]) -> str | None:
        """The array of an input: that of its name, or the only one for a model's only input."""
        if binding.name in names:
            return binding.name
        if not len(names) == len(self._inputs) == 1:
            return None
        self.taken = next(iter(names)), binding.name
        return self.taken[0]

    def __len__(self) -> int:
        return self._count

    def sample(self, index: int) -> dict[str, Array]:
        """Read sample ``index``; going back starts the file again."""
        try:
            return {b.name: self._fits[b.name].apply(self._read(b, index), b, self._preprocess) for b in self._inputs}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise unreadable(self._path, error) from error

    def _read(self, binding: InputBinding, index: int) -> Array:
        position, member = self._streams.get(binding.name, (index + 1, None))
        if member is None or position > index:
            position, member = 0, Member(zipfile.ZipFile(self._path), self._members[binding.name])
        elements = self._fits[binding.name].elements
        member.skip((index - position) * elements)
        self._streams[binding.name] = index + 1, member
        return member.read(elements)


class Member:
    """An array inside a .npz archive, read forward."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._stream: IO[bytes] = archive.open(name)
        version = np.lib.format.read_magic(self._stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, self._fortran, self.dtype = reader(self._stream)
        if self.dtype.hasobject:
            raise ValueError(f"'{name}' holds Python objects")
        if self._fortran and len(self.shape) > 1:
            raise ValueError(f"'{name}' is stored column by column; save it with numpy.ascontiguousarray")

    def skip(self, elements: int) -> None:
        """Pass over values."""
        self._stream.seek(elements * self.dtype.itemsize, 1)

    def read(self, elements: int) -> Array:
        """Read the next values."""
        wanted = elements * self.dtype.itemsize
        data = self._stream.read(wanted)
        if len(data) != wanted:
            raise ValueError(f"it ends after {len(data)} of {wanted} bytes of a sample")
        return np.frombuffer(data, self.dtype)
