"""A child process forked from this one, which saves it the start of an interpreter and what is imported already.

Only a young process on Linux is forked: one thread, which is the command line's before its work begins. In a program of
somebody else's, threads may hold locks that the child would wait for in vain.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import NoReturn

_FIRST_FREE = 3        # after standard input, output and error
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def can_fork() -> bool:
    """True when a copy of this process can go on by itself."""
    if sys.platform != "linux":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class Forked:
    """A forked child, with what ``subprocess.Popen`` has for waiting and killing."""

    def __init__(self, serve: Callable[[], NoReturn], output: int, kept: Sequence[int]) -> None:
        """Let a child ``serve``, with ``output`` in the place of its standard output and error.

        Args:
            serve: what the child does; it does not come back.
            output: a descriptor, the parent's end of it is read by the caller.
            kept: all descriptors that the child keeps.
        """
        for stream in (sys.stdout, sys.stderr):
            stream.flush()                       # else the child would print it once more
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _detach(output, kept)
                serve()
            except BaseException:
                traceback.print_exc()            # what it printed is the parent's log
            finally:
                os._exit(1)                      # never back into the parent's code

    def poll(self) -> int | None:
        """Return how the child ended, None while it runs."""
        return self._ended(os.WNOHANG)

    def wait(self) -> int:
        """Wait for the end and return it: the exit status, or minus the signal."""
        status = self._ended(0)
        assert status is not None
        return status

    def kill(self) -> None:
        """End the child at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _ended(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _detach(output: int, kept: Sequence[int]) -> None:
    """Give the child a session, streams and signals of its own, and none of the parent's open files."""
    os.setsid()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, stream in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, stream)
    last = _FIRST_FREE
    for descriptor in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(last, descriptor)
        last = descriptor + 1
    for text in (sys.stdout, sys.stderr):
        if isinstance(text, TextIOWrapper):
            text.reconfigure(write_through=True)
