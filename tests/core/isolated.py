"""What the children of test_isolation.py do: each function is one way a call may end."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding

STATE: list[int] = []


def double(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array * 2


def echo(*values: Any) -> Any:
    return values


def remember(value: int) -> list[int]:
    STATE.append(value)
    return STATE


def count(total: int, progress: Callable[[int, int], None]) -> int:
    for done in range(1, total + 1):
        progress(done, total)
    return total


def prints(text: str) -> None:
    os.write(1, f"C++ says {text}\n".encode())
    print("Python says", text, file=sys.stderr)


def floods(megabytes: int) -> int:
    for _ in range(megabytes):
        os.write(2, b"x" * 1023 + b"\n")
        os.write(2, (b"y" * 1023 + b"\n") * 1023)
    os.write(2, b"the end\n")
    return megabytes


def segfaults() -> None:
    os.write(2, b"about to read address 0\n")
    ctypes.string_at(0)


def aborts(text: str = "check failed: scale < 1") -> None:
    os.write(2, text.encode() + b"\n")
    os.abort()


def exits(status: int) -> None:
    os._exit(status)


def raises_ours() -> None:
    raise ModelError([Finding(code="a.one", headline="first"), Finding(code="a.two", headline="second")])


def raises_theirs() -> None:
    raise KeyError("inner")


def sleeps(seconds: float, pid_file: str = "") -> None:
    """Sleep as badly behaved C++ does: with a process of its own, and without letting other threads run."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    if pid_file:
        with open(pid_file + ".part", "w") as stream:
            stream.write(f"{os.getpid()} {child.pid}")
        os.replace(pid_file + ".part", pid_file)
    ctypes.PyDLL(None).sleep(int(seconds))


def eats(megabytes: int, step: int = 16) -> int:
    held = []
    for _ in range(0, megabytes, step):
        held.append(np.ones(step << 17))
        time.sleep(0.002)
    return len(held)


def maps(path: str) -> int:
    return int(np.memmap(path, np.uint8, "r").sum())


def core_limit() -> tuple[int, int]:
    import resource

    return resource.getrlimit(resource.RLIMIT_CORE)


def lambda_back() -> Any:
    return lambda: 0
