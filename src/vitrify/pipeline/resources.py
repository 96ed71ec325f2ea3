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
        return max(_own_peak(), _peak(resource.RUSAGE_CHILDREN))


def _own_peak() -> int:
    """On Linux ``ru_maxrss`` survives exec, so that a small program started by a large one would count the large one's
    memory as its own; ``VmHWM`` belongs to the program's own address space.
    """
    if sys.platform == "linux":
        try:
            with open("/proc/self/status", "rb") as stream:
                for line in stream:
                    if line.startswith(b"VmHWM:"):
                        return int(line.split()[1]) * 1024
        except (OSError, ValueError, IndexError):
            pass          # no /proc: what the system counts otherwise has to do
    return _peak(resource.RUSAGE_SELF)


def _peak(who: int) -> int:
    return (1 if sys.platform == "darwin" else 1024) * resource.getrusage(who).ru_maxrss
