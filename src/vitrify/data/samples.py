"""Samples: a re-iterable, sized stream of input arrays from files; never all in memory."""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.files import look
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.data.arrays import NpzSource
from vitrify.data.lists import JSON, LISTS, listed
from vitrify.data.preprocess import PictureShape, Preprocess
from vitrify.data.reading import KNOWN, PICTURES, SOUNDS, not_pictures, source_of, suffix
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding, Interface

Array = np.ndarray[Any, np.dtype[Any]]

UNNAMED = "arr_0"
RUN_RECORD = "run.json"
"""The file that says that a folder is a build's own: its statistics and pictures are no samples."""

BAD_FILES = frozenset({"data.unreadable", "data.too_large"})
"""What may be wrong with single files among good ones: they are left out, with a warning."""

SHOWN = 5
"""Findings of one kind that a refusal lists in full."""


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of a model's inputs in the order and layout of the source model, each with batch 1.

    Plain data: it can be pickled into a worker process and walked there, as often as needed. ``chosen`` holds the
    (file, index in the file) of each sample. With ``parts`` there is one of these for each input instead. Without files
    the samples are random, ``seed`` says which. ``skipped`` tells of files that were left out.
    With ``enough``, calibration ends when the ranges no longer move.
    """

    inputs: tuple[InputBinding, ...]
    files: tuple[str, ...] = ()
    chosen: tuple[tuple[int, int], ...] = ()
    preprocess: Preprocess = Preprocess()
    seed: int | None = None
    count: int = 0
    parts: tuple[Samples, ...] = ()
    skipped: tuple[Finding, ...] = ()
    enough: bool = False

    @property
    def is_random(self) -> bool:
        """True when the values are made up: ranges found with them say little about real data."""
        return self.seed is not None

    @property
    def pictures(self) -> Preprocess | None:
        """How pictures became samples, in units of 0..1; None when not all of the samples are pictures."""
        used = {suffix(self.files[file]) for file, _ in self.chosen}
        return self.preprocess.in_units if used and used <= PICTURES else None

    @property
    def declared(self) -> Preprocess | None:
        """How pictures or recordings became samples, None where the files hold what the model takes."""
        if self.parts:
            return next(filter(None, (part.declared for part in self.parts)), None)
        used = {suffix(self.files[file]) for file, _ in self.chosen}
        return self.preprocess if used & (PICTURES | SOUNDS) else None

    def __len__(self) -> int:
        return self.count if self.is_random else min(map(len, self.parts)) if self.parts else len(self.chosen)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        return self.walk()

    def walk(self, start: int = 0, skipped: list[Finding] | None = None) -> Iterator[dict[str, Array]]:
        """Yield the samples from number ``start`` on; those before are not read.

        Raises:
            DataError: as ``numbered``.
        """
        return (sample for _, sample in self.numbered(start, skipped))

    def numbered(self, start: int = 0, skipped: list[Finding] | None = None) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield the samples from number ``start`` on with their numbers.

        A file that cannot be read is an error; with a list ``skipped`` it is left out and told there, unless most are.

        Raises:
            DataError: a file cannot be read or does not fit the model.
        """
        reader = _Reader(self)
        for number in range(start, len(self)):
            try:
                sample = reader.read(number)
            except DataError as error:
                if skipped is None or not all(finding.code in BAD_FILES for finding in error.findings):
                    raise
                skipped += error.findings
                if 2 * len(skipped) > len(self):
                    raise DataError(gathered(skipped)) from error
                continue
            yield number, sample

    def readable(self, limit: int) -> Samples:
        """At most so many of the samples, evenly spaced; others stand in for pictures that cannot be read."""
        if self.is_random or len(self) <= limit:
            return self
        if self.parts:
            few = (tuple(_spread(list(part.chosen), limit)) for part in self.parts)
            return msgspec.structs.replace(self, parts=tuple(
                msgspec.structs.replace(part, chosen=chosen) for part, chosen in zip(self.parts, few, strict=True)))
        wanted = _spread(list(self.chosen), limit)
        rest = (place for place in _scattered(list(self.chosen)) if place not in wanted)
        reader, good = _Reader(self), []
        for place in itertools.chain(wanted, rest):
            if suffix(self.files[place[0]]) not in PICTURES or reader.can_read(place):
                good.append(place)
            if len(good) == limit:
                break
        return msgspec.structs.replace(self, chosen=tuple(sorted(good)))

    def name(self, number: int) -> str:
        """What messages call sample ``number``: its file, and the index in it where there are several."""
        if self.is_random:
            return f"random sample {number}"
        if self.parts:
            return self.parts[0].name(number)
        file, index = self.chosen[number]
        return self.files[file] if suffix(self.files[file]) in PICTURES else f"{self.files[file]}[{index}]"

    def fingerprint(self) -> str:
        """Return a hash of what the samples are made of: files with size and time, choice, pre-processing."""
        stats = [(f, s.st_size, s.st_mtime_ns) for part in (self, *self.parts) for f in part.files
                 for s in (Path(f).stat(),)]
        return hashlib.sha256(msgspec.msgpack.encode((self, stats))).hexdigest()


class _Reader:
    """Reads samples by number, and keeps the last file open."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._parts = [_Reader(part) for part in samples.parts]
        self._opened: tuple[int, Any] | None = None

    def read(self, number: int) -> dict[str, Array]:
        if self._parts:
            return {name: array for part in self._parts for name, array in part.read(number).items()}
        samples = self._samples
        if samples.is_random:
            generator = np.random.default_rng([samples.seed or 0, number])
            return {i.name: _random_array(generator, i) for i in samples.inputs}
        return self._at(samples.chosen[number])

    def can_read(self, place: tuple[int, int]) -> bool:
        try:
            self._at(place)
        except DataError as error:
            return not all(finding.code in BAD_FILES for finding in error.findings)
        return True

    def _at(self, place: tuple[int, int]) -> dict[str, Array]:
        samples, (file, index) = self._samples, place
        if self._opened is None or self._opened[0] != file:
            self._opened = file, source_of(Path(samples.files[file]), samples.inputs, samples.preprocess)
        found: dict[str, Array] = self._opened[1].sample(index)
        return found


def open_samples(path: Path | str, interface: Interface, preprocess: Preprocess | None = None,
                 limit: int | None = None, enough: bool = False) -> Samples:
    """Find the samples below a folder, in one file, or in the files of a list.

    Shapes of array files are checked here; pictures when read. With ``limit``, samples are taken evenly spaced over all
    that there are, so that folders by class are all seen; with ``enough``, calibration ends when the ranges no longer
    move, and they come in an order in which any beginning is spread like that. For several inputs a folder may have a
    folder for each, named like the input.

    Raises:
        UsageError: there is nothing, or it cannot be read.
        DataError: no samples, or files that do not fit the model; lists all of them.
    """
    root, inputs = Path(path), tuple(interface.inputs)
    require_place(root)
    by_input = _by_input(root, inputs)
    if by_input:
        parts = tuple(_opened(root, files, (binding,), preprocess or Preprocess(), limit, enough)
                      for binding, files in zip(inputs, by_input, strict=True))
        _require_equal(root, parts)
        return Samples(inputs=inputs, parts=parts, preprocess=preprocess or Preprocess(), enough=enough)
    files = listed(root) if root.is_file() else None
    if isinstance(files, dict):
        return _opened(root, next(iter(files.values())), inputs, preprocess or Preprocess(), limit, enough)
    return _opened(root, files or _files(root), inputs, preprocess or Preprocess(), limit, enough)


def _files(root: Path) -> list[Path]:
    """The files of a folder, or the file itself.

    Raises:
        DataError: there are none.
    """
    files, skipped = sample_files(root) if root.is_dir() else ([root], 0)
    if not files:
        left = f"; {counted(skipped, 'folder')} with a run of `vitrify build` left out" if skipped else ""
        raise DataError.of("data.empty", f"no pictures, recordings, .npy or .npz files below {root}{left}",
                           where=str(root), why=f"known endings: {', '.join(sorted(KNOWN))}",
                           help="name the folder that holds the samples")
    if root.is_file() and suffix(root) not in KNOWN | {JSON}:
        raise DataError.of("data.format", f"{root.name} is neither a picture nor .npy nor .npz", where=str(root),
                           why=f"known endings: {', '.join(sorted(KNOWN | LISTS | {JSON}))}")
    return files


def _by_input(root: Path, inputs: Sequence[InputBinding]) -> list[list[Path]]:
    """The files of each input, where a folder or a list tells them apart; empty where not.

    Raises:
        DataError: some inputs have files and others none.
    """
    if len(inputs) < 2:
        return []
    lists = listed(root) if root.is_file() else None
    if root.is_dir():
        found = [_files(folder) if (folder := root / _plain(i.name)).is_dir() else None for i in inputs]
    elif isinstance(lists, dict):
        found = [lists.get(i.name) for i in inputs]
    else:
        return []
    missing = [i.name for i, files in zip(inputs, found, strict=True) if files is None]
    if len(missing) == len(inputs):
        return []
    if missing:
        raise DataError.of("data.missing_input", f"{root.name} has nothing for {', '.join(map(repr, missing))}",
                           where=str(root), why=f"the model takes {', '.join(repr(i.name) for i in inputs)}",
                           help=f"add the samples of it as {_plain(missing[0])}" + ("/" if root.is_dir() else ""))
    return [files for files in found if files is not None]


def _plain(name: str) -> str:
    """The name of an input as a folder can have it."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def _require_equal(root: Path, parts: Sequence[Samples]) -> None:
    counts = {part.inputs[0].name: len(part) for part in parts}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise DataError.of("data.counts", f"{root.name} has unequal numbers of samples: {told}", where=str(root),
                           why="the first sample of each input goes with the first of every other, by the files' names")


def _opened(root: Path, files: Sequence[Path], inputs: tuple[InputBinding, ...], preprocess: Preprocess,
            limit: int | None, enough: bool) -> Samples:
    chosen, problems = _index(files, inputs, preprocess)
    few = len(problems) * 2 < len(files) and all(problem.code in BAD_FILES for problem in problems)
    if problems and not few:
        raise DataError(gathered(problems))
    spread = _scattered(chosen) if enough else chosen
    spread = (spread[:limit] if limit else spread) if enough else _spread(spread, limit)
    return Samples(inputs=inputs, files=tuple(map(str, files)), chosen=tuple(spread), preprocess=preprocess,
                   skipped=tuple(problems), enough=enough)


def gathered(problems: Sequence[Finding]) -> list[Finding]:
    """The findings, those of one code only as many as a person reads, and how many more there are."""
    counts, kept = Counter(problem.code for problem in problems), []
    taken: Counter[str] = Counter()
    for problem in problems:
        taken[problem.code] += 1
        if taken[problem.code] <= SHOWN:
            kept.append(problem)
    kept += [Finding(code=code, headline=f"the same holds for {counted(count - SHOWN, 'more file')}")
             for code, count in counts.items() if count > SHOWN]
    return kept


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
        found += [Path(folder, n) for n in names if Path(n).suffix.lower() in KNOWN and n[0] != "."]
    kept = (path for path in found if path.is_file())
    return sorted(kept, key=lambda path: path.relative_to(root).parts), skipped


def _index(files: Sequence[Path], inputs: tuple[InputBinding, ...],
           preprocess: Preprocess) -> tuple[list[tuple[int, int]], list[Finding]]:
    chosen: list[tuple[int, int]] = []
    problems: list[Finding] = []
    for number, path in enumerate(files):
        if suffix(path) in PICTURES:
            if len(inputs) > 1 or PictureShape.of(tuple(inputs[0].shape)) is None:
                return chosen, [*problems, *not_pictures(inputs).findings]
            chosen.append((number, 0))
            continue
        try:
            chosen += [(number, index) for index in range(len(source_of(path, inputs, preprocess)))]
        except DataError as error:
            problems += error.findings
    return chosen, problems


def told(files: Sequence[Path | str], inputs: Sequence[InputBinding]) -> list[Finding]:
    """Say where a .npz file's only array was taken for the only input although it has another name.

    numpy's own name for an array without one says nothing, so nothing is said of it.
    """
    for path in map(Path, files):
        taken = NpzSource(path, inputs, Preprocess()).taken if path.suffix.lower() == ".npz" else None
        if taken is not None and taken[0] != UNNAMED:
            return [Finding(code="data.other-name", severity=Severity.WARNING, where=str(path),
                            headline=f"{path.name} has no array '{taken[1]}'; its only one, '{taken[0]}', is taken",
                            help=f"name the array after the input: numpy.savez(path, **{{'{taken[1]}': array}})")]
    return []


def _spread(items: list[tuple[int, int]], limit: int | None) -> list[tuple[int, int]]:
    if limit is None or limit >= len(items):
        return items
    return [items[i * len(items) // limit] for i in range(limit)]


def _scattered(items: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The items in an order of which any beginning is spread over all: by their numbers with the bits turned round."""
    bits = max(1, (len(items) - 1).bit_length())
    return [items[place] for place in (int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits))
            if place < len(items)]


def _random_array(generator: np.random.Generator, binding: InputBinding) -> Array:
    dtype = element_type(binding.dtype)
    if is_float(dtype):
        return generator.random(binding.shape, np.float32).astype(dtype)
    if dtype == np.bool_ or dtype.kind == "V":        # the smallest integers hold 0 and 1
        return generator.integers(0, 2, binding.shape).astype(dtype)
    top = min(int(np.iinfo(dtype).max), 127)
    return generator.integers(0, top, binding.shape).astype(dtype)
