"""What a call from Python gives, as the values that commands take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from vitrify.core.errors import UsageError
from vitrify.pipeline.options import ConvertOptions, DataOptions, Layout, QuantizeOptions

if TYPE_CHECKING:
    from vitrify.data.feeds import Feed
    from vitrify.data.preprocess import Preprocess
    from vitrify.pipeline.running.model import TaskOptions

Shapes = Mapping[str, Sequence[int]]
Dims = Mapping[str, int]
Values = Mapping[str, int | float | list[int | float]]


def conversion_of(shapes: Shapes | None, io_layout: Layout = "nhwc", values: Values | None = None,
                dims: Dims | None = None, trust: bool = False, task: str = "") -> ConvertOptions:
    """How a model is to be imported."""
    fixed = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    return ConvertOptions(shapes=fixed, dims=dict(dims or {}), values=dict(values or {}), trust=trust,
                          input_layout=io_layout, output_layout=io_layout, task=task)


def task_options(task: str, decoder: str, names: Sequence[str], score: float | None, overlap: float | None,
                 most: int | None, options: Mapping[str, Any] | None) -> TaskOptions:
    """What a call says of a model's task.

    Raises:
        UsageError: the names are one text.
    """
    from vitrify.pipeline.running.model import TaskOptions

    if isinstance(names, str):
        raise UsageError.of("task.names", "names is one text, not a list of the classes' names",
                            help="give names=['cat', 'dog']")
    return TaskOptions(task=task, decoder=decoder, names=tuple(names), score=score, overlap=overlap, most=most,
                       options=dict(options or {}))


def data_of(path: object, samples: int | Literal["auto"] | None, random: bool,
          preprocess: Preprocess | None) -> DataOptions:
    """Which samples are to be used, where they are files.

    Raises:
        UsageError: ``path`` is no path.
    """
    if not isinstance(path, str | Path | None):
        raise UsageError.of("call.data", f"data is of type {type(path).__name__}, not a path")
    given = DataOptions(path=None if path is None else path_of(path), samples=None if samples == "auto" else samples,
                        enough=samples == "auto", random=random)
    return given if preprocess is None else given.prepared_as(preprocess)


def require_data(given: DataOptions, purpose: str, without: str) -> None:
    """Refuse to go on without data, in Python's words; ``without`` is what goes on without.

    Raises:
        UsageError: as ``DataOptions.require``.
    """
    if given.given and not (given.random and given.path is not None):
        return given.require(purpose)
    try:
        given.require(purpose)
    except UsageError as error:
        help = f"give data=FOLDER or arrays; {without} goes without"
        if given.given:
            help = f"give either data or {without}"
        raise UsageError([msgspec.structs.replace(finding, help=help) for finding in error.findings]) from None


def quantization_of(recipe: str | Path | None, **given: Any) -> QuantizeOptions:
    """What is asked of the quantizer.

    Raises:
        UsageError: a value is none that there is.
    """
    try:
        options = msgspec.convert(given, QuantizeOptions)
    except msgspec.ValidationError as error:
        raise UsageError.of("call.value", f"an option of the quantizer is wrong: {error}",
                            help="the reference of vitrify.quantize lists what each takes") from error
    if options.jobs < 1:
        raise UsageError.of("search.jobs", f"jobs must be 1 or more, got {options.jobs}")
    return options if recipe is None else msgspec.structs.replace(options, recipe=path_of(recipe))


def feed_of(data: object, folder: Path, given: DataOptions) -> Feed:
    """The samples that Python code gives; ``folder`` takes those that are kept."""
    from vitrify.data.feeds import Feed

    folder.mkdir()
    return Feed(data, folder, given.how(), given.samples, given.enough)


def write_given(data: object, folder: Path, model: Path, options: ConvertOptions, samples: int | None,
                preprocess: Preprocess | None) -> Path:
    """Write what Python code gives for a comparison to files."""
    from vitrify.data.feeds import Feed
    from vitrify.pipeline.verifying.verify import interface_of

    kept, written = folder / "kept", folder / "given"        # a feed keeps a few of its own, and drops some again
    kept.mkdir()
    written.mkdir()
    for number, sample in enumerate(Feed(data, kept, preprocess, samples).bind(interface_of(model, options))):
        np.savez(written / f"{number:012d}.npz", **sample)        # type: ignore[arg-type]
    return written


def path_of(path: str | Path) -> Path:
    """The path, unless it is empty: that would mean the current folder.

    Raises:
        UsageError: it is.
    """
    if not isinstance(path, Path) and not path:
        raise UsageError.of("call.path", "an empty word names no file")
    return Path(path)


def output_of(path: str | Path) -> Path:
    """The path of a file to write.

    Raises:
        UsageError: it is empty, or says that it is a folder.
    """
    if not isinstance(path, Path) and path.endswith("/"):
        raise UsageError.of("file.folder", f"{path} names a folder, not a file to write", where=path,
                            help="name a file in it")
    return path_of(path)
