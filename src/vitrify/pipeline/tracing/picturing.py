"""Values as figures, histograms and maps of differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.results.tracing import FigureOfTensor, TraceRow, WorstValue
from vitrify.verify.locating.figures import figures
from vitrify.verify.metrics import Sums

Array = np.ndarray[Any, np.dtype[Any]]
BINS, ROWS, COLUMNS, WORST = 48, 12, 24, 5
_PIXELS = 512


def picture(row: TraceRow, values: Sequence[Array], raw: Sequence[Array], wanted: Sequence[Array] | None,
            span: tuple[float, float]) -> TraceRow:
    """Fill a row with what the values of all samples show; ``wanted``: the reference's, in the same layout."""
    flat = np.concatenate([np.asarray(one, np.float64).reshape(-1) for one in values])
    good = flat[np.isfinite(flat)]
    row.type, row.shape = str(raw[0].dtype), list(raw[0].shape)
    row.not_finite = int(flat.size - good.size)
    if good.size:
        row.minimum, row.maximum = float(good.min()), float(good.max())
        row.mean, row.deviation = float(good.mean()), float(good.std())
        row.zeros = float(np.mean(good == 0))
    row.low, row.high = span
    row.counts = np.histogram(np.clip(good, *span), np.linspace(*span, BINS + 1))[0].tolist()
    if raw[0].dtype.kind in "iu" and raw[0].dtype.itemsize <= 2 and row.scale is not None:
        info, stack = np.iinfo(raw[0].dtype), np.concatenate([one.reshape(-1) for one in raw])
        row.saturated = float(np.mean((stack == info.min) | (stack == info.max)))
        row.used_levels, row.all_levels = len(np.unique(stack)), int(info.max) - int(info.min) + 1
    if wanted is not None:
        row.error = _error(wanted, values, row.scale)
        row.worst = _worst(wanted[0], values[0])
        row.map = _map(wanted[0], values[0])
    return row


def _error(wanted: Sequence[Array], values: Sequence[Array], step: float | None) -> FigureOfTensor:
    sums = Sums()
    for one, other in zip(wanted, values, strict=True):
        sums.add(one, other, step)
    return figures(sums)


def _worst(wanted: Array, value: Array) -> list[WorstValue]:
    with np.errstate(invalid="ignore"):
        error = np.nan_to_num(np.abs(wanted.astype(np.float64) - value), nan=np.inf, posinf=np.inf)
    order = np.argsort(-error, axis=None)[:WORST]
    return [WorstValue(place=[int(i) for i in np.unravel_index(n, value.shape)],
                       reference=float(np.nan_to_num(wanted.reshape(-1)[n])),
                       value=float(np.nan_to_num(value.reshape(-1)[n])))
            for n in order if error.reshape(-1)[n] > 0]


def _plane(array: Array) -> Array:
    """The mean over all but two axes: height and width of a picture, else the last two."""
    if array.ndim >= 4:
        return np.asarray(array.reshape(-1, *array.shape[-3:]).mean(axis=(0, 3)))
    if array.ndim >= 2:
        return np.asarray(array.reshape(-1, *array.shape[-2:]).mean(axis=0))
    return array.reshape(1, -1)


def _map(wanted: Array, value: Array) -> list[list[float]]:
    largest = float(np.nanmax(np.abs(wanted), initial=0.0))
    if not value.size or not np.isfinite(largest) or largest == 0:
        return []
    with np.errstate(invalid="ignore"):
        plane = _plane(np.nan_to_num(np.abs(wanted.astype(np.float64) - value), posinf=largest) / largest)
    rows = np.array_split(plane, min(ROWS, plane.shape[0]), axis=0)
    return [[float(cell.mean()) for cell in np.array_split(row, min(COLUMNS, plane.shape[1]), axis=1)]
            for row in rows]


def write_picture(path: Path, name: str, pairs: Sequence[tuple[str, Array, Array]],
                  rows: Sequence[TraceRow]) -> list[str]:
    """Write the reference, each stage and each difference beside one another, a row for each stage.

    Raises:
        DataError: no picture can be written there.
    """
    from PIL import Image, ImageDraw

    from vitrify.core.errors import DataError

    if not pairs:
        return []
    lines = []
    for stage, wanted, value in pairs:
        low, high = float(np.nanmin(wanted)), float(np.nanmax(wanted))
        error = np.abs(np.nan_to_num(wanted.astype(np.float64) - value))
        panels = [_grey(_plane(np.asarray(one, np.float64)), *ends) for one, ends in (
            (wanted, (low, high)), (value, (low, high)), (error, (0.0, float(_plane(error).max()))))]
        lines.append((stage, panels))
    side = max(panel.shape[1] for _, panels in lines for panel in panels)
    height = max(panel.shape[0] for _, panels in lines for panel in panels)
    factor = max(1, min(_PIXELS // 2 // max(side, height), 16))
    wide, high_ = side * factor, height * factor
    sheet = Image.new("L", (3 * wide + 16, len(lines) * (high_ + 16)), 255)
    draw = ImageDraw.Draw(sheet)
    for number, (stage, panels) in enumerate(lines):
        top = number * (high_ + 16)
        draw.text((2, top + 2), f"{stage}: reference, this stage, difference", fill=0)
        for place, panel in enumerate(panels):
            one = Image.fromarray(panel).resize((panel.shape[1] * factor, panel.shape[0] * factor), 0)
            sheet.paste(one, (place * (wide + 8), top + 16))
    try:
        sheet.save(path, "PNG")
    except (OSError, ValueError) as error_:
        raise DataError.of("file.write", f"{path} cannot be written: {error_}", where=str(path),
                           help="name a file in a folder that may be written to") from error_
    return [str(path)]


def _grey(plane: Array, low: float, high: float) -> Array:
    scaled = (np.nan_to_num(plane) - low) / (high - low) if high > low else np.zeros(plane.shape)
    step = max(1, max(plane.shape) // _PIXELS)
    found: Array = np.clip(255 * scaled[::step, ::step], 0, 255).astype(np.uint8)
    return found
