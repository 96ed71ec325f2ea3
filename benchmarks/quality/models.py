"""The models that quality is measured on, and their samples: the zoo's, and pretrained ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Image as Picture
from table import Entry, entries

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / ".cache" / "models"
PHOTOS = ("skimage_photos", "ultralytics_photos", "foolbox_samples", "demo_pictures")

CALIBRATION, HELD_OUT = 8, 4
"""Samples that all tools calibrate on, and others that they are compared on."""
CALIBRATION_SEED, HELD_OUT_SEED = 200, 300

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]


@dataclass(frozen=True)
class Subject:
    """One model: its file, its family, where its samples come from; ``fixed`` are the shapes that it is given.

    ``pages`` are pictures full of what it looks for: its samples are windows of them, as photos hold none of it.
    """

    name: str
    family: str
    onnx: Path
    entry: Entry | None = None
    fixed: tuple[tuple[str, tuple[int, ...]], ...] = ()
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    pages: tuple[str, ...] = ()

    def samples(self) -> tuple[list[Arrays], list[Arrays]]:
        """The samples for calibration, and those held out."""
        if self.entry is None:
            return self._photos()
        return self._drawn(CALIBRATION, CALIBRATION_SEED), self._drawn(HELD_OUT, HELD_OUT_SEED)

    def _drawn(self, count: int, seed: int) -> list[Arrays]:
        import samples

        assert self.entry is not None
        drawn = [[t.numpy() for t in samples.draw(self.entry, 1, seed + k)] for k in range(count)]
        return [{i.name: a for i, a in zip(self.entry.inputs, one, strict=True)} for one in drawn]

    def _photos(self) -> tuple[list[Arrays], list[Arrays]]:
        (name, shape), = self.fixed
        arrays = []
        for picture in self._windows(shape[-2:]) if self.pages else _whole():
            pixels = np.asarray(picture.resize(shape[:1:-1]), np.float32) / 255
            values = (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
            arrays.append({name: np.ascontiguousarray(values.transpose(2, 0, 1)[None])})
        held = arrays[::3][:HELD_OUT]
        return [a for a in arrays if not any(a is h for h in held)], held

    def _windows(self, size: tuple[int, ...]) -> list[Picture]:
        """Windows of the pages, of the network's proportions, anywhere and of different size."""
        pages = [Image.open(MODELS / page).convert("RGB") for page in self.pages]
        random, found = np.random.default_rng(7), []
        for number in range(CALIBRATION + HELD_OUT):
            page = pages[number % len(pages)]
            most = min(page.width / size[1], page.height / size[0])
            width, height = (round(side * most * random.uniform(0.6, 0.95)) for side in (size[1], size[0]))
            left, top = (int(random.integers(0, all_ - part)) for all_, part in
                         ((page.width, width), (page.height, height)))
            found.append(page.crop((left, top, left + width, top + height)))
        return found


def _whole() -> list[Picture]:
    """Photos of all kinds."""
    files = sorted(p for f in PHOTOS for p in (MODELS / f).rglob("*") if p.suffix in (".jpg", ".png", ".jpeg")
                   and (f != "foolbox_samples" or p.name.startswith("imagenet")))
    chosen = files[:: max(1, len(files) // (CALIBRATION + HELD_OUT))][:CALIBRATION + HELD_OUT]
    return [Image.open(path).convert("RGB") for path in chosen]


def subjects(names: Iterable[str] = ()) -> list[Subject]:
    """Return the models with these names, all without names, whose files are there.

    Left out are models that sort their detections themselves: a rank that changes is no matter of decibels.
    """
    zoo = [Subject(e.name, e.family, e.onnx, e) for e in entries() if e.onnx.exists() and not e.ranked]
    rows = tomllib.loads((Path(__file__).parent / "pretrained.toml").read_text())
    trained = [Subject(n, "pretrained", MODELS / r["file"], None, ((r["input"], tuple(r["shape"])),),
                       tuple(r.get("mean", (0.0,))), tuple(r.get("std", (1.0,))), tuple(r.get("pages", ())))
               for n, r in rows.items()]
    found = [*zoo, *(s for s in trained if s.onnx.exists())]
    wanted = list(names)
    unknown = sorted(set(wanted) - {s.name for s in found})
    if unknown:
        raise SystemExit(f"no such models, or their files are not there: {', '.join(unknown)}")
    return [s for s in found if not wanted or s.name in wanted]
