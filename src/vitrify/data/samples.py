"""Samples: a re-iterable, sized stream of input arrays from pictures, .npy and .npz; never all in memory."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.files import look
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.data.arrays import NpySource, NpzSource
from vitrify.data.preprocess import PictureShape, Preprocess, read_picture
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding, Interface

Array = np.ndarray[Any, np.dtype[Any]]

PICTURES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
UNNAMED = "arr_0"
ARRAYS = frozenset({".npy", ".npz"})
RUN_RECORD = "run.json"
"""The file that says that a folder is a build's own: its statistics and pictures are no samples."""


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of a model's inputs in the order and layout of the source model, each with batch 1.

    Plain data: it can be pickled into a worker process and walked there, as often as needed. ``chosen`` holds the
    (file, index in the file) of each sample. Without files the samples are random, ``seed`` says which.
    """

    inputs: tuple[InputBinding, ...]
    files: tuple[str, ...] = ()
    chosen: tuple[tuple[int, int], ...] = ()
    preprocess: Preprocess = Preprocess()
    seed: int | None = None
    count: int = 0

    @property
    def is_random(self) -> bool:
        """True when the values are made up: ranges found with them say little about real data."""
        return self.seed is not None

    @property
    def pictures(self) -> Preprocess | None:
        """How pictures became samples, None when not all of the samples are pictures."""
        used = {Path(self.files[file]).suffix.lower() for file, _ in self.chosen}
        return self.preprocess if used and not used & ARRAYS else None

    def __len__(self) -> int:
        return self.count if self.is_random else len(self.chosen)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        return self.walk()

    def walk(self, start: int = 0) -> Iterator[dict[str, Array]]:
        """Yield the samples from number ``start`` on; those before are not read.

        Raises:
            DataError: a file cannot be read or does not fit the model.
        """
        if self.is_random:
            for number in range(start, self.count):
                yield self._random(number)
            return
        opened: tuple[int, NpySource | NpzSource] | None = None
        for file, index in self.chosen[start:]:
            path = Path(self.files[file])
            if path.suffix.lower() not in ARRAYS:
                yield self._picture(path)
                continue
            if opened is None or opened[0] != file:
                opened = file, _source(path, self.inputs)
            yield opened[1].sample(index)

    def name(self, number: int) -> str:
        """What messages call sample ``number``: its file, and the index in it where there are several."""
        if self.is_random:
            return f"random sample {number}"
        file, index = self.chosen[number]
        several = Path(self.files[file]).suffix.lower() in ARRAYS
        return f"{self.files[file]}[{index}]" if several else self.files[file]

    def fingerprint(self) -> str:
        """Return a hash of what the samples are made of: files with size and time, choice, pre-processing."""
        stats = [(f, s.st_size, s.st_mtime_ns) for f in self.files for s in (Path(f).stat(),)]
        return hashlib.sha256(msgspec.msgpack.encode((self, stats))).hexdigest()

    def _picture(self, path: Path) -> dict[str, Array]:
        binding = self.inputs[0]
        shape = PictureShape.of(tuple(binding.shape))
        if len(self.inputs) > 1 or shape is None:
            raise _not_pictures(self.inputs)
        return {binding.name: read_picture(path, self.preprocess, shape)}

    def _random(self, number: int) -> dict[str, Array]:
        generator = np.random.default_rng([self.seed or 0, number])
        return {i.name: _random_array(generator, i) for i in self.inputs}


def open_samples(path: Path | str, interface: Interface, preprocess: Preprocess | None = None,
                 limit: int | None = None) -> Samples:
    """Find the samples below a folder, or in one file. Shapes of array files are checked here; pictures when read.

    With ``limit``, samples are taken evenly spaced over all that there are, so that folders by class are all seen.

    Raises:
        UsageError: there is nothing, or it cannot be read.
        DataError: no samples, or files that do not fit the model; lists all of them.
    """
    root = Path(path)
    require_place(root)
    files, skipped = sample_files(root) if root.is_dir() else ([root], 0)
    if not files:
        left = f"; {counted(skipped, 'folder')} with a run of `vitrify build` left out" if skipped else ""
        raise DataError.of("data.empty", f"no pictures, .npy or .npz files below {root}{left}", where=str(root),
                           why=f"known endings: {', '.join(sorted(PICTURES | ARRAYS))}")
    if root.is_file() and root.suffix.lower() not in PICTURES | ARRAYS:
        raise DataError.of("data.format", f"{root.name} is neither a picture nor .npy nor .npz", where=str(root))
    inputs = tuple(interface.inputs)
    chosen, problems = _index(files, inputs)
    if problems:
        raise DataError(problems)
    return Samples(inputs=inputs, files=tuple(map(str, files)), chosen=tuple(_spread(chosen, limit)),
                   preprocess=preprocess or Preprocess())


def random_samples(interface: Interface, count: int, seed: int = 0) -> Samples:
    """Make ``count`` samples of noise: uniform in 0..1 for floats, small numbers for integers."""
    return Samples(inputs=tuple(interface.inputs), seed=seed, count=count)


def require_place(root: Path) -> None:
    """See to it that there is a file or a folder that can be read at ``root``.

    Raises:
        UsageError: there is none.
    """
    found = look(root)
    if found is None:
        raise UsageError.of("data.missing", f"there is no {root}", where=str(root))
    try:
        if stat.S_ISDIR(found.st_mode):
            os.scandir(root).close()
        else:
            root.open("rb").close()
    except OSError as error:
        raise _unreadable(root, error) from error


def _unreadable(place: Path, error: OSError) -> UsageError:
    return UsageError.of("file.permission", f"{place} cannot be read: {error.strerror}", where=str(place))


def sample_files(root: Path) -> tuple[list[Path], int]:
    """Return the samples' files below a folder, and how many folders were left out that hold runs of builds.

    Raises:
        UsageError: a folder cannot be read.
    """
    def refuse(error: OSError) -> None:
        raise _unreadable(Path(error.filename), error) from error

    found: list[Path] = []
    skipped = 0
    for folder, below, names in os.walk(root, onerror=refuse):
        if RUN_RECORD in names:
            below.clear()
            skipped += 1
            continue
        found += [Path(folder, n) for n in names if Path(n).suffix.lower() in PICTURES | ARRAYS and n[0] != "."]
    kept = (path for path in found if path.is_file())
    return sorted(kept, key=lambda path: path.relative_to(root).parts), skipped


def _index(files: Sequence[Path], inputs: tuple[InputBinding, ...]) -> tuple[list[tuple[int, int]], list[Finding]]:
    chosen: list[tuple[int, int]] = []
    problems: list[Finding] = []
    for number, path in enumerate(files):
        if path.suffix.lower() not in ARRAYS:
            if len(inputs) > 1 or PictureShape.of(tuple(inputs[0].shape)) is None:
                return chosen, [*problems, *_not_pictures(inputs).findings]
            chosen.append((number, 0))
            continue
        try:
            chosen += [(number, index) for index in range(len(_source(path, inputs)))]
        except DataError as error:
            problems += error.findings
    return chosen, problems


def told(files: Sequence[Path | str], inputs: Sequence[InputBinding]) -> list[Finding]:
    """Say where a .npz file's only array was taken for the only input although it has another name.

    numpy's own name for an array without one says nothing, so nothing is said of it.
    """
    for path in map(Path, files):
        taken = NpzSource(path, inputs).taken if path.suffix.lower() == ".npz" else None
        if taken is not None and taken[0] != UNNAMED:
            return [Finding(code="data.other-name", severity=Severity.WARNING, where=str(path),
                            headline=f"{path.name} has no array '{taken[1]}'; its only one, '{taken[0]}', is taken",
                            help=f"name the array after the input: numpy.savez(path, **{{'{taken[1]}': array}})")]
    return []


def _source(path: Path, inputs: tuple[InputBinding, ...]) -> NpySource | NpzSource:
    return NpySource(path, inputs) if path.suffix.lower() == ".npy" else NpzSource(path, inputs)


def _spread(items: list[tuple[int, int]], limit: int | None) -> list[tuple[int, int]]:
    if limit is None or limit >= len(items):
        return items
    return [items[i * len(items) // limit] for i in range(limit)]


def _not_pictures(inputs: Sequence[InputBinding]) -> DataError:
    listed = ", ".join(f"'{i.name}' {i.dtype}[{','.join(map(str, i.shape))}]" for i in inputs)
    return DataError(Finding(code="data.not_pictures", headline=f"pictures do not fit the model's inputs: {listed}",
                             why="pictures need one input [1,C,H,W] or [1,H,W,C] with 1 or 3 channels",
                             help="give a folder of .npy files, or .npz files with an array for each input name"))


def _random_array(generator: np.random.Generator, binding: InputBinding) -> Array:
    dtype = element_type(binding.dtype)
    if is_float(dtype):
        return generator.random(binding.shape, np.float32).astype(dtype)
    if dtype == np.bool_ or dtype.kind == "V":        # the smallest integers hold 0 and 1
        return generator.integers(0, 2, binding.shape).astype(dtype)
    top = min(int(np.iinfo(dtype).max), 127)
    return generator.integers(0, top, binding.shape).astype(dtype)
