"""The standard streams of the program, which its caller may have closed, filled, or given another encoding."""

from __future__ import annotations

import os
import sys

_closed: set[int] = set()


def open_missing() -> None:
    """Put something in the place of closed streams, and let every text be written.

    A file or pipe that is opened later would else get the number of the missing stream, and what is meant for the
    stream would go into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)      # takes the lowest free number, which is this one
            os.set_inheritable(number, True)
            _closed.add(number)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")      # type: ignore[union-attr]


def flush() -> bool:
    """Write out what is left on standard output; says on standard error that it cannot, and returns False then."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return give_up(error)
    if 1 in _closed:
        complain("standard output is closed")
        return False
    return True


def give_up(error: OSError) -> bool:
    """Write no more to standard output; True when that is as its reader wants, who has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)         # Python writes what is left once more at exit
    if isinstance(error, BrokenPipeError):
        return True
    complain(error.strerror or str(error))
    return False


def complain(reason: str) -> None:
    """Say on standard error that the answer could not be written; quiet when that cannot be written either."""
    try:
        sys.stderr.write(f"error[output.write]: the answer cannot be written: {reason}\n")
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
