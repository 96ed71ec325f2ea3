"""The child's side of per-operator times: LiteRT's C interface, which its Python interface leaves out.

The shared library of the wheel exports a profiler that belongs to a compiled model. Plain runs and profiled ones take
turns here, so that both see the same machine. Only ``core.isolation`` calls what is here: a library with another layout
of its structures kills the child, not the program.

Source: LiteRT, litert/c/litert_compiled_model.h, litert_profiler.h, litert_profiler_event.h, litert_opaque_options.h.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ai_edge_litert
import numpy as np

from vitrify.core.errors import ModelError, VitrifyError
from vitrify.runtimes.litert.spec import Event, Recorded

Array = np.ndarray[Any, np.dtype[Any]]

_Handle = ctypes.c_void_p
_CPU = 1
_WRITE = 1
_TYPE_WORDS = 64
"""Room for a LiteRtRankedTensorType, which holds a type, a rank and two lists of eight extents."""

_ENOUGH = (1.0, 10.0)
"""Seconds that are measured at least and at most where nobody says how often."""

_ALIKE = 1.05

OPERATOR, DELEGATED, PLAIN = 2, 8, 1
"""Kinds of events: a kernel of the interpreter, one inside a delegate, and anything else that was timed."""


class _Event(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_char_p), ("type", ctypes.c_int), ("start_us", ctypes.c_uint64),
                ("elapsed_us", ctypes.c_uint64), ("memory", ctypes.c_int64 * 6), ("number", ctypes.c_uint64),
                ("subgraph", ctypes.c_uint64), ("source", ctypes.c_int)]


class _Compiled:
    """A compiled model with its profiler and its buffers; everything ends with the process."""

    def __init__(self, path: str, kernels: str, threads: int) -> None:
        self.path = path
        place = Path(ai_edge_litert.__file__).parent / "libLiteRt.so"
        try:
            self.library = ctypes.CDLL(str(place))
            self._system = ctypes.CDLL(None)
        except OSError as error:
            raise _unavailable(str(error)) from error
        self._system.strdup.restype = ctypes.c_void_p
        self._system.strdup.argtypes = [ctypes.c_char_p]
        self.environment = self._made("LiteRtCreateEnvironment", 0, None)
        model = self._made("LiteRtCreateModelFromFile", self.environment, path.encode())
        options = self._made("LiteRtCreateOptions")
        self.do("LiteRtSetOptionsHardwareAccelerators", options, _CPU)
        self._option(options, "runtime_options_string", "enable_profiling = true\n")
        self._option(options, "xnnpack", f'kernel_mode = "{kernels}"\nnum_threads = {threads}\n')
        self.model = self._made("LiteRtCreateCompiledModel", self.environment, model, options)
        self.profiler = _Handle()
        self.do("LiteRtCompiledModelGetProfiler", self.model, ctypes.byref(self.profiler))
        self.signature = _Handle()
        self.do("LiteRtGetModelSignature", model, ctypes.c_size_t(0), ctypes.byref(self.signature))
        self.names, self.inputs = self._buffers("Input")
        _, self.outputs = self._buffers("Output")

    def do(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status.

        Raises:
            VitrifyError: there is none of that name.
            ModelError: it refuses.
        """
        try:
            function = getattr(self.library, name)
        except AttributeError as error:
            raise _unavailable(f"it has no {name}") from error
        status = function(*arguments)
        if status != 0:
            raise ModelError.of("litert.profile", f"LiteRT cannot prepare the model for profiling: {name} gives status "
                                f"{status}", where=self.path)

    def _made(self, name: str, *arguments: Any) -> _Handle:
        handle = _Handle()
        self.do(name, *arguments, ctypes.byref(handle))
        return handle

    def _option(self, options: _Handle, name: str, text: str) -> None:
        freeing = ctypes.cast(self._system.free, _Handle)
        text_ = _Handle(self._system.strdup(text.encode()))
        option = _Handle()
        self.do("LiteRtCreateOpaqueOptions", name.encode(), text_, freeing, ctypes.byref(option))
        self.do("LiteRtAddOpaqueOptions", options, option)

    def _buffers(self, kind: str) -> tuple[list[str], Any]:
        count = ctypes.c_size_t()
        self.do(f"LiteRtGetNumSignature{kind}s", self.signature, ctypes.byref(count))
        names, found = [], (_Handle * count.value)()
        for index in range(count.value):
            tensor, needs, name = _Handle(), _Handle(), ctypes.c_char_p()
            at = ctypes.c_size_t(index)
            self.do(f"LiteRtGetSignature{kind}TensorByIndex", self.signature, at, ctypes.byref(tensor))
            self.do("LiteRtGetTensorName", tensor, ctypes.byref(name))
            kind_of = (ctypes.c_int32 * _TYPE_WORDS)()
            self.do("LiteRtGetRankedTensorType", tensor, kind_of)
            self.do(f"LiteRtGetCompiledModel{kind}BufferRequirements", self.model, ctypes.c_size_t(0), at,
                    ctypes.byref(needs))
            buffer = _Handle()
            self.do("LiteRtCreateManagedTensorBufferFromRequirements", self.environment, kind_of, needs,
                    ctypes.byref(buffer))
            names.append((name.value or b"").decode(errors="replace"))
            found[index] = buffer.value
        return names, found

    def fill(self, values: dict[str, Array]) -> None:
        """Write the inputs, by the names of the file's tensors."""
        for index, name in enumerate(self.names):
            array = np.ascontiguousarray(values[name] if name in values else list(values.values())[index])
            place, buffer = _Handle(), _Handle(self.inputs[index])
            self.do("LiteRtLockTensorBuffer", buffer, ctypes.byref(place), _WRITE)
            ctypes.memmove(place, array.ctypes.data, array.nbytes)
            self.do("LiteRtUnlockTensorBuffer", buffer)

    def run(self) -> float:
        """Run once and return the seconds."""
        start = time.perf_counter()
        status = self.library.LiteRtRunCompiledModel(
            self.model, ctypes.c_size_t(0), ctypes.c_size_t(len(self.inputs)), self.inputs,
            ctypes.c_size_t(len(self.outputs)), self.outputs)
        seconds = time.perf_counter() - start
        if status != 0:
            raise ModelError.of("litert.invoke", f"LiteRT cannot run the model: status {status}", where=self.path)
        return seconds

    def profiled(self) -> tuple[float, list[_Event]]:
        """Run once with the profiler and return the seconds and the events."""
        self.do("LiteRtStartProfiler", self.profiler)
        seconds = self.run()
        self.do("LiteRtStopProfiler", self.profiler)
        count = ctypes.c_int()
        self.do("LiteRtGetNumProfilerEvents", self.profiler, ctypes.byref(count))
        if not count.value:
            return seconds, []
        events = (_Event * count.value)()
        self.do("LiteRtGetProfilerEvents", self.profiler, count.value, events)
        return seconds, list(events)


def record(path: str, kernels: str, threads: int, values: dict[str, Array], runs: int, warmup: int,
           most_seconds: float, steady: bool = False, progress: Any = None) -> Recorded:
    """Run a model ``runs`` times plainly and as often with the profiler, by turns.

    Ends early, after five of each at least, when it has taken ``most_seconds``. ``steady``: goes on until the quietest
    quarter of the runs agrees, for a second at least and some seconds at most.
    """
    compiled = _Compiled(path, kernels, threads)
    compiled.do("LiteRtStopProfiler", compiled.profiler)
    compiled.fill(values)
    for _ in range(max(warmup, 1)):
        compiled.run()
    plain: list[float] = []
    timed: list[float] = []
    whole: list[float] = []
    table: list[list[int]] = []
    events: list[Event] = []
    begun = time.perf_counter()
    for number in itertools.count():
        if number % 2 == 0:                   # whichever comes first of a pair may be the slower one
            plain.append(compiled.run())
        seconds, found = compiled.profiled()
        if number % 2:
            plain.append(compiled.run())
        seen = [Event(e.type, (e.tag or b"").decode(errors="replace"), e.number, e.subgraph) for e in found
                if e.type in (OPERATOR, DELEGATED, PLAIN)]
        if not events:
            events = seen
        if seen == events:                    # a loop may take another number of turns; such a run has other events
            timed.append(seconds)
            whole.append(plain[-1])
            table.append([e.elapsed_us for e in found if e.type in (OPERATOR, DELEGATED, PLAIN)])
        if progress is not None:
            progress(min(number + 1, runs), runs)
        spent = time.perf_counter() - begun
        if number >= 4 and spent > most_seconds:
            break
        if number + 1 >= runs and (not steady or spent > _ENOUGH[1] or (
                spent > _ENOUGH[0] and _agree(plain) and _agree(timed))):
            break
    return Recorded(events, np.array(table, np.int64).reshape(len(table), len(events)), whole or plain, timed,
                    ai_edge_litert.__version__)


def _agree(seconds: Sequence[float]) -> bool:
    """True when a quarter of the runs took about as long as the quickest ones."""
    low, quarter = np.percentile(seconds, (2, 25))
    return bool(quarter < low * _ALIKE)


def addresses(path: str, threads: int) -> list[tuple[str, int, int]]:
    """Return where LiteRT's own kernels keep each tensor that has a place: its name, address and bytes."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_path=path, num_threads=threads,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    found = []
    for details in interpreter.get_tensor_details():
        try:
            view = interpreter.tensor(details["index"])()
        except (ValueError, RuntimeError):
            continue
        if isinstance(view, np.ndarray) and view.nbytes:
            found.append((str(details["name"]), int(view.__array_interface__["data"][0]), int(view.nbytes)))
    return found


def _unavailable(why: str) -> VitrifyError:
    return VitrifyError.of("profile.no-profiler", "this LiteRT gives no time of single operators", why=why,
                           help="the whole model is timed; ai-edge-litert 2.3 has the profiler")
