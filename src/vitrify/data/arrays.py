"""Samples in .npy and .npz files: memory-mapped or streamed, one sample at a time."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]


def batch_of(shape: Sequence[int], expected: Sequence[int]) -> int | None:
    """How many samples an array of ``shape`` holds for an input of shape ``expected``; None when it does not fit.

    The input's shape itself, the same without its leading 1, or either with a number of samples in front.
    """
    found, wanted = tuple(shape), tuple(expected)
    inner = wanted[1:] if wanted[:1] == (1,) else wanted
    if found in (wanted, inner):
        return 1
    return found[0] if found[1:] in (wanted, inner) else None


def _fits(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if is_float(wanted):
        return is_float(found)
    return found.kind == wanted.kind or np.can_cast(found, wanted)


def check(path: Path, binding: InputBinding, shape: Sequence[int], dtype: np.dtype[Any]) -> Finding | None:
    """Say what is wrong with an array for an input, None when it fits."""
    expected = f"{binding.dtype}[{','.join(map(str, binding.shape))}]"
    found = f"{dtype}[{','.join(map(str, shape))}]"
    headline = f"{path.name} holds {found}, input '{binding.name}' takes {expected}"
    if batch_of(shape, binding.shape) is None:
        return Finding(code="data.shape", headline=headline, where=str(path),
                       help="a number of samples may stand in front of that shape")
    if not _fits(dtype, element_type(binding.dtype)):
        return Finding(code="data.dtype", headline=headline, where=str(path), why="the values would not mean the same",
                       help="save the values as the model takes them, already scaled")
    return None


def unreadable(path: Path, error: Exception) -> DataError:
    """The error of a file that numpy cannot read."""
    return DataError(Finding(code="data.unreadable", headline=f"cannot read {path.name}: {error}", where=str(path),
                             help="repair or remove the file"))


def _shaped(array: Array, binding: InputBinding) -> Array:
    return np.ascontiguousarray(array, element_type(binding.dtype)).reshape(binding.shape)


class NpySource:
    """One memory-mapped .npy file: a sample, or several along its first axis."""

    def __init__(self, path: Path, inputs: Sequence[InputBinding]) -> None:
        if len(inputs) != 1:
            raise DataError(Finding(code="data.inputs", headline=f"{path.name} holds one array, the model takes "
                                    f"{len(inputs)}: {', '.join(repr(i.name) for i in inputs)}", where=str(path),
                                    help="give .npz files with an array for each input name"))
        try:
            self._array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise unreadable(path, error) from error
        self._binding = inputs[0]
        problem = check(path, self._binding, self._array.shape, self._array.dtype)
        if problem is not None:
            raise DataError(problem)
        self._count = batch_of(self._array.shape, self._binding.shape) or 0

    def __len__(self) -> int:
        return self._count

    def sample(self, index: int) -> dict[str, Array]:
        """Read sample ``index``."""
        one = self._array if self._array.size == int(np.prod(self._binding.shape)) else self._array[index]
        return {self._binding.name: _shaped(one, self._binding)}


class NpzSource:
    """One .npz file with an array for each input name; samples are read forward, one at a time.

    ``taken`` is the name of the only array and that of the only input, where they differ.
    """

    def __init__(self, path: Path, inputs: Sequence[InputBinding]) -> None:
        self._path = path
        self._inputs = tuple(inputs)
        self._members: dict[str, str] = {}
        self.taken: tuple[str, str] | None = None
        self._streams: dict[str, tuple[int, _Member]] = {}
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
            member = _Member(archive, names[key])
            problem = check(self._path, binding, member.shape, member.dtype)
            problems += [problem] if problem is not None else []
            counts[binding.name] = batch_of(member.shape, binding.shape) or 0
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
            return {b.name: _shaped(self._read(b, index), b) for b in self._inputs}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise unreadable(self._path, error) from error

    def _read(self, binding: InputBinding, index: int) -> Array:
        position, member = self._streams.get(binding.name, (index + 1, None))
        if member is None or position > index:
            position, member = 0, _Member(zipfile.ZipFile(self._path), self._members[binding.name])
        elements = int(np.prod(binding.shape, dtype=np.int64))
        member.skip((index - position) * elements)
        self._streams[binding.name] = index + 1, member
        return member.read(elements)


class _Member:
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
        self._stream.seek(elements * self.dtype.itemsize, 1)

    def read(self, elements: int) -> Array:
        wanted = elements * self.dtype.itemsize
        data = self._stream.read(wanted)
        if len(data) != wanted:
            raise ValueError(f"it ends after {len(data)} of {wanted} bytes of a sample")
        return np.frombuffer(data, self.dtype)
