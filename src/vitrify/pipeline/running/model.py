"""A model that is opened for its task: what comes in is a picture or an array, what comes out is what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vitrify.core.errors import ModelError, UsageError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.progress import Reporter, Silent
from vitrify.data.preprocess import Preprocess
from vitrify.pipeline.describing import shapes_of, unknown_form
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.remembered import remembered_in
from vitrify.pipeline.steps import is_tflite
from vitrify.tasks.registry import chosen, require_kind
from vitrify.tasks.spec import TaskSpec

if TYPE_CHECKING:
    import numpy as np

    from vitrify.ir import Interface
    from vitrify.runtimes.base import Runtime
    from vitrify.tasks.found import Found
    from vitrify.tasks.frames import Frame

    Array = np.ndarray[Any, np.dtype[Any]]


SMALL = 96
"""Pictures of models up to this size are small already: digits, CIFAR's."""


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the call says of the task; what it leaves open the model tells."""

    task: str = ""
    decoder: str = ""
    names: tuple[str, ...] = ()
    score: float | None = None
    overlap: float | None = None
    most: int | None = None
    options: dict[str, Any] = {}


@dataclass
class TaskModel:
    """An open model with what its outputs mean, and how files become its input."""

    name: str
    path: Path
    runtime: Runtime
    spec: TaskSpec
    how: Preprocess

    def find(self, inputs: Mapping[str, Array], frame: Frame | None = None) -> Found:
        """Run once and decode; with a frame, places are in the picture.

        Raises:
            VitrifyError: the runtime refuses, or the outputs do not have the decoder's form.
        """
        return decoded(self.runtime.run(inputs), self.spec, size_of(self.runtime.interface), frame, self.name)


def decoded(answer: Mapping[str, Array], spec: TaskSpec, size: tuple[int, int], frame: Frame | None,
            name: str) -> Found:
    """What is found in one answer.

    Raises:
        ModelError: the outputs do not have the decoder's form.
    """
    one = chosen(spec.decoder)
    try:
        found = one.decode(answer, spec, size)
    except (ValueError, IndexError, KeyError, StopIteration, TypeError) as error:
        shapes = ", ".join(f"'{n}' {list(v.shape)}" for n, v in answer.items())
        raise ModelError.of("task.outputs", f"the outputs of {name} are not what decoder '{one.name}' takes: {shapes}",
                            why=f"it takes {one.text} ({error})", where=name,
                            help="name another with --decoder, or leave --decoder and --task out") from error
    return found if frame is None else frame.result(found)


def size_of(interface: Interface) -> tuple[int, int]:
    """Height and width of the picture that a model takes, (0, 0) where it takes none."""
    from vitrify.tasks.recognising import signs_of

    return signs_of(interface, {}).size


def metadata_of(path: Path) -> Mapping[str, str]:
    """What an exporter wrote into a file."""
    if is_tflite(path):
        from vitrify.tasks.exporters import written_in

        return written_in(path)
    from vitrify.importers.onnx.reading.reader import metadata

    return metadata(path)


def spec_of(path: Path, interface: Interface, wanted: TaskOptions, name: str) -> TaskSpec:
    """What a model's outputs mean: what the call says, else what the file says, else what its shapes tell.

    Raises:
        UsageError: nothing tells it.
    """
    from vitrify.tasks.recognising import recognise, signs_of, specified

    if wanted.task:
        require_kind(wanted.task)
    words = metadata_of(path)
    stored = _stored(path)
    if wanted.decoder:
        one = chosen(wanted.decoder)
        options = one.fits(signs_of(interface, words)) or {}
        spec: TaskSpec | None = specified(one, options, words)
    elif stored is not None and wanted.task in ("", stored.kind):
        spec = stored
    else:
        spec = recognise(interface, words, wanted.task)
    if spec is None:
        raise _unknown(interface, wanted, name)
    told = {key: value for key, value in (("score", wanted.score), ("overlap", wanted.overlap), ("most", wanted.most))
            if value is not None}
    names = wanted.names or spec.names
    return msgspec.structs.replace(spec, names=names, options={**spec.options, **wanted.options}, **told)


def _stored(path: Path) -> TaskSpec | None:
    if not is_tflite(path):
        return None
    from vitrify import tflite
    from vitrify.tasks.spec import remembered

    return remembered(tflite.read(path))


def _unknown(interface: Interface, wanted: TaskOptions, name: str) -> VitrifyError:
    from vitrify.tasks.registry import KINDS

    if wanted.task:
        return unknown_form(interface, wanted.task, name, "name one")
    return UsageError.of("task.unrecognised", f"nothing tells what the outputs of {name} mean: {shapes_of(interface)}",
                         where=name, help=f"say so with --task: {', '.join(KINDS)}")


@contextmanager
def opened(path: Path, wanted: TaskOptions, conversion: ConvertOptions, reporter: Reporter | None = None, *,
           kernels: str = "xnnpack", told: Preprocess | None = None, name: str = "",
           keep_state: bool = False) -> Iterator[TaskModel]:
    """Open a model of any format for its task.

    Args:
        told: how files become inputs, where the call says it; else the model's own word, else the task's custom.
        keep_state: a state that is inside the model goes on from one run to the next.
    Raises:
        VitrifyError: it cannot be run, or nothing tells what its outputs mean.
    """
    called = name or path.name
    with ExitStack() as stack:
        file = stack.enter_context(_runnable(existing(path), conversion, reporter or Silent()))
        runtime = stack.enter_context(_open(file, conversion, kernels, keep_state))
        spec = spec_of(file, ends_of(runtime, file), wanted, called)
        how = how_of(file, spec, told, size_of(runtime.interface))
        yield TaskModel(called, path, runtime, spec, how)


def ends_of(runtime: Runtime, path: Path) -> Interface:
    """What a model takes and gives, with the shapes of a run where an ONNX file leaves them open."""
    interface = runtime.interface
    if is_tflite(path):
        return interface
    from vitrify.runtimes.base import zeros

    found = runtime.run(zeros(interface))
    outputs = tuple(msgspec.structs.replace(b, shape=tuple(found[b.name].shape)) for b in interface.outputs)
    return msgspec.structs.replace(interface, outputs=outputs)


def _open(path: Path, conversion: ConvertOptions, kernels: str, keep_state: bool) -> Runtime:
    from vitrify import runtimes

    values = None if is_tflite(path) else conversion.values
    runtime = runtimes.open(path, shapes=conversion.sizes, values=values, kernels=kernels)
    if keep_state and hasattr(runtime, "keep_state"):
        runtime.keep_state = True
    return runtime


@contextmanager
def _runnable(path: Path, conversion: ConvertOptions, reporter: Reporter) -> Iterator[Path]:
    """The file itself; of an ONNX file with open dimensions or a framework's model, what is made of it."""
    with exchanged(path, conversion, reporter) as (file, _), temporary_folder():
        yield file


def how_of(path: Path, spec: TaskSpec, told: Preprocess | None, size: tuple[int, int]) -> Preprocess:
    """How files become the model's input; what is as small as digits is not cropped."""
    if told is not None:
        return told
    stored = remembered_in(path) if is_tflite(path) else None
    usual = dict(chosen(spec.decoder).prepare)
    if usual.get("fit") == "crop" and min(size) <= SMALL:
        del usual["fit"]
    return stored or msgspec.convert(usual, Preprocess, strict=False)
