"""The child's side of ``core.isolation``: waits for calls on a pipe, makes them, sends back what came of them.

Started by ``core.isolation`` in a fresh interpreter. It imports nothing heavy by itself, so that a call costs what the
called function needs and little more. Standard output and error belong to the outside code that runs here; messages
have descriptors of their own.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from vitrify.core.channel import ERROR, FAILURE, MEMORY, PROGRESS, RESULT, Call, receive, send
from vitrify.core.errors import VitrifyError


def main(argv: Sequence[str]) -> NoReturn:
    """Serve calls until the parent closes the pipe. Leaves without clean-up: C++ destructors may crash at exit."""
    requests, replies, lifeline, memory_bytes = map(int, argv)
    for descriptor in (requests, replies, lifeline):
        os.set_inheritable(descriptor, False)
    _end_with_parent(lifeline)
    _limit(memory_bytes)
    while True:
        try:
            call: Call = receive(requests)
        except EOFError:
            os._exit(0)
        reply = _make(call, replies)
        sys.stdout.flush()
        sys.stderr.flush()
        _send_reply(replies, call, reply)


def _make(call: Call, replies: int) -> tuple[str, Any]:
    """Run one call; every ending but the death of the process becomes a message."""
    try:
        function = _find(call.function)
        extra = {"progress": lambda *values: send(replies, (PROGRESS, values))} if call.wants_progress else {}
        return RESULT, function(*call.args, **extra)
    except VitrifyError as error:
        return ERROR, error
    except MemoryError as error:
        return MEMORY, str(error)
    except BaseException as error:     # the border of the process: what is not sent on would be lost
        return FAILURE, (type(error).__name__, str(error), traceback.format_exc())


def _send_reply(replies: int, call: Call, reply: tuple[str, Any]) -> None:
    try:
        send(replies, reply)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        text = f"{call.function} gave back something that cannot cross between processes: {error}"
        send(replies, (FAILURE, (type(error).__name__, text, traceback.format_exc())))


def _find(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _limit(memory_bytes: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # Counts private writable memory only, so that mapped model files and reserved address space are free.
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    else:
        threading.Thread(target=_watch_memory, args=(memory_bytes,), daemon=True).start()


def _end_with_parent(lifeline: int) -> None:
    """See to it that this process and all it started are killed when the parent's end of ``lifeline`` is closed.

    On Linux the kernel does it, even in the middle of a C++ call that lets no Python thread run: nothing is ever
    written to that pipe, so its only event is the end. Elsewhere a thread waits for it.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_wait_for_end, args=(lifeline,), daemon=True).start()


def _wait_for_end(lifeline: int) -> None:
    select.select([lifeline], [], [])
    os.killpg(0, signal.SIGKILL)


def _watch_memory(limit: int) -> None:
    """Stop the process above ``limit`` where the parent cannot look at its memory and the system sets no bound."""
    import resource

    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= limit:
        time.sleep(0.1)
    os.write(2, b"std::bad_alloc: memory limit reached\n")
    os.abort()
