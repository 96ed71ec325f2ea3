"""Which of several TFLite files suits an int8 NPU, by what they hold and never by their names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.tflite.kind import Contents, Kind, contents
from vitrify.tflite.reading import read

SUITABLE = {Kind.INT8: "every operator, input and output is 8-bit",
            Kind.INT8_FLOAT_IO: "every operator is 8-bit; inputs or outputs are converted on the CPU"}
"""The kinds that an int8 NPU can take, best first, and why."""

UNSUITABLE = {
    Kind.FLOAT32: "it computes in float: quantize it",
    Kind.FLOAT16: "it computes in float, only its weights are small: quantize the model it was made from",
    Kind.DYNAMIC_RANGE: "only its weights are int8, it computes in float: quantize the model it was made from",
    Kind.INT16X8: "its activations are 16-bit",
    Kind.MIXED: "some of its operators compute in float, and those stay on the CPU",
    Kind.COMPILED: "it is compiled for an NPU already: take it as it is, or compile the file it was made from",
}
"""Why an int8 NPU cannot take the other kinds, and what to do."""


class Candidate(msgspec.Struct, frozen=True):
    """One file: what it holds (None when it cannot be read) and why it suits or not."""

    path: Path
    suits: bool
    reason: str
    contents: Contents | None = None

    def __str__(self) -> str:
        return f"{self.path.name}: {self.contents or 'unreadable'} ({self.reason})"


class Choice(msgspec.Struct, frozen=True):
    """The best file, None when none suits, and all files, best first."""

    best: Path | None
    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        head = f"take {self.best.name}" if self.best else "no file here suits an int8 NPU"
        return "\n".join((head, *(f"  {candidate}" for candidate in self.candidates)))


def choose(files: Path | str | Iterable[Path | str]) -> Choice:
    """Say which file suits an int8 NPU; ``files`` is a folder, whose .tflite files are looked at, or a list of files.

    Among files of the same kind the smaller one comes first.

    Raises:
        UsageError: the folder cannot be listed, or holds no .tflite file.
    """
    paths = _listed(files) if isinstance(files, (str, Path)) else [Path(f) for f in files]
    found = sorted((_candidate(path) for path in paths), key=_rank)
    best = found[0].path if found and found[0].suits else None
    return Choice(best, tuple(found))


def _listed(folder: Path | str) -> list[Path]:
    where = Path(folder)
    paths = sorted(p for p in where.iterdir() if p.suffix.lower() == ".tflite") if where.is_dir() else []
    if not paths:
        raise UsageError.of("tflite.folder", f"no .tflite file in {where}", where=str(where),
                            help="name the folder that holds the exported files")
    return paths


def _candidate(path: Path) -> Candidate:
    try:
        found = contents(read(path))
    except VitrifyError as error:
        return Candidate(path, False, error.findings[0].headline)
    if found.kind in SUITABLE:
        return Candidate(path, True, SUITABLE[found.kind], found)
    return Candidate(path, False, UNSUITABLE[found.kind], found)


def _rank(candidate: Candidate) -> tuple[int, int, Path]:
    order = [*SUITABLE, *UNSUITABLE]
    place = order.index(candidate.contents.kind) if candidate.contents else len(order)
    return place, candidate.path.stat().st_size if candidate.path.exists() else 0, candidate.path
