"""Compiles a model with Vela in a child process and says what came of it, in the user's names."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from vitrify.backends.vela import findings as said
from vitrify.backends.vela.annotating import annotate
from vitrify.backends.vela.compiled import npu_graphs
from vitrify.backends.vela.describing import Compiled, Left, describe
from vitrify.backends.vela.settings import CONFIG, MODEL, OUTPUT, Optimise, arguments, configuration, system_name
from vitrify.core.errors import InternalError, ModelError, TargetError, UsageError, VitrifyError
from vitrify.core.files import atomic_writer, temporary_folder
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES, Worker
from vitrify.ir import Graph, Model
from vitrify.targets.base import Target, load

DEFAULT_SECONDS = 600.0
"""Convolutional models compile in seconds, transformers in half a minute; beyond this it hangs."""

_RUN = "vitrify.backends.running:run_module"
_COMPILER = "ethosu.vela"
_COPY_BYTES = 1 << 20


def compile_model(path: Path | str, target: Target | str, output: Path | str, *, optimise: Optimise | None = None,
                  ignore: Sequence[str] = (), seconds: float = DEFAULT_SECONDS,
                  memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Compiled:
    """Compile the int8 model at ``path`` for ``target`` and write it to ``output``, whole or not at all.

    Args:
        path: a .tflite file; it is only read.
        target: the chip, or its name.
        output: where the compiled model goes.
        optimise: for speed, or for small on-chip memory; both give the same results. None: for speed, and for memory
            where the compiler dies over speed.
        ignore: builtin operators to leave on the CPU.
        seconds: the time limit of the compiler.
        memory_bytes: its memory limit.

    Raises:
        ModelError: the file is no TFLite model, is damaged, or is compiled already.
        TargetError: the compiler refuses the model or puts nothing on the NPU; says why.
        VitrifyError: the compiler died, hung or ran out of memory (``process.*``).
        UsageError: the file cannot be read, or ``output`` not written.
    """
    def keep(compiled: Path) -> None:
        _copy(compiled, Path(output))

    return _compile(Path(path), target, keep, optimise, tuple(ignore), seconds, memory_bytes, str(output))


def check_model(path: Path | str, target: Target | str, *, optimise: Optimise | None = None,
                seconds: float = DEFAULT_SECONDS, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Compiled:
    """Say what ``compile_model`` would give, and keep nothing.

    A model of which nothing runs on the NPU is no error here: the answer has a finding that says so.

    Raises:
        ModelError, TargetError, VitrifyError: as ``compile_model``.
    """
    return _compile(Path(path), target, None, optimise, (), seconds, memory_bytes, None)


def _compile(path: Path, target: Target | str, keep: Callable[[Path], None] | None, optimise: Optimise | None,
             ignore: tuple[str, ...], seconds: float, memory_bytes: int, output: str | None) -> Compiled:
    started = time.monotonic()
    chip = load(target) if isinstance(target, str) else target
    model = _read(path)
    with _working_folder(chip, path) as folder:
        left = _run_trying(path, model.main, chip, optimise, ignore, folder, seconds, memory_bytes)
        answer = describe(model, left, chip, ignore)
        if answer.placement.npu_partitions == 0:
            nothing = said.nothing_placed(path, chip, model.main)
            answer = msgspec.structs.replace(answer, findings=(nothing, *answer.findings))
            if keep is not None:
                raise TargetError(answer.findings)
        if keep is not None:
            annotate(left.model, model, left.database, answer.maker, chip.name)
            memory = msgspec.structs.replace(answer.memory, flash_bytes=left.model.stat().st_size)
            answer = msgspec.structs.replace(answer, memory=memory)
            keep(left.model)
    return msgspec.structs.replace(answer, output=output, seconds=time.monotonic() - started)


def _read(path: Path) -> Model:
    """Read the source model; a compiled one is told apart, also where it makes no graph."""
    from vitrify import tflite

    try:
        model = tflite.read(path)
    except ModelError as error:
        if any(finding.code == "tflite.order" for finding in error.findings):
            _refuse_compiled(path)
        raise
    _refuse_compiled(path)
    return model


def _refuse_compiled(path: Path) -> None:
    if graphs := npu_graphs(path):
        raise ModelError(said.already_compiled(path, len(graphs)))


@contextmanager
def _working_folder(target: Target, path: Path) -> Iterator[Path]:
    """Yield a new folder that holds the configuration and a link to the model, and remove it afterwards.

    Raises:
        UsageError: there is no room for it.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("vela"))
        try:
            (folder / MODEL).symlink_to(os.path.abspath(path))
            (folder / CONFIG).write_text(configuration(target), encoding="utf-8")
        except OSError as error:
            raise UsageError(said.no_room(error.strerror or str(error))) from error
        yield folder


def _run_trying(path: Path, graph: Graph, target: Target, optimise: Optimise | None, ignore: tuple[str, ...],
                folder: Path, seconds: float, memory_bytes: int) -> Left:
    """Run the compiler for speed, and once more for memory when it dies over that and nothing else was asked for."""
    options = arguments(target, optimise=optimise or "Performance", ignore=ignore)
    try:
        return _run(path, graph, target, options, folder, seconds, memory_bytes)
    except TargetError as error:
        if optimise is not None or all(finding.code != "process.died" for finding in error.findings):
            raise
        first = error.findings[0]
    result = _run(path, graph, target, arguments(target, optimise="Size", ignore=ignore), folder, seconds, memory_bytes)
    return result._replace(findings=(said.second_try(first),))


def _run(path: Path, graph: Graph, target: Target, options: list[str], folder: Path, seconds: float,
         memory_bytes: int) -> Left:
    """Run the compiler in ``folder`` and return what it left there."""
    with Worker(f"Vela on {path.name}", memory_bytes=memory_bytes) as worker:
        try:
            status, message = worker.call(_RUN, _COMPILER, str(folder), options, seconds=seconds)
        except InternalError:
            raise
        except VitrifyError as error:
            raise TargetError(said.died(error.findings, path)) from error
        log = worker.log
    stem = Path(MODEL).stem
    model = folder / OUTPUT / f"{stem}_vela.tflite"
    if status != 0 or not model.exists():
        raise TargetError(said.refused(path, target, graph, status, message, log))
    return Left(model, _text(folder / OUTPUT / f"{stem}_debug.xml"),
                   _text(folder / OUTPUT / f"{stem}_summary_{system_name(target)}.csv"), log, tuple(options))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _copy(source: Path, output: Path) -> None:
    with source.open("rb") as stream, atomic_writer(output) as out:
        while block := stream.read(_COPY_BYTES):
            out.write(block)
