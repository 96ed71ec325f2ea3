"""Ultralytics' form: images/ beside labels/ with a text file for each picture, and data.yaml with names.

Source: Ultralytics documentation, datasets: detect, segment, pose, obb.
"""

from __future__ import annotations

import re
from pathlib import Path

from vitrify.core.errors import DataError
from vitrify.pipeline.evaluating.sets.base import Entry, Labelled, Truth, form, pictures_in, text_of

_NAME = re.compile(r"^\s+(\d+)\s*:\s*['\"]?(.*?)['\"]?\s*(?:#.*)?$")
_ITEM = re.compile(r"^\s*-\s*['\"]?(.*?)['\"]?\s*(?:#.*)?$")


def _root(place: Path) -> Path:
    return place.parent if place.suffix in (".yaml", ".yml") else place


@form("yolo", "images/ and labels/ as Ultralytics has them", lambda p: (_root(p) / "labels").is_dir()
      and (_root(p) / "images").is_dir(), weight=30)
def yolo(place: Path, kind: str) -> Labelled:
    """Shares of the picture; a picture without a file of labels has none."""
    root = _root(place)
    folder = _split(place, root)
    yaml = place if place.suffix in (".yaml", ".yml") else next(iter(sorted(root.glob("*.yaml"))), None)
    entries = []
    for picture in pictures_in(folder):
        own = root / "labels" / picture.relative_to(root / "images").with_suffix(".txt")
        entries.append(Entry(str(picture), 0, _truth(own, kind)))
    return Labelled("yolo", entries, names_in(yaml) if yaml is not None else {}, [])


def _split(place: Path, root: Path) -> Path:
    """The part of images/ that is for validation, else all of it."""
    if place.suffix in (".yaml", ".yml"):
        found = re.search(r"^val\s*:\s*['\"]?([^'\"#\n]+)", text_of(place), re.MULTILINE)
        if found and (root / found[1].strip()).is_dir():
            return root / found[1].strip()
    return next((root / "images" / n for n in ("val", "val2017", "test") if (root / "images" / n).is_dir()),
                root / "images")


def names_in(path: Path) -> dict[int, str]:
    """The names of the classes in a data.yaml: the list, the mapping, or either in one line."""
    lines = text_of(path).splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("names:")), None)
    if start is None:
        return {}
    here = lines[start][6:].split("#")[0].strip()
    if here:
        from vitrify.tasks.naming import class_names

        quoted = here if "'" in here or '"' in here else re.sub(r"([^\[\],{}:]+)(?=[,\]}])", r"'\1'", here)
        return {n: name.strip() for n, name in enumerate(class_names(quoted))}
    names: dict[int, str] = {}
    for line in lines[start + 1:]:
        if (match := _NAME.match(line)) is not None:
            names[int(match[1])] = match[2]
        elif (match := _ITEM.match(line)) is not None:
            names[len(names)] = match[1]
        elif line.strip():
            break
    return names


def _truth(path: Path, kind: str) -> Truth:
    truth: Truth = {"boxes": [], "labels": [], "shares": True}
    if not path.is_file():
        return truth
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            label, *values = (float(word) for word in line.split())
            _take(truth, int(label), values, kind)
        except (ValueError, IndexError) as error:
            raise DataError.of("labels.line", f"line {number} of {path.name} is no label: {line[:60]!r}",
                               where=str(path), why=str(error),
                               help="it is the class and numbers of 0..1: centre and size, or corners") from error
    return truth


def _take(truth: Truth, label: int, values: list[float], kind: str) -> None:
    truth["labels"].append(label)
    if kind == "instances" or (len(values) >= 6 and kind in ("detection", "oriented") and len(values) % 2 == 0):
        xs, ys = values[::2], values[1::2]
        truth["boxes"].append([min(xs), min(ys), max(xs), max(ys)])
        truth.setdefault("polygons", []).append([values])
        if kind == "oriented":
            truth.setdefault("quads", []).append([list(p) for p in zip(xs, ys, strict=True)][:4])
        return
    x, y, w, h = values[:4]
    truth["boxes"].append([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
    if kind == "pose":
        rest = values[4:]
        wide = 3 if len(rest) % 3 == 0 else 2
        truth.setdefault("points", []).append(
            [[*rest[n:n + 2], rest[n + 2] if wide == 3 else 2.0] for n in range(0, len(rest), wide)])
