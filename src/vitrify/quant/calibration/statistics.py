"""What calibration saw of each tensor: range, histogram, channel means.

Ranges and counts do not depend on the order of the samples; sums do in their last bits.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.files import write_atomically
from vitrify.core.findings import Finding
from vitrify.data.preprocess import Preprocess
from vitrify.quant.calibration.moments import Moments

Array = np.ndarray[Any, np.dtype[Any]]

BINS = 4096
"""Bins of a histogram over [-top, top), top being a power of two: halves and doubles of it share bin borders."""


ENDS = 4
"""Samples with the lowest and the highest values of a tensor that are remembered."""


KEPT_SHARE = 0.95
"""What a sample leaves of the share that those before it have in the moving average of the extremes."""


class Range(msgspec.Struct, frozen=True):
    """Smallest and largest value."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Largest minus smallest."""
        return self.high - self.low

    def join(self, other: Range) -> Range:
        """The range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def scaled(self, factor: float) -> Range:
        """The range of values so many times as large."""
        return Range(self.low * factor, self.high * factor)

    def with_zero(self) -> Range:
        """The range widened to hold zero, which a quantized tensor must represent exactly."""
        return Range(min(self.low, 0.0), max(self.high, 0.0))

    def clip(self, low: float, high: float) -> Range:
        """The part between two limits."""
        return Range(min(max(self.low, low), high), max(min(self.high, high), low))


class Histogram:
    """Counts of values in equal bins over a range that doubles when larger values come.

    All borders are powers of two apart, so a histogram that grew equals one that was wide from the start: the counts
    depend on the values seen, not on their order.
    """

    def __init__(self, top: float = 0.0, counts: Array | None = None) -> None:
        self.top = top
        self.counts: Array = np.zeros(BINS, np.int64) if counts is None else counts

    def add(self, values: Array, largest: float) -> None:
        """Count ``values``, none of which is larger than ``largest`` in magnitude."""
        if largest <= 0 or not np.isfinite(largest):
            largest = float(np.finfo(np.float32).tiny)
        self._grow(float(2.0 ** np.ceil(np.log2(largest) + 1e-9)))
        scaled = values.astype(np.float64)
        scaled *= BINS / 2 / self.top
        np.floor(scaled, out=scaled)                   # before the sum, which would round -1e-30 to 0
        bins = scaled.astype(np.int64)
        bins += BINS // 2
        self.counts += np.bincount(np.clip(bins, 0, BINS - 1, out=bins), minlength=BINS)

    def _grow(self, top: float) -> None:
        if self.top == 0:
            self.top = top
        while self.top < top:
            half = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.concatenate([np.zeros(BINS // 4, np.int64), half, np.zeros(BINS // 4, np.int64)])
            self.top *= 2

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        if other.top == 0:
            return
        copy = Histogram(other.top, other.counts.copy())
        self._grow(copy.top)
        copy._grow(self.top)
        self.counts = self.counts + copy.counts

    @property
    def centers(self) -> Array:
        """The middle of each bin."""
        step = 2 * self.top / BINS
        middle: Array = (np.arange(BINS) + 0.5) * step - self.top
        return middle

    def percentile(self, share: float) -> Range:
        """The range that leaves out ``(100 - share) / 2`` per cent of the values on each side."""
        total = int(self.counts.sum())
        if total == 0:
            return Range(0.0, 0.0)
        cut = (1 - share / 100) / 2 * total
        running = np.cumsum(self.counts)
        low = int(np.searchsorted(running, cut, side="right"))
        high = int(np.searchsorted(running, total - cut, side="left"))
        step = 2 * self.top / BINS
        return Range(low * step - self.top, (high + 1) * step - self.top)


ROWS = -1
"""In the place of an axis: what is held is of the rows' largest values."""


class TensorStatistics:
    """What was seen of one tensor. ``low`` and ``high`` are infinite the wrong way round while nothing was seen.

    ``axis_low`` and ``axis_high`` hold, by axis, the range of each index where that was asked for; ``sums`` the sum of
    ``counted`` values of each channel. ``nan_sample`` is the number of the first sample with a NaN or an infinity.
    ``lowest`` and ``highest`` hold the most extreme values of samples, and which samples these are. ``moving`` holds
    the sums of the samples' smallest and largest values, and of their shares; older samples have smaller ones.
    """

    def __init__(self) -> None:
        self.low = np.inf
        self.high = -np.inf
        self.histogram: Histogram | None = None
        self.axis_low: dict[int, Array] = {}
        self.axis_high: dict[int, Array] = {}
        self.nan_sample: int | None = None
        self.sums: Array | None = None
        self.counted = 0
        self.lowest: list[tuple[float, int]] = []
        self.highest: list[tuple[float, int]] = []
        self.moving: Array = np.zeros(3)

    def note_ends(self, low: float, high: float, sample: int) -> None:
        """Remember a sample whose extremes are among the first ``ENDS``."""
        if len(self.lowest) < ENDS or low < self.lowest[-1][0]:
            self.lowest = sorted([*self.lowest, (low, sample)])[:ENDS]
        if len(self.highest) < ENDS or high > self.highest[-1][0]:
            self.highest = sorted([*self.highest, (high, sample)], key=lambda end: (-end[0], end[1]))[:ENDS]

    def move(self, low: float, high: float) -> None:
        """Let a sample move the average of the extremes."""
        self.moving = self.moving * KEPT_SHARE + (low, high, 1.0)

    @property
    def average(self) -> Range:
        """The average of the samples' extremes."""
        low, high, shares = map(float, self.moving)
        return Range(low / shares, high / shares) if shares else self.range

    def note_rows(self, values: Array) -> None:
        """Remember the smallest and the largest of the rows' largest values."""
        largest = values.max(axis=-1)
        low, high = np.array([largest.min()]), np.array([largest.max()])
        self.axis_low[ROWS] = np.minimum(self.axis_low.get(ROWS, low), low)
        self.axis_high[ROWS] = np.maximum(self.axis_high.get(ROWS, high), high)

    @property
    def flattest_row(self) -> float | None:
        """The smallest of the largest values of rows; None where it was not asked for."""
        return float(self.axis_low[ROWS][0]) if ROWS in self.axis_low else None

    @property
    def means(self) -> Array | None:
        """The mean of each channel (last axis), None where it was not asked for."""
        return None if self.sums is None or not self.counted else self.sums / self.counted

    @property
    def range(self) -> Range:
        """The range of all values, [0, 0] when nothing was seen."""
        return Range(float(self.low), float(self.high)) if self.low <= self.high else Range(0.0, 0.0)

    def merge(self, other: TensorStatistics) -> None:
        """Take in what another run saw of the same tensor."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for axis in other.axis_low:
            mine_low, mine_high = self.axis_low.get(axis), self.axis_high.get(axis)
            low, high = other.axis_low[axis], other.axis_high[axis]
            self.axis_low[axis] = low if mine_low is None else np.minimum(mine_low, low)
            self.axis_high[axis] = high if mine_high is None else np.maximum(mine_high, high)
        if other.histogram is not None:
            self.histogram = self.histogram or Histogram()
            self.histogram.merge(other.histogram)
        if other.sums is not None:
            self.sums = other.sums if self.sums is None else self.sums + other.sums
            self.counted += other.counted
        self.moving = self.moving + other.moving
        if other.nan_sample is not None:
            self.nan_sample = min(other.nan_sample, self.nan_sample if self.nan_sample is not None else 1 << 62)
        self.lowest = sorted([*self.lowest, *other.lowest])[:ENDS]
        self.highest = sorted([*self.highest, *other.highest], key=lambda end: (-end[0], end[1]))[:ENDS]


class Statistics:
    """The statistics of a run by tensor name, and how many samples went in.

    ``pictures`` says how pictures became samples, when all of them were pictures. ``moments`` says by node how the
    inputs of layers vary together, ``history`` what the ranges were after so many samples. ``declared`` is how files
    became samples, ``notes`` what is worth knowing of them; ``stopped`` says that there were more than were needed.
    ``advantages`` says how much surer the model was of samples with red and blue exchanged; ``scales`` by what the
    channels of tensors were divided before anything was seen, ``scaled_db`` what that won.
    """

    def __init__(self, tensors: Mapping[str, TensorStatistics] | None = None, samples: int = 0, key: str = "",
                 is_random: bool = False, pictures: Preprocess | None = None) -> None:
        self.tensors: dict[str, TensorStatistics] = dict(tensors or {})
        self.samples = samples
        self.key = key
        self.is_random = is_random
        self.pictures = pictures
        self.moments: dict[str, Moments] = {}
        self.scales: dict[str, Array] = {}
        self.history: dict[int, Array] = {}
        self.declared: Preprocess | None = None
        self.notes: list[Finding] = []
        self.skipped: list[Finding] = []
        self.stopped = False
        self.all_equal = True
        self.first_hash = ""
        self.advantages: list[float] = []
        self.growth: tuple[str, float, float, int] | None = None
        self.scaled_db = 0.0

    def __getitem__(self, name: str) -> TensorStatistics:
        return self.tensors[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def merge(self, other: Statistics) -> None:
        """Take in the statistics of other samples on the same model."""
        for name, seen in other.tensors.items():
            self.tensors.setdefault(name, TensorStatistics()).merge(seen)
        for name, moments in other.moments.items():
            self.moments[name] = self.moments[name].add(moments) if name in self.moments else moments
        self.samples += other.samples
        self.history, self.growth = {}, None
        self.is_random = self.is_random or other.is_random
        self.pictures = self.pictures if self.pictures == other.pictures else None

    def save(self, path: Path | str) -> None:
        """Write everything to a .npz file, whole or not at all. Equal statistics give equal bytes."""
        names = list(self.tensors)
        arrays: dict[str, Array] = {
            "ranges": np.array([(self.tensors[n].low, self.tensors[n].high) for n in names], np.float64).reshape(-1, 2),
            "nan": np.array([-1 if (s := self.tensors[n].nan_sample) is None else s for n in names], np.int64),
            "moving": np.array([self.tensors[n].moving for n in names], np.float64).reshape(-1, 3),
            "counted": np.array([self.tensors[n].counted for n in names], np.int64),
            "tops": np.array([h.top if (h := self.tensors[n].histogram) else -1.0 for n in names], np.float64),
            "ends": np.array([_ends(self.tensors[n]) for n in names], np.float64).reshape(-1, 2, ENDS, 2),
            "history": np.array([*self.history.values()], np.float64).reshape(
                len(self.history), -1 if self.history else 0, 2),         # of the tensors alone, not of cells
        }
        for index, name in enumerate(names):
            seen = self.tensors[name]
            if seen.histogram is not None:
                arrays[f"counts/{index}"] = seen.histogram.counts
            if seen.sums is not None:
                arrays[f"sums/{index}"] = seen.sums
            for axis in sorted(seen.axis_low):
                arrays[f"axis/{index}/{axis}"] = np.stack([seen.axis_low[axis], seen.axis_high[axis]])
        arrays |= {f"scales/{index}": scales for index, scales in enumerate(self.scales.values())}
        for index, moments in enumerate(self.moments.values()):
            arrays[f"first/{index}"], arrays[f"second/{index}"] = moments.first, moments.second
        windows = {name: moments.count for name, moments in self.moments.items()}
        header = msgspec.json.encode({"names": names, "windows": windows, "samples": self.samples, "key": self.key,
                                      "is_random": self.is_random, "pictures": self.pictures,
                                      "steps": list(self.history), "scaled": list(self.scales), "kept": self._kept()})
        write_atomically(path, _archive({"header": np.frombuffer(header, np.uint8), **arrays}))

    def _kept(self) -> Kept:
        return Kept(**{field: getattr(self, field) for field in Kept.__struct_fields__})

    @classmethod
    def load(cls, path: Path | str) -> Statistics:
        """Read what ``save`` wrote.

        Raises:
            DataError: the file is missing, damaged, or something else.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                return cls._from(stored)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.DecodeError) as error:
            raise DataError.of("statistics.read", f"{path} holds no calibration statistics: {error}",
                               where=str(path), help="remove the file and calibrate again") from error

    @classmethod
    def _from(cls, stored: Mapping[str, Array]) -> Statistics:
        header = msgspec.json.decode(stored["header"].tobytes())
        tensors = {name: TensorStatistics() for name in header["names"]}
        for index, seen in enumerate(tensors.values()):
            seen.low, seen.high = map(float, stored["ranges"][index])
            seen.nan_sample = int(n) if (n := stored["nan"][index]) >= 0 else None
            seen.moving = stored["moving"][index]
            seen.counted = int(stored["counted"][index])
            seen.sums = stored.get(f"sums/{index}")
            seen.lowest, seen.highest = ([(float(v), int(n)) for v, n in side if n >= 0] for side in
                                         stored["ends"][index])
            if stored["tops"][index] >= 0:
                seen.histogram = Histogram(float(stored["tops"][index]), stored[f"counts/{index}"])
        listed = list(tensors.values())
        for key in stored:
            if key.startswith("axis/"):
                _, index_text, axis = key.split("/")
                seen = listed[int(index_text)]
                seen.axis_low[int(axis)], seen.axis_high[int(axis)] = stored[key]
        made = cls(tensors, int(header["samples"]), str(header["key"]), bool(header["is_random"]),
                   msgspec.convert(header["pictures"], Preprocess | None))
        made.moments = {name: Moments(stored[f"first/{index}"], stored[f"second/{index}"], int(count))
                        for index, (name, count) in enumerate(header["windows"].items())}
        made.scales = {name: stored[f"scales/{index}"] for index, name in enumerate(header["scaled"])}
        made.history = dict(zip(header["steps"], stored["history"], strict=True))
        kept = msgspec.convert(header["kept"], Kept)
        for field in Kept.__struct_fields__:
            setattr(made, field, getattr(kept, field))
        return made


class Kept(msgspec.Struct):
    """What statistics say of their samples, as it is stored."""

    declared: Preprocess | None
    notes: list[Finding]
    skipped: list[Finding]
    stopped: bool
    all_equal: bool
    first_hash: str
    advantages: list[float]
    growth: tuple[str, float, float, int] | None
    scaled_db: float = 0.0


def _ends(seen: TensorStatistics) -> list[list[tuple[float, int]]]:
    return [[*side, *[(0.0, -1)] * (ENDS - len(side))] for side in (seen.lowest, seen.highest)]


def _archive(arrays: Mapping[str, Array]) -> bytes:
    """A .npz without times in it, so that equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()
