"""Compiles what it is told to, one request a line, within one process: starting Vela costs more than a small model.

It imports nothing of this project, so that it runs in any environment that has some release of Vela. A request is a list
of arguments in JSON; the answer is an empty line, or what went wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys


def main() -> None:
    """Answer requests until there are no more."""
    from ethosu.vela import vela

    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for request in sys.stdin:
        said = ""
        try:
            with contextlib.redirect_stdout(open(os.devnull, "w")), contextlib.redirect_stderr(sys.stdout):
                status = vela.main(json.loads(request))
            said = f"status {status}" if status else ""
        except SystemExit as stop:
            said = f"exit {stop.code}" if stop.code else ""
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        answers.write(" ".join(said.split())[:500] + "\n")
        answers.flush()


main()
