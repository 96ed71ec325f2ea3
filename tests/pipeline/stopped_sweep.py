"""Runs one command line and kills itself when a sweep has kept so many cells: ``stopped_sweep.py CELLS ARGUMENTS``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from vitrify.cli.main import main
from vitrify.pipeline.quantizing.search.kept import Kept

left = int(sys.argv[1])
real = Kept.add


def add(self: Kept, name: str, value: Any) -> None:
    global left
    real(self, name, value)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


Kept.add = add  # type: ignore[method-assign]
sys.argv = ["vitrify", *sys.argv[2:]]
main()
