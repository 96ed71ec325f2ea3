"""What all forms of labelled samples come to: files, and a truth for each sample as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import msgspec

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.data.reading import PICTURES

Truth = dict[str, Any]
"""``label``, ``text``, ``map`` (a file), ``values``, or ``boxes`` with ``labels`` and what belongs to them.

Boxes are corners in pixels; with ``shares`` they are shares of the picture. ``polygons`` are lists of x, y in turn for
each object, or run lengths as COCO has them; ``points`` [k,3]; ``quads`` [4,2]; ``crowd`` 0 or 1; ``areas`` in pixels.
"""

MOST_TEXT = 1 << 28
"""Bytes of one file of labels that are read."""
SHOWN = 5


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One sample: the file, its number in the file, and its truth."""

    file: str
    index: int
    truth: Truth | None = None


@dataclass
class Labelled:
    """Labelled samples. ``classes`` are the labels' names by their number, where the form has names."""

    form: str
    entries: list[Entry]
    classes: dict[int, str]
    findings: list[Finding]


@dataclass(frozen=True)
class Form:
    """A form of labels: its name, what it is in words, whether a place has it, and how it is read."""

    name: str
    text: str
    holds: Callable[[Path], bool]
    read: Callable[[Path, str], Labelled]
    weight: int


FORMS: dict[str, Form] = {}


def form(name: str, text: str, holds: Callable[[Path], bool], weight: int = 10
         ) -> Callable[[Callable[[Path, str], Labelled]], Callable[[Path, str], Labelled]]:
    """Register a function of a place and a kind of task; of several forms that a place has, the heaviest is taken."""
    def register(function: Callable[[Path, str], Labelled]) -> Callable[[Path, str], Labelled]:
        FORMS[name] = Form(name, text, holds, function, weight)
        return function
    return register


def read_labelled(place: Path, kind: str, name: str = "") -> Labelled:
    """Read the samples at a place with their labels.

    Raises:
        VitrifyError: there are none, or the labels cannot be read.
    """
    for module in iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")
    if name and name not in FORMS:
        raise UsageError.of("labels.form", f"there is no form of labels '{name}'", where="--labels",
                            help=f"there are {', '.join(f'{f.name} ({f.text})' for f in FORMS.values())}")
    if name:
        chosen = FORMS[name]
    else:
        chosen = max((f for f in FORMS.values() if f.holds(place)), key=lambda f: f.weight, default=FORMS["none"])
    found = chosen.read(place, kind)
    if not found.entries:
        raise DataError.of("labels.empty", f"no sample in {place} as form '{chosen.name}' has them ({chosen.text})",
                           where=str(place), help="name another form with --labels, or another place")
    return found


def text_of(path: Path) -> str:
    """Read a file of labels.

    Raises:
        DataError: it cannot be read, or is larger than any that people write.
    """
    try:
        if path.stat().st_size > MOST_TEXT:
            raise DataError.of("labels.large", f"{path.name} has {path.stat().st_size:,} bytes, at most {MOST_TEXT:,} "
                               "are read", where=str(path), help="give a part of the set, in files of its own")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError.of("labels.unreadable", f"cannot read {path.name}: {error}", where=str(path),
                           help="labels are text in UTF-8 that may be read") from error


def pictures_in(folder: Path) -> list[Path]:
    """The pictures below a folder, in the order of their names."""
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES and not p.name.startswith("."))


def lacking(what: str, names: Sequence[str], total: int, where: Path) -> list[Finding]:
    """A warning of samples that have no file, or no label."""
    if not names:
        return []
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return [Finding(code="labels.lacking", severity=Severity.WARNING, where=str(where),
                    headline=f"{len(names)} of {total} samples {what}: {shown}",
                    why="they are left out", help="complete the set, or remove what is left over")]
