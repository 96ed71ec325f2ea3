"""Folders of classes, tables, arrays with labels, pictures beside masks, and samples without any label."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.data.arrays import unreadable
from vitrify.data.reading import KNOWN, PICTURES
from vitrify.data.samples import require_place, sample_files
from vitrify.pipeline.evaluating.sets.base import Entry, Labelled, Truth, form, lacking, pictures_in, text_of

LABELS = ("labels", "label", "y", "targets", "classes")
"""What people call the array of labels."""
COLUMNS = {"file": ("file", "path", "filename", "image", "audio", "filepath"), "label": ("label", "class", "target"),
           "text": ("text", "transcription", "words")}
BOX = ("x1", "y1", "x2", "y2")


def _folders(place: Path) -> bool:
    if not place.is_dir():
        return False
    below = [p for p in place.iterdir() if p.is_dir() and not p.name.startswith(".")]
    return len(below) >= 2 and not any(p.is_file() and p.suffix.lower() in KNOWN for p in place.iterdir())


@form("folders", "a folder for each class, as ImageNet has it", _folders, weight=5)
def folders(place: Path, kind: str) -> Labelled:
    """The class is the folder's place among all, or its name where every name is a number."""
    require_place(place)
    below = sorted(p for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))
    numbered = bool(below) and all(p.name.isdecimal() for p in below)
    labels = {p: int(p.name) if numbered else number for number, p in enumerate(below)}
    entries = [Entry(str(file), 0, {"label": labels[folder]}) for folder in below for file in sample_files(folder)[0]]
    return Labelled("folders", entries, {} if numbered else {n: p.name for p, n in labels.items()}, [])


@form("csv", "a table with a header: file and label, text or x1,y1,x2,y2,label",
      lambda p: p.suffix.lower() in (".csv", ".tsv") or (p / "labels.csv").is_file(), weight=20)
def table(place: Path, kind: str) -> Labelled:
    """A row for each sample, or for each box of one."""
    path = place / "labels.csv" if place.is_dir() else place
    rows = list(csv.DictReader(io.StringIO(text_of(path)), delimiter="\t" if path.suffix == ".tsv" else ","))
    heads = {key: next((n for n in (rows[0] if rows else {}) if n and n.strip().lower() in names), None)
             for key, names in COLUMNS.items()}
    if rows and heads["file"] is None:
        raise DataError.of("labels.columns", f"{path.name} has the columns {', '.join(map(str, rows[0]))}, none is a "
                           "file", where=str(path), help=f"call one {', '.join(COLUMNS['file'])}")
    words = sorted({row[heads["label"]] for row in rows} if heads["label"] else ())
    numbered = all(word.lstrip("-").isdecimal() for word in words)
    number = {word: int(word) if numbered else index for index, word in enumerate(words)}
    truths: dict[str, Truth] = {}
    for line, row in enumerate(rows, 2):
        _take(truths.setdefault(str(row[heads["file"] or ""]), {}), row, heads, number, path, line)
    there = {name: path.parent / name for name in truths}
    entries = [Entry(str(file), 0, truths[name]) for name, file in there.items() if file.is_file()]
    gone = [name for name, file in there.items() if not file.is_file()]
    return Labelled("csv", entries, {} if numbered else {n: w for w, n in number.items()},
                    lacking("have no file", gone, len(there), path))


def _take(truth: Truth, row: dict[str, Any], heads: dict[str, str | None], number: dict[str, int], path: Path,
          line: int) -> None:
    if heads["text"]:
        truth["text"] = row[heads["text"]] or ""
    if all(name in row for name in BOX):
        try:
            box = [float(row[name]) for name in BOX]
        except (TypeError, ValueError) as error:
            raise DataError.of("labels.number", f"line {line} of {path.name} has no four numbers as box",
                               where=str(path), help=f"the columns {', '.join(BOX)} hold pixels") from error
        truth.setdefault("boxes", []).append(box)
        truth.setdefault("labels", []).append(number[row[heads["label"]]] if heads["label"] else 0)
    elif heads["label"]:
        truth["label"] = number[row[heads["label"]]]


@form("arrays", "an .npz file with samples and an array 'labels'",
      lambda p: p.suffix.lower() == ".npz" and _label_array(p) is not None, weight=20)
def arrays(place: Path, kind: str) -> Labelled:
    """Labels stand beside the samples, in their order."""
    name = _label_array(place)
    try:
        with np.load(place, allow_pickle=False) as found:
            labels = found[name] if name else np.zeros(0)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise unreadable(place, error) from error
    wide: tuple[int, ...] = labels.shape
    if len(wide) == 2 and wide[1] > 1 and kind in ("classification", "keywords"):
        labels = labels.argmax(1)
    if kind in ("classification", "keywords"):
        return Labelled("arrays", [Entry(str(place), n, {"label": int(v)}) for n, v in enumerate(labels.reshape(-1))],
                        {}, [])
    return Labelled("arrays", [Entry(str(place), n, {"values": np.asarray(v).tolist()})
                               for n, v in enumerate(labels)], {}, [])


def _label_array(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()]
    except (OSError, zipfile.BadZipFile):
        return None
    return next((name for name in LABELS if name in names), None)


@form("masks", "folders images/ and masks/ with pictures of equal names, a pixel's value is its class",
      lambda p: (p / "images").is_dir() and any((p / n).is_dir() for n in ("masks", "annotations")), weight=25)
def masks(place: Path, kind: str) -> Labelled:
    """Pictures with a map of classes each, or of depths."""
    folder = next((place / n for n in ("masks", "annotations") if (place / n).is_dir()), place / "masks")
    maps = {p.stem: p for p in folder.rglob("*") if p.suffix.lower() in PICTURES or p.suffix == ".npy"}
    pictures = pictures_in(place / "images")
    entries = [Entry(str(p), 0, {"map": str(maps[p.stem])}) for p in pictures if p.stem in maps]
    return Labelled("masks", entries, _names(place), lacking(
        "have no mask", [p.name for p in pictures if p.stem not in maps], len(pictures), place))


def _names(place: Path) -> dict[int, str]:
    path = place / "classes.json"
    if not path.is_file():
        return {}
    return {int(k): str(v) for k, v in json.loads(text_of(path)).items()}


@form("none", "samples without labels: agreement with the first stage is told", lambda p: False, weight=0)
def none(place: Path, kind: str) -> Labelled:
    """Every sample there is."""
    require_place(place)
    files = sample_files(place)[0] if place.is_dir() else [place]
    return Labelled("none", [Entry(str(file), -1 if file.suffix.lower() not in PICTURES else 0) for file in files], {},
                    [])
