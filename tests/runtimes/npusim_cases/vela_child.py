"""Compiles what it is told to, one request a line, each in a fork: starting Vela costs more than a small model.

Nothing that one model leaves behind reaches the next: the legacy core keeps compressed weights, and takes them again
for another model. It imports nothing of this project, so that it runs in any environment that has some release of Vela.
A request is a list of arguments in JSON; the answer is an empty line, or what went wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any


def compiled(vela: Any, arguments: list[str]) -> str:
    """Compile; return what went wrong."""
    try:
        with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            status = vela.main(arguments)
        return f"status {status}" if status else ""
    except SystemExit as stop:
        return f"exit {stop.code}" if stop.code else ""
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def forked(vela: Any, arguments: list[str]) -> str:
    """Compile in a fork."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, " ".join(compiled(vela, arguments).split()).encode()[:500])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        said = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return f"it died with signal {status & 127}" if status else said


def main() -> None:
    """Answer requests until there are no more."""
    from ethosu.vela import vela

    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    for request in sys.stdin:
        answers.write(forked(vela, json.loads(request)) + "\n")
        answers.flush()


main()
