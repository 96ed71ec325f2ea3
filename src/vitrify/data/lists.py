"""Files that say where samples are: lists of paths, and JSON with paths or with the numbers themselves."""

from __future__ import annotations

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
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]

LISTS = frozenset({".txt", ".lst"})
JSON = ".json"
LARGEST = 1 << 26
"""Bytes of a list, or of numbers in JSON, that are read."""

SHOWN = 5


def listed(path: Path) -> list[Path] | dict[str, list[Path]] | None:
    """The files that a list names: all of them, or by input; None for a file that is no list.

    Paths are relative to the list's own folder; a text file has one in a line, and lines that begin with # say nothing.

    Raises:
        DataError: the list cannot be read, or files that it names are not there.
    """
    if path.suffix.lower() in LISTS:
        lines = (line.strip() for line in _text(path).splitlines())
        return _found(path, [line for line in lines if line and not line.startswith("#")])
    if path.suffix.lower() != JSON:
        return None
    content = _json(path)
    if _are_paths(content):
        return _found(path, content)
    if isinstance(content, dict) and content and all(map(_are_paths, content.values())):
        return {name: _found(path, paths) for name, paths in content.items()}
    return None


def _are_paths(content: object) -> bool:
    return isinstance(content, list) and bool(content) and all(isinstance(item, str) for item in content)


def _found(path: Path, names: Sequence[str]) -> list[Path]:
    files = [path.parent / name for name in names]
    if not files:
        raise DataError.of("data.empty", f"{path.name} names no files", where=str(path),
                           help="write a path in each line, from the list's own folder")
    missing = [file for file in files if not file.is_file()]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise DataError.of("data.missing", f"{len(missing)} of the {len(files)} files that {path.name} names are not "
                           f"there: {', '.join(map(str, missing[:SHOWN]))}{more}", where=str(path),
                           why="paths are taken from the list's own folder")
    return files


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST >> 20} MB; give large data as .npy or .npz")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _json(path: Path) -> Any:
    try:
        return msgspec.json.decode(_text(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError.of("data.unreadable", f"cannot read {path.name}: {error}", where=str(path)) from error


class JsonSource:
    """Numbers in JSON: an object with an array for each input, or a list of such objects, one for each sample."""

    def __init__(self, path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> None:
        self._path, self._inputs, self._preprocess = path, tuple(inputs), preprocess
        self._taken: list[dict[str, tuple[Array, Fit]]] = []
        content = _json(path)
        problems: list[Finding] = []
        for item in content if isinstance(content, list) else [content]:
            taken, told = self._take(item)
            self._taken.append(taken)
            problems += told
            if problems:
                raise DataError(problems)
        if not self._taken:
            raise unreadable(path, ValueError("the list is empty"))
        self._places = [(item, index) for item, taken in enumerate(self._taken)
                        for index in range(next(iter(taken.values()))[1].count)]

    def _take(self, item: object) -> tuple[dict[str, tuple[Array, Fit]], list[Finding]]:
        given = item if isinstance(item, dict) else {self._inputs[0].name: item} if len(self._inputs) == 1 else {}
        taken: dict[str, tuple[Array, Fit]] = {}
        problems: list[Finding] = []
        for binding in self._inputs:
            if binding.name not in given:
                problems.append(Finding(
                    code="data.missing_input", where=str(self._path), headline=f"{self._path.name} has no array "
                    f"'{binding.name}'; it has {', '.join(map(repr, given)) or 'none'}"))
                continue
            array = self._array(given[binding.name], binding)
            fitted = fit(self._path, binding, array.shape, array.dtype, self._preprocess)
            if isinstance(fitted, Finding):
                problems.append(fitted)
            else:
                taken[binding.name] = array, fitted
        counts = {name: fitted.count for name, (_, fitted) in taken.items()}
        if not problems and len(set(counts.values())) > 1:
            told = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            problems.append(Finding(code="data.counts", where=str(self._path),
                                    headline=f"{self._path.name} has unequal numbers of samples: {told}"))
        return taken, problems

    def _array(self, values: object, binding: InputBinding) -> Array:
        """JSON knows no types: whole numbers may stand for an input of floats."""
        wanted = element_type(binding.dtype)
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise unreadable(self._path, error) from error
        if array.dtype.kind not in "fiub":
            raise unreadable(self._path, ValueError(f"input '{binding.name}' has other things than numbers"))
        return array.astype(np.float64) if is_float(wanted) else array

    def __len__(self) -> int:
        return len(self._places)

    def sample(self, index: int) -> dict[str, Array]:
        """Return sample ``index``."""
        item, place = self._places[index]
        found = {}
        for binding in self._inputs:
            array, fitted = self._taken[item][binding.name]
            one = array if array.shape == fitted.inner else array[place]
            found[binding.name] = fitted.apply(one, binding, self._preprocess)
        return found
