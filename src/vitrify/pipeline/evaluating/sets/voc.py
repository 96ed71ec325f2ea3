"""Pascal VOC's form: Annotations/ with XML, JPEGImages/, SegmentationClass/. Source: VOC2012 development kit."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from vitrify.core.errors import DataError
from vitrify.pipeline.evaluating.sets.base import Entry, Labelled, Truth, form, lacking, pictures_in, text_of

NAMES = ("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog",
         "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor")
BORDER = 255
"""The value of pixels that count for nothing."""
_DOCTYPE = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@form("voc", "Annotations/ and JPEGImages/ as Pascal VOC has them",
      lambda p: (p / "JPEGImages").is_dir() and any((p / n).is_dir() for n in ("Annotations", "SegmentationClass")),
      weight=40)
def voc(place: Path, kind: str) -> Labelled:
    """Boxes; for segmentation maps of classes, 0 being the background."""
    pictures = pictures_in(place / "JPEGImages")
    if kind == "segmentation":
        maps = {p.stem: p for p in sorted((place / "SegmentationClass").glob("*.png"))}
        entries = [Entry(str(p), 0, {"map": str(maps[p.stem])}) for p in pictures if p.stem in maps]
        return Labelled("voc", entries, dict(enumerate(("background", *NAMES))), [])
    found = {p: place / "Annotations" / f"{p.stem}.xml" for p in pictures}
    read = {p: _boxes(path) for p, path in found.items() if path.is_file()}
    names = sorted({name for boxes in read.values() for name, _, _ in boxes})
    known = list(NAMES) if set(names) <= set(NAMES) else names
    entries = [Entry(str(p), 0, _truth(boxes, known)) for p, boxes in read.items()]
    gone = [p.name for p in pictures if p not in read]
    return Labelled("voc", entries, dict(enumerate(known)), lacking("have no annotation", gone, len(pictures), place))


def _boxes(path: Path) -> list[tuple[str, list[float], int]]:
    text = text_of(path)
    try:
        if _DOCTYPE.search(text):
            raise ValueError("it defines entities, which no annotation needs")
        root = ElementTree.fromstring(text)
        found = []
        for one in root.iter("object"):
            box = one.find("bndbox")
            if box is None:
                continue
            corners = [float(box.findtext(name, "")) for name in ("xmin", "ymin", "xmax", "ymax")]
            found.append((one.findtext("name", "").strip(), [corners[0] - 1, corners[1] - 1, *corners[2:]],
                          int(one.findtext("difficult", "0") or 0)))
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError.of("labels.xml", f"{path.name} is no annotation: {error}", where=str(path),
                           help="mend the file, or take it out of the set with its picture") from error
    return found


def _truth(boxes: list[tuple[str, list[float], int]], names: list[str]) -> Truth:
    return {"boxes": [box for _, box, _ in boxes], "labels": [names.index(name) for name, _, _ in boxes],
            "crowd": [difficult for _, _, difficult in boxes]}
