"""Calls in child processes: outside code may abort, hang or eat memory, and all that comes of it is a finding.

    run_isolated("package.module:function", path, seconds=60, what="loading model.tflite")

    with Worker("LiteRT on model.tflite") as worker:       # stays loaded between calls
        worker.call("package.module:run", path, inputs)
        print(worker.log)                                  # what the outside code printed meanwhile

    with shared_child():                                   # one child for all workers inside, one start to pay for
        ...

    start_early()                                          # in a process of our own: the first child is forked now

The function is named, not passed, since the child is a fresh interpreter that imports it. Errors of ours cross over as
they are. Findings: ``process.died``, ``process.timeout``, ``process.memory``, ``process.raised``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NoReturn

from vitrify.core import worker
from vitrify.core.channel import ERROR, FAILURE, MEMORY, PROGRESS, RESULT, Call, receive, send
from vitrify.core.errors import InternalError, VitrifyError
from vitrify.core.forking import Forked, can_fork

DEFAULT_MEMORY_BYTES = min(8 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4)
"""Enough for the largest compilers and models seen (Vela on transformers: 0.6 GB), little enough to save a laptop."""

_LOG_BYTES = 4 << 20      # what is kept of a child's output: its end
_TAIL_LINES = 6
_LOOK_SECONDS = 0.05      # how often a busy child's memory is looked at
_PIPE_BYTES = 1 << 20
_READS = 64
_BOOT = ("import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
         "from vitrify.core.worker import main; main(sys.argv[2:])")

Progress = Callable[..., None]


def run_isolated(function: str, *args: Any, seconds: float | None = None, memory_bytes: int = DEFAULT_MEMORY_BYTES,
                 what: str = "", on_progress: Progress | None = None) -> Any:
    """Call ``package.module:function`` in a child process of its own and return its result.

    Args:
        function: where the child finds the function; arguments and result must be picklable.
        seconds: the time limit, None for none.
        memory_bytes: the limit of the child's memory.
        what: names the work in messages, such as ``loading model.tflite``.
        on_progress: called here with whatever the function hands to the ``progress`` callable it then gets by keyword.

    Raises:
        VitrifyError: what the function raised, or a finding ``process.*``.
    """
    with Worker(what or function, memory_bytes=memory_bytes) as worker:
        return worker.call(function, *args, seconds=seconds, on_progress=on_progress)


class _Home:
    """Where a child lives: it starts with the first call, and again after it died. One call at a time."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self.lock = threading.Lock()
        self.child: _Child | None = None

    def end(self, log: bytearray) -> None:
        """End the child and whatever it started, after taking what it printed last."""
        child, self.child = self.child, None
        if child is not None:
            child.drain(log)
            child.end()


_ready: list[_Child] = []          # forked early, for the first call
_shared: ContextVar[_Home | None] = ContextVar("_shared", default=None)


@contextmanager
def shared_child() -> Iterator[None]:
    """Let the workers that are made in this block share one child, with the default limit of memory.

    A start costs 0.2 s of CPU, much of it for numpy. What a worker keeps in the child stays until the block ends; when
    one call kills the child, calls of the others begin in a new one.
    """
    home = _Home(DEFAULT_MEMORY_BYTES)
    token = _shared.set(home)
    try:
        yield
    finally:
        _shared.reset(token)
        home.end(bytearray())


def start_early() -> None:
    """Fork the child that the first call will find ready, while this process is young and small.

    It has numpy from here, so that it costs a few milliseconds instead of 0.15 s of CPU. Where a process cannot be
    forked nothing happens, and the first call starts a fresh interpreter.
    """
    import numpy  # noqa: F401   (for the child)

    if not _ready and can_fork():
        _ready.append(_Child(DEFAULT_MEMORY_BYTES, forked=True))


class Worker:
    """A child process that stays between calls; it starts with the first call and again after it died.

    One call at a time: threads wait for each other.
    """

    def __init__(self, what: str, *, memory_bytes: int = DEFAULT_MEMORY_BYTES, seconds: float | None = None) -> None:
        self.what = what
        self.memory_bytes = memory_bytes
        self.seconds = seconds
        shared = _shared.get()
        self._is_guest = shared is not None and shared.memory_bytes == memory_bytes
        self._home = shared if shared is not None and self._is_guest else _Home(memory_bytes)
        self._log = bytearray()

    @property
    def log(self) -> str:
        """What the child printed during the last call, to standard output and error together."""
        return self._log.decode("utf-8", "replace")

    @property
    def pid(self) -> int | None:
        """The process, None while there is none."""
        child = self._home.child
        return child.process.pid if child is not None else None

    def call(self, function: str, *args: Any, seconds: float | None = None, what: str = "",
             on_progress: Progress | None = None) -> Any:
        """Call ``package.module:function`` in the child and return its result (see ``run_isolated``).

        Raises:
            VitrifyError: what the function raised, or a finding ``process.*``.
        """
        what = what or self.what
        limit = seconds if seconds is not None else self.seconds
        home = self._home
        with home.lock:
            self._log.clear()
            if home.child is not None and home.child.process.poll() is not None:
                home.end(self._log)      # it was killed between two calls
            if home.child is None:
                home.child = _new_child(self.memory_bytes)
            call = Call(function, args, on_progress is not None)
            return self._exchange(home.child, call, what, limit, on_progress)

    def _exchange(self, child: _Child, call: Call, what: str, seconds: float | None,
                  on_progress: Progress | None) -> Any:
        deadline = None if seconds is None else time.monotonic() + seconds
        finished = False
        try:
            self._send(child, call, what)
            while True:
                kind, value = self._reply(child, what, seconds, deadline)
                if kind == PROGRESS:
                    assert on_progress is not None
                    on_progress(*value)
                    continue
                finished = kind != MEMORY
                return self._outcome(kind, value, what)
        finally:
            if finished:
                child.drain(self._log)
            else:
                self._home.end(self._log)      # also on Ctrl-C: nobody waits for this child any more

    def _send(self, child: _Child, call: Call, what: str) -> None:
        try:
            send(child.requests, call)
        except BrokenPipeError:
            self._died(child, what)

    def _reply(self, child: _Child, what: str, seconds: float | None, deadline: float | None) -> tuple[str, Any]:
        """Wait for a message, collecting output and watching the limits."""
        while True:
            rest = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic()))
            ready = {descriptor for descriptor, _ in child.poll.poll(rest * 1000)}
            if child.output in ready:
                child.drain(self._log)
            if child.replies in ready:
                try:
                    kind, value = receive(child.replies)
                    return kind, value
                except EOFError:
                    self._died(child, what)
            if deadline is not None and time.monotonic() >= deadline:
                raise VitrifyError.of("process.timeout", f"{what} took longer than {seconds:g} s and was stopped",
                                      why=self._tail())
            if child.memory() > self.memory_bytes:
                self._out_of_memory(what, self._tail())

    def _outcome(self, kind: str, value: Any, what: str) -> Any:
        if kind == RESULT:
            return value
        if kind == ERROR:
            raise value
        if kind == MEMORY:
            self._out_of_memory(what, value)
        assert kind == FAILURE, kind
        name, text, trace = value
        raise InternalError.of("process.raised", f"{what} raised {name}: {text}", why=trace.strip())

    def _died(self, child: _Child, what: str) -> NoReturn:
        status = child.process.wait()
        child.drain(self._log)
        if status == -signal.SIGABRT and b"bad_alloc" in self._log:
            self._out_of_memory(what, self._tail())
        hint = ""
        if status == -signal.SIGKILL:
            hint = "something outside killed it; most often the system does so when memory runs out"
        how = f"died of {signal.Signals(-status).name}" if status < 0 else f"ended with status {status} and no answer"
        raise VitrifyError.of("process.died", f"{what} {how}", why="\n".join(filter(None, (hint, self._tail()))))

    def _out_of_memory(self, what: str, why: str) -> NoReturn:
        limit = f"{self.memory_bytes / 2**30:.3g} GB"
        raise VitrifyError.of("process.memory", f"{what} needed more than {limit} of memory", why=why)

    def _tail(self) -> str:
        lines = [line for line in self.log.splitlines() if line.strip()]
        return "\n".join(("last output:", *lines[-_TAIL_LINES:])) if lines else "it printed nothing"

    def close(self) -> None:
        """End the child and whatever it started, unless it is shared. Calling again starts a new one."""
        if not self._is_guest:
            self._home.end(self._log)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def _new_child(memory_bytes: int) -> _Child:
    """The one that waits already, or another."""
    if memory_bytes == DEFAULT_MEMORY_BYTES:
        while _ready:
            child = _ready.pop()
            if child.process.poll() is None:
                return child
            child.end()
    return _Child(memory_bytes)


class _Child:
    """The process and the parent's ends of its pipes; ``lifeline`` carries nothing, its closing ends the child."""

    process: subprocess.Popen[bytes] | Forked

    def __init__(self, memory_bytes: int, *, forked: bool = False) -> None:
        child_requests, self.requests = os.pipe()
        self.replies, child_replies = os.pipe()
        self.output, child_output = os.pipe()
        child_lifeline, lifeline = os.pipe()
        ours = (self.requests, self.replies, self.output, lifeline)
        passed = (child_requests, child_replies, child_lifeline)
        start = _fork if forked else _spawn
        try:
            self.process = start([*map(str, passed), str(memory_bytes)], child_output, passed)
        except BaseException:
            _close_all(ours)
            raise
        finally:
            _close_all((*passed, child_output))
        self.end = weakref.finalize(self, _end, self.process, ours)
        os.set_blocking(self.output, False)
        _widen(self.requests, self.replies)
        self.poll = select.poll()
        self.poll.register(self.replies, select.POLLIN)
        self.poll.register(self.output, select.POLLIN)
        self._output_open = True
        self._statm = f"/proc/{self.process.pid}/statm" if sys.platform == "linux" else None

    def drain(self, log: bytearray) -> None:
        """Move what the child printed to the log, keeping the log's end when it grows too long."""
        for _ in range(_READS):      # bounded, since a child may print faster than we read
            if not self._output_open:
                break
            try:
                data = os.read(self.output, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                self._output_open = False
                self.poll.unregister(self.output)
            log += data
            if len(log) > _LOG_BYTES:
                del log[:len(log) - _LOG_BYTES // 2]

    def memory(self) -> int:
        """Bytes of the child's memory that are in use and its own; 0 where the child watches itself."""
        if self._statm is None:
            return 0
        try:
            with open(self._statm, "rb") as stream:
                _, resident, shared, *_ = map(int, stream.read().split())
        except (OSError, ValueError):
            return 0
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def _spawn(arguments: list[str], output: int, passed: tuple[int, ...]) -> subprocess.Popen[bytes]:
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    return subprocess.Popen([sys.executable, "-Pu", "-c", _BOOT, path, *arguments], stdin=subprocess.DEVNULL,
                            stdout=output, stderr=output, pass_fds=passed, start_new_session=True)


def _fork(arguments: list[str], output: int, passed: tuple[int, ...]) -> Forked:
    def serve() -> NoReturn:
        _ready.clear()
        sys.path[:] = map(os.path.abspath, sys.path)
        worker.main(arguments)

    return Forked(serve, output, passed)


def _end(process: subprocess.Popen[bytes] | Forked, descriptors: tuple[int, ...]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)     # the child leads a group of its own, with all that it started
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    _close_all(descriptors)


def _close_all(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _widen(*descriptors: int) -> None:
    if sys.platform == "linux":
        import fcntl

        for descriptor in descriptors:
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                return      # the user's quota of pipe memory is spent: slower, not wrong

