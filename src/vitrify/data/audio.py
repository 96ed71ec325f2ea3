"""Recordings as samples: WAV files cut into frames of the model's input length.

Read here and not by the standard library's ``wave``, which knows neither floats nor the extensible form.
Source: Multimedia Programming Interface and Data Specifications 1.0 (RIFF WAVE); WAVEFORMATEXTENSIBLE.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import gcd
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.preprocess import Preprocess
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
FORMATS: dict[tuple[int, int], np.dtype[Any]] = {
    (PCM, 8): np.dtype("u1"), (PCM, 16): np.dtype("<i2"), (PCM, 24): np.dtype("u1"),
    (PCM, 32): np.dtype("<i4"), (FLOAT, 32): np.dtype("<f4"), (FLOAT, 64): np.dtype("<f8")}
"""What is read of a file by its kind and its bits; 24 bits come as bytes."""

MOST_CHANNELS, MOST_RATE = 64, 1_000_000
ZERO_CROSSINGS = 16
"""Of the windowed sinc that resamples, on each side: the stop band is some 60 dB down."""

BLOCK = 4096
"""Values that are resampled together."""

MOST_PHASES = 1 << 12
"""Fractions of a sample that a resampler may need; rates with less in common are refused."""


class Header(NamedTuple):
    """What a file says of itself: ``start`` and ``frames`` are those of its data."""

    kind: int
    bits: int
    channels: int
    rate: int
    start: int
    frames: int


class WavSource:
    """One recording, cut into frames of the input's length; one shorter than a frame is filled up with silence."""

    def __init__(self, path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> None:
        self._path, self._binding, self._preprocess = path, inputs[0], preprocess
        if len(inputs) > 1 or sum(extent > 1 for extent in inputs[0].shape) > 1:
            raise DataError(_not_audio(path, inputs))
        with path.open("rb") as stream:
            self.header = read_header(stream, path)
        wanted, given = preprocess.rate, self.header.rate
        if wanted and given != wanted and not preprocess.resample:
            raise DataError(Finding(
                code="data.rate", where=str(path),
                headline=f"{path.name} has {given} samples a second, the model takes {wanted}",
                why="the sounds would come at another pitch and speed",
                help="add --prepare resample=true, or convert the files"))
        self._up, self._down = _ratio(path, given, wanted) if wanted and wanted != given else (1, 1)
        self.length = int(np.prod(self._binding.shape))
        self.hop = preprocess.hop or self.length

    def __len__(self) -> int:
        long = self.header.frames * self._up // self._down
        return 1 + max(0, long - self.length) // self.hop

    def sample(self, index: int) -> dict[str, Array]:
        """Read frame ``index``, only its part of the file."""
        first = index * self.hop
        values = self._values(first, self.length) if self._up == self._down else self._resampled(first)
        whole = np.zeros(self.length, np.float32)
        whole[:values.size] = values
        dtype = element_type(self._binding.dtype)
        if not is_float(dtype):
            limits = np.iinfo(dtype)
            whole = np.clip(np.rint(whole * (int(limits.max) + 1)), limits.min, limits.max)
        mean, std = self._preprocess.mean[0], self._preprocess.std[0]
        whole = (whole - np.float32(mean)) / np.float32(std) if (mean, std) != (0, 1) else whole
        return {self._binding.name: whole.astype(dtype).reshape(self._binding.shape)}

    def _values(self, first: int, count: int) -> Array:
        """Values of the file in -1..1, its channels mixed; what lies outside it is left out."""
        head = self.header
        count = max(0, min(count, head.frames - first))
        width = head.bits // 8 * head.channels
        try:
            with self._path.open("rb") as stream:
                stream.seek(head.start + first * width)
                data = stream.read(count * width)
        except OSError as error:
            raise _unreadable(self._path, str(error)) from error
        if len(data) != count * width:
            raise _unreadable(self._path, f"it ends after {len(data)} of {count * width} bytes of a frame")
        mixed: Array = _decoded(data, head).reshape(-1, head.channels).mean(axis=1, dtype=np.float32)
        return mixed

    def _resampled(self, first: int) -> Array:
        """The same at the model's rate, in blocks, since each value takes a row of taps."""
        held = max(0, min(self.length, self.header.frames * self._up // self._down - first))
        blocks = [self._block(first + done, min(BLOCK, held - done)) for done in range(0, held, BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)

    def _block(self, first: int, count: int) -> Array:
        """A windowed sinc around each instant."""
        cut = min(1.0, self._up / self._down)
        span = ZERO_CROSSINGS / cut                               # a lower cut has a longer sinc
        position = np.arange(first, first + count) * self._down
        centre, phase = position // self._up, position % self._up / self._up
        reach = int(span) + 1
        begin, end = int(centre[0]) - reach, int(centre[-1]) + reach + 1
        start = max(0, begin)
        known = self._values(start, end - start)
        around = np.zeros(end - begin, np.float32)
        around[start - begin:start - begin + known.size] = known
        taps = np.arange(2 * reach + 1)
        distance = taps[None, :] - reach - phase[:, None]
        window = np.cos(np.clip(distance / span, -1, 1) * np.pi / 2) ** 2
        kernel = cut * np.sinc(cut * distance) * window
        rows = around[(centre - centre[0])[:, None] + taps]
        found: Array = np.einsum("ij,ij->i", rows, kernel).astype(np.float32)
        return found


def read_header(stream: IO[bytes], path: Path) -> Header:
    """Read what a WAV file says of itself.

    Raises:
        DataError: it is none, is damaged, or in a form that is not read here.
    """
    kind = bits = channels = rate = 0
    if (head := stream.read(12))[:4] != b"RIFF" or head[8:] != b"WAVE":
        raise _unreadable(path, "it is no RIFF WAVE file")
    while len(chunk := stream.read(8)) == 8:
        name, size = struct.unpack("<4sI", chunk)
        if name == b"data":
            return _checked(path, Header(kind, bits, channels, rate, stream.tell(), size))
        body = stream.read(min(size + size % 2, 1 << 16))
        stream.seek(size + size % 2 - len(body), 1)
        if name == b"fmt " and len(body) >= 16:
            kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            kind = struct.unpack_from("<H", body, 24)[0] if kind == EXTENSIBLE and len(body) >= 40 else kind
    raise _unreadable(path, "it holds no sound")


def _checked(path: Path, head: Header) -> Header:
    if (head.kind, head.bits) not in FORMATS:
        raise _unreadable(path, f"format {head.kind} with {head.bits} bits is none of PCM with 8, 16, 24 or 32 bits "
                                "and floats with 32 or 64")
    if not 1 <= head.channels <= MOST_CHANNELS or not 1 <= head.rate <= MOST_RATE:
        raise _unreadable(path, f"{head.channels} channels at {head.rate} samples a second")
    there = min(head.frames, path.stat().st_size - head.start)            # a stream's header says 0xFFFFFFFF
    frames = there // (head.bits // 8 * head.channels)
    if not frames:
        raise _unreadable(path, "it holds no sound")
    return head._replace(frames=frames)


def _decoded(data: bytes, head: Header) -> Array:
    values: Array = np.frombuffer(data, FORMATS[head.kind, head.bits])
    if head.bits == 24:
        wide = np.zeros((values.size // 3, 4), np.uint8)
        wide[:, 1:] = values.reshape(-1, 3)
        return wide.view("<i4").reshape(-1).astype(np.float32) / np.float32(1 << 31)
    if head.kind == FLOAT:
        return values.astype(np.float32)
    if head.bits == 8:
        return (values.astype(np.float32) - 128) / 128
    return (values.astype(np.float64) / (1 << (head.bits - 1))).astype(np.float32)


def _ratio(path: Path, given: int, wanted: int) -> tuple[int, int]:
    common = gcd(given, wanted)
    up, down = wanted // common, given // common
    if up > MOST_PHASES:
        raise DataError.of("data.rate", f"{path.name} has {given} samples a second, which cannot become {wanted}",
                           where=str(path), why=f"that needs {up} phases, at most {MOST_PHASES} are computed")
    return up, down


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError.of("data.unreadable", f"cannot read {path.name}: {reason}", where=str(path),
                        help="repair or remove the file")


def _not_audio(path: Path, inputs: Sequence[InputBinding]) -> Finding:
    listed = ", ".join(f"'{i.name}' {i.dtype}[{','.join(map(str, i.shape))}]" for i in inputs)
    return Finding(code="data.not_audio", headline=f"recordings do not fit the model's inputs: {listed}",
                   where=str(path), why="WAV files need one input with one extent above 1, the length of a frame",
                   help="give features or several inputs as .npy or .npz files")
