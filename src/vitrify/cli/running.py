"""Runs one command: turns what comes of it into output and an exit status.

Only this module prints, and only ``main`` exits. Standard output carries the answer, standard error the progress.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from vitrify.cli import streams
from vitrify.core.errors import InternalError, UsageError, VitrifyError
from vitrify.core.files import cannot_write, no_temporary_room, sweep_temporary
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.core.text import json_bytes
from vitrify.results import FailureResult, Result

OK, FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130


def run_command(name: str, work: Callable[[Reporter], Result], *, json: bool, quiet: bool) -> int:
    """Do ``work``, print its result and return the exit status.

    Returns:
        0 all is well, 1 the model, the data or the check is not good, 2 the call is wrong or a file cannot be read or
        written, 130 interrupted.
    """
    from vitrify.cli.showing import reporter
    from vitrify.core.isolation import start_early

    start_early()
    shown = reporter(quiet)
    try:
        sweep_temporary()
        result = work(shown)
        status = OK if result.ok else FAILED
    except VitrifyError as error:
        result = FailureResult(ok=False, findings=list(error.findings))
        status = error.exit_status
    except KeyboardInterrupt as error:
        left = next(filter(None, map(str, error.args)), "nothing half-written is left behind")
        result = FailureResult(ok=False, findings=[Finding(
            code="interrupted", headline=f"{name} was interrupted; {left}")])
        status = INTERRUPTED
    except (OSError, MemoryError) as error:
        failure = refused(error)
        result = FailureResult(ok=False, findings=list(failure.findings))
        status = failure.exit_status
    except Exception as error:            # the border of the program: what nobody foresaw is our bug
        result = FailureResult(ok=False, findings=list(unexpected(error).findings))
        status = FAILED
    finally:
        shown.close()
    result.command = name
    return status if show(result, json=json) else FAILED


def refused(error: OSError | MemoryError) -> VitrifyError:
    """Turn what the system refused into an error: a file, room, or memory."""
    if isinstance(error, MemoryError):
        return VitrifyError.of("process.memory", f"there is not enough memory: {error or 'no more is to be had'}",
                               help="use smaller shapes, or a machine with more memory")
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return no_temporary_room(reason) if error.filename is None else cannot_write(Path(error.filename), error)
    if error.filename is None:
        return unexpected(error)
    name = os.fsdecode(error.filename)
    return UsageError.of("file.read", f"cannot use {name}: {reason}", where=name)


def unexpected(error: Exception) -> InternalError:
    """Turn an exception that nobody foresaw into our bug, with the traceback in a file to attach."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile("w", prefix="vitrify-", suffix=".txt", delete=False, encoding="utf-8",
                                         errors="backslashreplace") as stream:
            stream.write(text)
        attach = f"please report it and attach {stream.name}"
    except OSError:
        attach = f"please report it with this text:\n{text}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return InternalError(Finding(
        code="internal.error", headline=f"a bug in Vitrify: {type(error).__name__}: {error}",
        where=f"{Path(last.filename).name}, line {last.lineno}", why="this should not happen, whatever the input",
        help=attach))


def show(result: Result, *, json: bool) -> bool:
    """Print a result: one JSON object, or text for a person; quiet when nobody reads on.

    Returns False, after a word on standard error, when it cannot be written.
    """
    try:
        if json:
            if isinstance(sys.stdout, TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")      # JSON has no other, whatever the locale
            sys.stdout.write(as_json(result) + "\n")
        else:
            from vitrify.report.terminal import show_result

            show_result(result)
        sys.stdout.flush()
    except OSError as error:
        return streams.give_up(error)
    return True


def as_json(result: Result) -> str:
    """Return a result as one JSON object, what all commands share first and the findings last."""
    import msgspec

    plain = msgspec.to_builtins(result)
    head = {name: plain.pop(name) for name in ("schema_version", "command", "ok")}
    findings = plain.pop("findings")
    return json_bytes({**head, **plain, "findings": findings}).decode()


def wrong_call(command: str, message: str, usage: str, *, json: bool) -> int:
    """Tell that the call itself is wrong; returns the exit status."""
    finding = Finding(code="call.invalid", severity=Severity.ERROR, headline=message, help=usage)
    shown = show(FailureResult(command=command, ok=False, findings=[finding]), json=json)
    return WRONG_CALL if shown else FAILED
