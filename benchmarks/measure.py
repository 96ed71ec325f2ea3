"""Measure a command as a whole process tree: CPU seconds, and the peak of its resident memory.

CPU seconds come from the operating system's accounting of finished children. Memory is the largest sum of resident
pages over the tree, sampled; pages that processes share count for each of them, so the figure is an upper bound.
"""

from __future__ import annotations

import os
import platform
import resource
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
FINE_SECONDS = 5
"""For so long memory is sampled fifty times a second, later ten times: sampling costs time too."""


@dataclass(frozen=True)
class Measurement:
    """One finished run of a command."""

    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    status: int
    output: str


def tree(pid: int) -> list[int]:
    """Return ``pid`` and all processes below it that still run."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting += children.get(current, [])
    return found


def resident_bytes(pids: list[int]) -> int:
    """Return the sum of the resident memory of ``pids``."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        except OSError:
            continue
    return total


def machine() -> str:
    """Return what was measured on, in words."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    processor = names[0] if names else platform.machine()
    return f"{os.cpu_count()} cores of {processor}, Python {platform.python_version()}, Linux"


def limit_cpu(seconds: int) -> None:
    """Limit the CPU seconds of this process, and of each that it starts."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def measure(command: list[str], cwd: Path, timeout: float = 1800, cpu_limit: int | None = None) -> Measurement:
    """Run ``command`` to its end; a command over ``timeout`` seconds is killed with its children and has status -9.

    A process of it that uses more than ``cpu_limit`` CPU seconds is ended by SIGXCPU.
    The folder of its program comes first in PATH, as in an activated environment: tools call others by their names.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "",
                   "PATH": os.pathsep.join((str(Path(command[0]).parent), os.environ["PATH"]))}
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", env=environment, start_new_session=True,
                               preexec_fn=partial(limit_cpu, cpu_limit) if cpu_limit else None)
    peak, stop = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.wait(0.02 if time.monotonic() - start < FINE_SECONDS else 0.1):
            peak = max(peak, resident_bytes(tree(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    stop.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return Measurement(cpu, time.monotonic() - start, peak, process.returncode, output)
