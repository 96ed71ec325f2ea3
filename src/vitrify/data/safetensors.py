"""Samples in .safetensors files: a header in JSON and plain data, an array for each input name.

Source: the safetensors format: 8 bytes with the header's length, the header, the data.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.arrays import unreadable
from vitrify.data.fitting import Fit, fit
from vitrify.data.preprocess import Preprocess
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
         "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}
MOST_HEADER = 1 << 24


class Stored(msgspec.Struct):
    """An array of the file."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


class SafetensorsSource:
    """One file with an array for each input, samples along its first axis."""

    def __init__(self, path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> None:
        self._path, self._inputs, self._preprocess = path, tuple(inputs), preprocess
        self._start, self._stored = _header(path)
        self._members: dict[str, tuple[Stored, Fit]] = {}
        problems = [problem for binding in inputs if (problem := self._take(binding)) is not None]
        counts = {name: fitted.count for name, (_, fitted) in self._members.items()}
        if not problems and len(set(counts.values())) > 1:
            listed = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            problems.append(Finding(code="data.counts", where=str(path),
                                    headline=f"{path.name} has unequal numbers of samples: {listed}"))
        if problems:
            raise DataError(problems)
        self._count = next(iter(counts.values()), 0)

    def _take(self, binding: InputBinding) -> Finding | None:
        names = list(self._stored)
        name = binding.name if binding.name in names else names[0] if len(names) == len(self._inputs) == 1 else None
        if name is None:
            return Finding(code="data.missing_input", where=str(self._path), headline=f"{self._path.name} has no array "
                           f"'{binding.name}'; it has {', '.join(map(repr, names)) or 'none'}")
        stored = self._stored[name]
        dtype = np.dtype(TYPES.get(stored.dtype, "V1"))
        first, last = stored.data_offsets
        if dtype.kind == "V" or min([*stored.shape, first]) < 0 or (
                last - first != int(np.prod(stored.shape, dtype=object)) * dtype.itemsize):
            raise unreadable(self._path, ValueError(f"array '{name}' of type {stored.dtype} is not as its header says"))
        fitted = fit(self._path, binding, stored.shape, dtype, self._preprocess)
        if isinstance(fitted, Finding):
            return fitted
        self._members[binding.name] = stored, fitted
        return None

    def __len__(self) -> int:
        return self._count

    def sample(self, index: int) -> dict[str, Array]:
        """Read sample ``index``."""
        return {b.name: self._read(b, index) for b in self._inputs}

    def _read(self, binding: InputBinding, index: int) -> Array:
        stored, fitted = self._members[binding.name]
        dtype = np.dtype(TYPES[stored.dtype])
        place = self._start + stored.data_offsets[0] + index * fitted.elements * dtype.itemsize
        try:
            values = np.fromfile(self._path, dtype, fitted.elements, offset=place)
        except OSError as error:
            raise unreadable(self._path, error) from error
        if values.size != fitted.elements:
            raise unreadable(self._path, ValueError(f"it ends after {values.size} of {fitted.elements} values"))
        return fitted.apply(values, binding, self._preprocess)


def _header(path: Path) -> tuple[int, dict[str, Stored]]:
    """Where the data starts, and what arrays there are.

    Raises:
        DataError: the file cannot be read or is none.
    """
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > MOST_HEADER:
                raise ValueError(f"its header has {length} bytes, at most {MOST_HEADER} are read")
            plain = msgspec.json.decode(stream.read(length), type=dict[str, Any])
        plain.pop("__metadata__", None)
        return 8 + length, msgspec.convert(plain, dict[str, Stored])
    except (OSError, ValueError, struct.error, msgspec.MsgspecError) as error:
        raise unreadable(path, error) from error
