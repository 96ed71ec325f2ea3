"""What a command used: seconds, and the largest resident size of any process that took part."""

from __future__ import annotations

import resource
import sys
import time


class Meter:
    """Starts with its creation; read it at the end."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Wall seconds since the start."""
        return round(time.monotonic() - self._started, 3)

    @property
    def peak_bytes(self) -> int:
        """The largest resident size so far of this process or of one of its children that has ended."""
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
