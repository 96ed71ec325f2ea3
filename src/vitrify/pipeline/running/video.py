"""Pictures as a video file, written with PyAV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

RATE = 25


class Writer:
    """Writes pictures of one size as MPEG-4, which every build of the library encodes; sides are made even."""

    def __init__(self, path: Path, rate: int = RATE) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._container = av.open(str(path), "w")
        self._rate = rate
        self._stream: Any = None

    def add(self, pixels: Array) -> None:
        """Add one picture, uint8[H,W,3]."""
        pixels = np.ascontiguousarray(pixels[:pixels.shape[0] // 2 * 2, :pixels.shape[1] // 2 * 2])
        if self._stream is None:
            self._stream = self._container.add_stream("mpeg4", rate=self._rate)
            self._stream.height, self._stream.width = pixels.shape[:2]
            self._stream.pix_fmt, self._stream.bit_rate = "yuv420p", 4_000_000
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame = frame.reformat(self._stream.width, self._stream.height)
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def close(self) -> None:
        """Finish the file."""
        if self._stream is not None:
            for packet in self._stream.encode():
                self._container.mux(packet)
        self._container.close()
