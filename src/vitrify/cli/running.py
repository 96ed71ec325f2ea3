"""Runs one command: turns what comes of it into output and an exit status.

Only this module prints, and only ``main`` exits. Standard output carries the answer, standard error the progress.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from vitrify.core.errors import InternalError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.results import FailureResult, Result

OK, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


def run_command(name: str, work: Callable[[Reporter], Result], *, json: bool, quiet: bool) -> int:
    """Do ``work``, print its result and return the exit status.

    Returns:
        0 all is well, 1 the model or the check failed, 2 the call is wrong, 130 Ctrl-C.
    """
    from vitrify.cli.showing import reporter

    shown = reporter(quiet)
    try:
        result = work(shown)
        status = OK if result.ok else FAILED
    except VitrifyError as error:
        result = FailureResult(ok=False, findings=list(error.findings))
        status = error.exit_status
    except KeyboardInterrupt:
        result = FailureResult(ok=False, findings=[Finding(
            code="interrupted", headline=f"{name} was interrupted; nothing half-written is left behind")])
        status = INTERRUPTED
    except Exception as error:            # the border of the program: what nobody foresaw is our bug
        result = FailureResult(ok=False, findings=list(unexpected(error).findings))
        status = FAILED
    finally:
        shown.close()
    result.command = name
    show(result, json=json)
    return status


def unexpected(error: Exception) -> InternalError:
    """Turn an exception that nobody foresaw into our bug, with the traceback in a file to attach."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile("w", prefix="vitrify-", suffix=".txt", delete=False) as stream:
            stream.write(text)
        attach = f"please report it and attach {stream.name}"
    except OSError:
        attach = f"please report it with this text:\n{text}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return InternalError(Finding(
        code="internal.error", headline=f"a bug in Vitrify: {type(error).__name__}: {error}",
        where=f"{Path(last.filename).name}, line {last.lineno}", why="this should not happen, whatever the input",
        help=attach))


def show(result: Result, *, json: bool) -> None:
    """Print a result: one JSON object, or text for a person; quiet when nobody reads on."""
    try:
        if json:
            sys.stdout.write(as_json(result) + "\n")
        else:
            from vitrify.report.terminal import show_result

            show_result(result)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has left. Python flushes standard output once more at exit: give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_json(result: Result) -> str:
    """Return a result as one JSON object, what all commands share first and the findings last."""
    import msgspec

    plain = msgspec.to_builtins(result)
    head = {name: plain.pop(name) for name in ("schema_version", "command", "ok")}
    findings = plain.pop("findings")
    return msgspec.json.encode({**head, **plain, "findings": findings}).decode()


def wrong_call(command: str, message: str, usage: str, *, json: bool) -> int:
    """Tell that the call itself is wrong; returns the exit status."""
    finding = Finding(code="call.invalid", severity=Severity.ERROR, headline=message, help=usage)
    show(FailureResult(command=command, ok=False, findings=[finding]), json=json)
    return WRONG_CALL
