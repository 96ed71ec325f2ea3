"""Maps: classes of pixels, depths, what stands out, and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.tasks.found import LabelMap, Pixels, Plane
from vitrify.tasks.metrics.base import Record, Truth, measure, percent
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]

BORDER = 255
"""Pixels of this value count for nothing. Source: Pascal VOC."""
NEAR = 1.25
"""Depths within this factor of the truth are near. Source: Eigen et al., arXiv 1406.2283."""
MOST_PSNR = 100.0


def map_of(truth: Truth) -> Array:
    """The truth's map: that of a file, or the values themselves.

    Raises:
        DataError: the file cannot be read.
    """
    if "values" in truth:
        return np.asarray(truth["values"])
    path = Path(truth["map"])
    try:
        if path.suffix == ".npy":
            stored: Array = np.load(path, allow_pickle=False)
            return stored
        from PIL import Image

        with Image.open(path) as image:
            return np.asarray(image)
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError.of("data.unreadable", f"cannot read {path.name}: {error}", where=str(path)) from error


def _fitted(values: Array, shape: tuple[int, ...], where: str) -> Array:
    if values.shape[:2] != shape[:2]:
        raise DataError.of("labels.size", f"a map is {list(values.shape)}, its sample {list(shape)}", where=where,
                           help="maps have the size of their pictures")
    return values


def _classes(found: LabelMap, truth: Truth, spec: TaskSpec) -> Record:
    """How often each pair of class and found class occurs: [class, found, pixels]."""
    wanted = _fitted(map_of(truth), found.labels.shape, str(truth.get("map", "")))
    valid = wanted != BORDER
    pairs, counts = np.unique(np.stack([wanted[valid], found.labels[valid]]).astype(np.int64), axis=1,
                              return_counts=True)
    return np.concatenate([pairs, counts[None]]).T.tolist()


def _as_labels(found: LabelMap, spec: TaskSpec) -> Truth:
    return {"values": found.labels}


@measure("segmentation", needs=("map",), main="mIoU", record=_classes, truth=_as_labels)
def overlap(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """The overlap of each class over all samples, averaged over the classes that occur; and pixels right."""
    table: dict[tuple[int, int], int] = {}
    for record in records:
        for wanted, found, count in record:
            table[wanted, found] = table.get((wanted, found), 0) + count
    right = {label: table.get((label, label), 0) for label, _ in table}
    shares = []
    for label, count in right.items():
        either = sum(n for (w, f), n in table.items() if label in (w, f))
        shares.append(count / either)
    return {"mIoU": 100 * float(np.mean(shares)) if shares else 0.0,
            "pixels right": percent(sum(right.values()), sum(table.values()))}


def _depths(found: Plane, truth: Truth, spec: TaskSpec) -> Record:
    """Sums over the pixels that have a truth: pixels, near ones, relative error.

    A relative depth is brought to the truth's scale by their medians, where the decoder says that it is one.
    """
    wanted = _fitted(map_of(truth).astype(np.float64), found.values.shape, str(truth.get("map", "")))
    values = found.values.astype(np.float64)
    valid = (wanted > 0) & (values > 0)
    wanted, values = wanted[valid], values[valid]
    if not wanted.size:
        return [0, 0, 0.0]
    if spec.options.get("relative", True):
        values = values * np.median(wanted) / np.median(values)
    ratio = np.maximum(wanted / values, values / wanted)
    return [int(wanted.size), int((ratio < NEAR).sum()), float((np.abs(wanted - values) / wanted).sum())]


def _as_values(found: Plane, spec: TaskSpec) -> Truth:
    return {"values": found.values}


@measure("depth", needs=("map",), main="near", record=_depths, truth=_as_values)
def depths(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """Pixels within a factor of 1.25, and the mean relative error; in percent."""
    pixels = sum(r[0] for r in records)
    return {"near": percent(sum(r[1] for r in records), pixels),
            "relative error": percent(sum(r[2] for r in records), pixels)}


def _outstanding(found: Plane, truth: Truth, spec: TaskSpec) -> Record:
    wanted = _fitted(map_of(truth), found.values.shape, str(truth.get("map", ""))).astype(np.float64)
    wanted = wanted / 255 if wanted.max(initial=0) > 1 else wanted
    both = np.minimum(wanted > 0.5, found.values > 0.5).sum()
    either = np.maximum(wanted > 0.5, found.values > 0.5).sum()
    return [float(np.abs(wanted - found.values).mean()), float(both / either) if either else 1.0]


@measure("saliency", needs=("map",), main="alike", record=_outstanding, truth=_as_values)
def outstanding(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """100 less the mean difference in percent, and the overlap of what lies above one half."""
    found = np.asarray(records, np.float64).reshape(-1, 2).mean(0)
    return {"alike": 100 * (1 - float(found[0])), "overlap": 100 * float(found[1])}


def _enlarged(found: Pixels, truth: Truth, spec: TaskSpec) -> Record:
    wanted = map_of(truth).astype(np.float64)
    wanted = wanted[:, :, None] if wanted.ndim == 2 else wanted
    if wanted.shape[2] != found.values.shape[2]:
        wanted = wanted[:, :, :3].mean(2, keepdims=True)
    error = float(np.square(_fitted(wanted, found.values.shape, "") - found.values).mean())
    return min(MOST_PSNR, 10 * float(np.log10(255 ** 2 / max(error, 1e-12))))


def _as_pixels(found: Pixels, spec: TaskSpec) -> Truth:
    return {"values": found.values}


@measure("enlarging", needs=("map",), main="PSNR", record=_enlarged, truth=_as_pixels)
def enlarged(records: Sequence[Record], truths: Sequence[Truth], spec: TaskSpec) -> dict[str, float]:
    """The mean ratio of peak to error, in dB."""
    return {"PSNR": float(np.mean(records)) if records else 0.0}
