"""Runs one command line and sends itself a signal inside one stage.

Called as ``stopped_build.py SIGNAL STAGE MOMENT ARGUMENTS...``. MOMENT is ``begin`` or ``end``; at the end the stage's
work is done, but not yet in the record.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vitrify.cli.main import main
from vitrify.pipeline.building.engine import Context
from vitrify.results import StageRecord

signum, wanted, moment = int(sys.argv[1]), sys.argv[2], sys.argv[3]
real = Context.stage


@contextmanager
def stage(self: Context[Any], name: str) -> Iterator[StageRecord]:
    with real(self, name) as record:
        if name == wanted and moment == "begin":
            os.kill(os.getpid(), signum)
        yield record
        if name == wanted and moment == "end":
            os.kill(os.getpid(), signum)


Context.stage = stage  # type: ignore[method-assign]
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["vitrify", *sys.argv[4:]]
main()
