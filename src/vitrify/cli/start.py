"""Where the program begins: it can be interrupted from its first moment on, also while it is still being loaded."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Load the program and run it."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler      # one that ignores it, keeps to that
    if is_usual:
        signal.signal(signal.SIGINT, _leave)
    from vitrify.cli import main as program

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    program.main()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End at once: nothing has been begun, and an exception could be lost in the midst of an import."""
    os._exit(INTERRUPTED)
