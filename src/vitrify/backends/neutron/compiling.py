"""Converts a model for a Neutron NPU in a child process and says what came of it, in the user's names."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from vitrify import tflite
from vitrify.backends.base import Compiled, CompilerOptions
from vitrify.backends.neutron import findings as said
from vitrify.backends.neutron.describing import describe
from vitrify.backends.neutron.installed import Sdk, find_sdks, targets_of
from vitrify.backends.neutron.log import Log, read_log
from vitrify.backends.neutron.result import neutron_graphs
from vitrify.core.errors import InternalError, ModelError, TargetError, UsageError, VitrifyError
from vitrify.core.files import atomic_writer, no_temporary_room, temporary_folder
from vitrify.core.findings import Finding
from vitrify.core.isolation import Worker
from vitrify.ir import Model, Tensor
from vitrify.targets.base import Target

DEFAULT_SECONDS = 3600.0
"""The exact schedule of a large model may take very long; beyond this it hangs."""
RESERVED = ("input", "output", "target", "version", "help", "show-targets")

_CHILD = "vitrify.backends.neutron.child"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_INPUT, _OUTPUT = "model.tflite", "converted.tflite"      # the user's own path never reaches the converter
_COPY_BYTES = 1 << 20


class Made(NamedTuple):
    """What the converter left: the file, read, and what it printed."""

    path: Path
    model: Model
    log: Log
    text: str
    options: tuple[str, ...]


def convert_model(path: Path, target: Target, output: Path | None, options: CompilerOptions) -> Compiled:
    """Convert the int8 model at ``path``; write ``output`` whole or not at all, None keeps nothing.

    Raises:
        ModelError: the file is no TFLite model, is damaged, or is compiled already.
        TargetError: the SDK is missing or does not know the chip; the converter refuses the model, dies, hangs, lies
            about a file, or (with ``output``) puts nothing on the NPU.
        UsageError: an option is none, the file cannot be read, or there is no room.
    """
    started = time.monotonic()
    source = tflite.read(path)
    if graphs := neutron_graphs(source):
        raise ModelError(said.already_compiled(path, len(graphs)))
    sdk = chosen_sdk(path, target, options)
    with working_folder(path) as folder:
        made = run_converter(path, target, sdk, folder, options)
        _refuse_other(path, source, made.model)
        answer = describe(path, source, made, sdk, target)
        if answer.placement.npu_partitions == 0:
            nothing = said.nothing_placed(path, target, len(source.main))
            answer = msgspec.structs.replace(answer, findings=(nothing, *answer.findings))
            if output is not None:
                raise TargetError(answer.findings)
        if output is not None:
            _copy(made.path, output)
    return msgspec.structs.replace(answer, output=None if output is None else str(output),
                                   seconds=time.monotonic() - started)


def chosen_sdk(path: Path, target: Target, options: CompilerOptions) -> Sdk:
    """Return the SDK to use.

    Raises:
        TargetError: there is none, or it does not know the chip.
    """
    found = find_sdks(options.where)
    if not found:
        raise TargetError(said.not_installed(path, target, options.where))
    listed = targets_of(found[0])
    if listed and target.accelerator not in listed:
        raise TargetError(said.unknown_target(path, target, listed, found[0].version))
    return found[0]


@contextmanager
def working_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder that holds a link to the model, and remove it afterwards.

    Raises:
        UsageError: there is no room for it.
    """
    with temporary_folder("neutron") as folder:
        try:
            (folder / _INPUT).symlink_to(os.path.abspath(path))
        except OSError as error:
            raise no_temporary_room(error.strerror or str(error)) from error
        yield folder


def run_converter(path: Path, target: Target, sdk: Sdk, folder: Path, options: CompilerOptions) -> Made:
    """Run the converter in ``folder`` and read what it left there."""
    words = _words(options.options) if sdk.converter else tuple(f"{k}={v}" for k, v in options.options.items())
    output = folder / _OUTPUT
    with Worker(f"neutron-converter on {path.name}", memory_bytes=options.memory_bytes) as worker:
        seconds = options.seconds or DEFAULT_SECONDS
        try:
            status: int | str = 0
            if sdk.converter:
                command = [sdk.converter, "--input", _INPUT, "--output", _OUTPUT, "--target", target.accelerator]
                status = worker.call(f"{_CHILD}:run_program", [*command, *words], str(folder), sdk.libraries,
                                     seconds=seconds)
            else:
                worker.call(f"{_CHILD}:convert", sdk.module, str(folder / _INPUT), str(output), target.accelerator,
                            dict(options.options), seconds=seconds)
        except VitrifyError as error:
            raise TargetError([_of_converter(finding, path) for finding in error.findings]) from error
        text = worker.log
    if status != 0:
        raise TargetError(said.ended(path, status, text))
    log = read_log(text)
    if log.target and log.target != target.accelerator:
        raise TargetError(said.wrong_target(path, target.accelerator, log.target))
    return Made(output, _read_output(path, output, text), log, text, words)


def _of_converter(finding: Finding, path: Path) -> Finding:
    """A death, a hang or an exception of the converter; the file is named, and its traceback is not shown."""
    if finding.code != "process.raised":
        return msgspec.structs.replace(finding, where=str(path))
    return msgspec.structs.replace(finding, code="neutron.failed", where=str(path), why="")


def _read_output(path: Path, output: Path, text: str) -> Model:
    if not output.is_file() or output.stat().st_size == 0:
        raise TargetError(said.full_disk(text) if _is_full(output.parent) else said.no_output(path, text))
    try:
        return tflite.read(output)
    except InternalError:
        raise
    except VitrifyError as error:
        if _is_full(output.parent):
            raise TargetError(said.full_disk(text)) from error
        reason = error.findings[0].headline.replace(str(output), output.name)
        raise TargetError(said.bad_output(path, reason)) from error


def _is_full(folder: Path) -> bool:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize < _COPY_BYTES


def _words(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options as words of a command line.

    Raises:
        UsageError: one is none, or is set by Vitrify.
    """
    words: list[str] = []
    for name, value in options.items():
        plain = name.lstrip("-")
        if not _NAME.fullmatch(plain) or plain in RESERVED:
            why = "Vitrify sets it" if plain in RESERVED else "a name is letters, digits and dashes"
            raise UsageError.of("compile.option", f"'{name}' is no option to pass on", why=why,
                                help="write it like --neutron-option optimization-level=OOpt")
        words += [f"--{plain}", value] if value else [f"--{plain}"]
    return tuple(words)


def _refuse_other(path: Path, source: Model, made: Model) -> None:
    """Refuse a result that does not take and give what the model does."""
    for side, given, found in (("inputs", source.main.inputs, made.main.inputs),
                               ("outputs", source.main.outputs, made.main.outputs)):
        left, right = [_face(one) for one in given], [_face(one) for one in found]
        if left != right:
            raise TargetError(said.other_model(path, side, left, right))


def _face(tensor: Tensor) -> str:
    return f"{tensor.dtype.label}[{','.join(map(str, tensor.shape))}]"


def _copy(source: Path, output: Path) -> None:
    with source.open("rb") as stream, atomic_writer(output) as out:
        while block := stream.read(_COPY_BYTES):
            out.write(block)
