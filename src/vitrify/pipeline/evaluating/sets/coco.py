"""COCO's JSON. Source: COCO data format, https://cocodataset.org/#format-data."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from vitrify.core.errors import DataError
from vitrify.pipeline.evaluating.sets.base import Entry, Labelled, Truth, form, lacking, text_of


def _file(place: Path) -> Path | None:
    """The JSON of a place: itself, or the only fitting one below it."""
    if place.suffix.lower() == ".json":
        return place
    if not place.is_dir():
        return None
    found = [*place.glob("*.json"), *place.glob("annotations/*.json")]
    ranked = sorted(found, key=lambda p: (not p.name.startswith(("instances", "person_keypoints", "annotations",
                                                                 "_annotations")), "val" not in p.name, p.name))
    return ranked[0] if ranked else None


@form("coco", "COCO's JSON beside its pictures", lambda p: _file(p) is not None, weight=15)
def coco(place: Path, kind: str) -> Labelled:
    """Boxes, masks and key points by category; labels are the categories' own numbers."""
    path = _file(place)
    if path is None:
        raise DataError.of("labels.missing", f"no .json file in {place}", where=str(place),
                           help="give the file of annotations, such as instances_val2017.json, beside its pictures")
    if kind == "pose" and place.is_dir():
        path = next(iter(sorted(path.parent.glob("person_keypoints*.json"))), path)
    try:
        content = json.loads(text_of(path))
        images = {image["id"]: str(image["file_name"]) for image in content["images"]}
        classes = {int(c["id"]): str(c["name"]) for c in content["categories"]}
        truths: dict[Any, Truth] = defaultdict(_empty)
        for one in content["annotations"]:
            _take(truths[one["image_id"]], one, kind)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError.of("labels.coco", f"{path.name} is not in COCO's form: {type(error).__name__} {error}",
                           where=str(path), help="it needs images, annotations and categories") from error
    folders = [path.parent, path.parent.parent, *_folders(path.parent), *_folders(path.parent.parent)]
    places = {number: _found(name, folders) for number, name in images.items()}
    entries = [Entry(str(place), 0, truths[number]) for number, place in places.items() if place is not None]
    gone = [images[number] for number, place in places.items() if place is None]
    return Labelled("coco", entries, classes, lacking("have no picture", gone, len(images), path))


def _empty() -> Truth:
    return {"boxes": [], "labels": [], "crowd": [], "areas": [], "polygons": [], "points": []}


def _take(truth: Truth, one: dict[str, Any], kind: str) -> None:
    x, y, w, h = map(float, one["bbox"])
    truth["boxes"].append([x, y, x + w, y + h])
    truth["labels"].append(int(one["category_id"]))
    truth["crowd"].append(int(one.get("iscrowd", 0)))
    truth["areas"].append(float(one.get("area", w * h)))
    if kind == "instances":
        truth["polygons"].append(one.get("segmentation", []))
    if kind == "pose":
        flat = [float(v) for v in one.get("keypoints", ())]
        truth["points"].append([flat[n:n + 3] for n in range(0, len(flat), 3)])


def _folders(place: Path) -> list[Path]:
    return sorted(p for p in place.iterdir() if p.is_dir()) if place.is_dir() else []


def _found(name: str, folders: list[Path]) -> Path | None:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return None                 # a set reaches nowhere outside its own folders
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
