"""Spectra as speech networks take them, and stretches of a recording of two speakers."""

from __future__ import annotations

import numpy as np
from pretrained_table import Array, Find
from road_models import speech

RATE = 16000


def _mel(hertz: Array) -> Array:
    """Slaney's scale: even up to 1 kHz, logarithmic above."""
    low = hertz * 3 / 200
    return np.where(hertz < 1000, low, 15 + np.log(np.maximum(hertz, 1) / 1000) / (np.log(6.4) / 27))


def _hertz(mel: Array) -> Array:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


def mel_filters(bands: int, window: int) -> Array:
    """Triangles of equal area over the bins of a spectrum: float64[bins, bands]."""
    edges = _hertz(np.linspace(0, _mel(np.array(RATE / 2)), bands + 2))
    bins = np.linspace(0, RATE / 2, window // 2 + 1)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    triangles: Array = np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])
    return triangles


def mel_power(samples: Array, bands: int, window: int = 400, hop: int = 160) -> Array:
    """The power in each band: float64[frames, bands]."""
    padded = np.pad(samples.astype(np.float64), window // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    power: Array = np.abs(np.fft.rfft(frames * shape)) ** 2 @ mel_filters(bands, window)
    return power


def turns(find: Find) -> list[tuple[float, float, str]]:
    """Where each speaker's turns begin and end, in seconds."""
    rows = [line.split() for line in find("speech_sample/sample.rttm").read_text().splitlines()]
    return [(float(row[3]), float(row[3]) + float(row[4]), row[7]) for row in rows]


def between(find: Find, begin: float, end: float) -> Array:
    """A stretch of the recording, in seconds."""
    return speech(find)[round(begin * RATE):round(end * RATE)]


def last_seconds(samples: Array, seconds: int = 8) -> Array:
    """The end of a stretch as log mel power float32[1,80,frames]: filled up in front, as Whisper's encoder takes it."""
    kept = samples[-seconds * RATE:]
    even = (kept - kept.mean()) / np.sqrt(kept.var() + 1e-7)
    filled = np.pad(even, (seconds * RATE - len(kept), 0))
    power = np.log10(np.maximum(mel_power(filled, 80)[:-1], 1e-10))
    limited = np.maximum(power, power.max() - 8)
    return ((limited.T + 4) / 4).astype(np.float32)[None]
