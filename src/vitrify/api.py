"""The same commands in Python: models in memory go in and come out, files where a file is named.

    import vitrify as vt
    model = vt.load("yolov8n.onnx", shapes={"images": (1, 3, 640, 640)})
    int8 = vt.quantize(model, data="photos/")
    print(vt.check(int8, target="imx93"))
    vt.run(int8, {"images": array})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from msgspec import structs

from vitrify.core.errors import UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.progress import Silent
from vitrify.ir import Model
from vitrify.pipeline.options import BuildOptions, ConvertOptions, DataOptions, Layout, QuantizeOptions
from vitrify.results import (
    BuildResult,
    CheckResult,
    CompileResult,
    ConvertResult,
    InspectResult,
    Result,
    VerifyResult,
)

if TYPE_CHECKING:
    from vitrify.data.feeds import Feed
    from vitrify.data.preprocess import Preprocess
    from vitrify.ir import Interface
    from vitrify.quant import Recipe

R = TypeVar("R", bound=Result)
Array = np.ndarray[Any, np.dtype[Any]]
Source = Model | str | Path
Shapes = Mapping[str, Sequence[int]]
Dims = Mapping[str, int]
Values = Mapping[str, int | float | list[int | float]]


def load(source: str | Path | object, example_inputs: Sequence[Any] | Mapping[str, Any] | None = None, *,
         shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None, trust: bool = False,
         io_layout: Layout = "nhwc") -> Model:
    """Load a model of any format, cleaned up, with channels last inside.

    Args:
        source: a file (ONNX, TFLite, PyTorch's .pt2 or .pt, Keras) or a SavedModel folder, never written to; or a
            PyTorch module, exported program or script module in memory.
        example_inputs: tensors that a module in memory is exported with, by position or by name.
        shapes: fixed shapes of inputs by name; "" stands for the only input.
        dims: extents of named dimensions, such as ``{"batch": 1}``, wherever an input uses them.
        values: constants to put in the place of inputs, such as a sample rate.
        trust: load a file that runs code of its own, such as a pickled PyTorch module.
        io_layout: the layout of the model's own inputs and outputs, as a file of it will have them.
    Raises:
        VitrifyError: the file is no model, or something in it is not supported.
    """
    from vitrify.pipeline.convert import float_model, module_model
    from vitrify.pipeline.files import existing

    options = _conversion(shapes, io_layout, values, dims, trust)
    if not isinstance(source, str | Path):
        return module_model(source, example_inputs, options)
    if example_inputs is not None:
        raise UsageError.of("call.example-inputs", "example inputs belong to a module in memory, a file was given",
                            help="leave them out; shapes={...} fixes the shapes of a file's inputs")
    model, _ = float_model(existing(_path(source)), options, Silent())
    return model


def quantize(model: Source, *, data: object = None, samples: int | Literal["auto"] | None = None,
             random_calibration: bool = False, preprocess: Preprocess | None = None,
             recipe: Recipe | str | Path | None = None, shapes: Shapes | None = None, dims: Dims | None = None,
             values: Values | None = None, trust: bool = False, target_quality: str = "", jobs: int = 1) -> Model:
    """Return the full-integer int8 form of a float model; the model itself is not changed.

    Args:
        model: a float model or its file.
        data: a folder of pictures, recordings or arrays, one such file or a list of them; or an array, a dict of arrays
            by input name, or an iterable of those, such as a generator, which is walked once and never gathered.
        samples: use at most so many samples; "auto" stops when the ranges no longer move.
        random_calibration: calibrate on random values instead; the answers then mean nothing.
        preprocess: how a file, or an array of 8-bit pixels, becomes an input; the model remembers it.
        recipe: what is quantized how; a path is that of a recipe's TOML file.
        shapes, dims, values, trust: as for ``load``, when ``model`` is a file.
        target_quality: such as "sqnr>=35": as few operators as reach it compute with 16-bit activations.
        jobs: how many candidates of that search are tried at once.
    Raises:
        VitrifyError: an operator has no int8 form, or the data does not fit.
    """
    from vitrify import quant, tflite
    from vitrify.passes import to_integer_forms
    from vitrify.pipeline.search import How, quantize_well, read_goal
    from vitrify.pipeline.steps import calibrate_model
    from vitrify.quant.copying import copy_model

    if isinstance(recipe, str | Path):
        recipe = quant.load_recipe(recipe)
    goal = read_goal(target_quality)
    feed = None if data is None or isinstance(data, str | Path) else data
    given = _data(data if feed is None else None, samples, random_calibration, preprocess)
    if feed is None or random_calibration:
        given.require("calibration")
    source = model if isinstance(model, Model) else load(model, shapes=shapes, dims=dims, values=values, trust=trust)
    chosen = recipe or quant.Recipe()
    to_integer_forms(source := copy_model(source), steps=chosen.in_steps)
    with temporary_folder() as folder:
        path = folder / "float.tflite"
        given = given if feed is None else structs.replace(given, feed=_feed(feed, folder / "kept", given))
        tflite.write(source, path)
        statistics, _ = calibrate_model(path, source, given, chosen, None, _silent)
        how = How(goal=goal, jobs=jobs)
        return quantize_well(source, path, statistics, chosen, given, how)[0].model


def run(model: Source, inputs: Mapping[str, Array | str | Path], *, shapes: Shapes | None = None,
        dims: Dims | None = None, values: Values | None = None, trust: bool = False) -> dict[str, Array]:
    """Run a model once: takes and returns what the source model takes and returns, whatever became of it inside.

    ``shapes``, ``dims``, ``values`` and ``trust`` are as for ``load``, when ``model`` is a file. The path of a picture
    may stand for an array: it becomes the input as in calibration, which the model remembers.

    Raises:
        VitrifyError: an input is missing or does not fit, or the runtime refuses the model.
    """
    from contextlib import ExitStack

    from vitrify import runtimes
    from vitrify.pipeline.exchange import exchanged

    options = _conversion(shapes, values=values, dims=dims, trust=trust)
    with ExitStack() as stack:
        source: Model | Path = model if isinstance(model, Model) else stack.enter_context(
            exchanged(_path(model), options, Silent()))[0]
        runtime = stack.enter_context(runtimes.open(source, shapes=options.sizes, values=values, kernels="optimized"))
        given: object = inputs
        if not isinstance(given, Mapping):
            names = ", ".join(f"'{binding.name}'" for binding in runtime.interface.inputs)
            raise UsageError.of("run.inputs", f"the inputs are of type {type(given).__name__}, not arrays by name",
                                help=f"give a dict with an array for each of {names}")
        return runtime.run(_read(inputs, runtime.interface, source))


def _read(inputs: Mapping[str, Array | str | Path], interface: Interface, model: Model | Path) -> dict[str, Array]:
    """The arrays, those of pictures read as the model remembers."""
    from vitrify.data.preprocess import Preprocess, remembered
    from vitrify.data.reading import source_of
    from vitrify.pipeline.remembered import remembered_in

    files = {name: _path(value) for name, value in inputs.items() if isinstance(value, str | Path)}
    arrays = {name: value for name, value in inputs.items() if not isinstance(value, str | Path)}
    if not files:
        return arrays
    how = (remembered(model) if isinstance(model, Model) else remembered_in(model)) or Preprocess()
    taken = [binding for binding in interface.inputs if binding.name in files]
    return arrays | {one.name: source_of(files[one.name], [one], how).sample(0)[one.name] for one in taken}


def check(model: Source, target: str) -> CheckResult:
    """Say for each node of an int8 model where it would run on ``target``, and why.

    Raises:
        VitrifyError: the model computes in float, or LiteRT or the target's compiler refuses it.
    """
    from vitrify.pipeline.check import check_file

    with _file(model) as path:
        return _named(check_file(path, target, DataOptions(), ConvertOptions()), "check")


def compile(model: Source, target: str, output: str | Path) -> CompileResult:
    """Compile an int8 model for ``target`` and write ``output``.

    Raises:
        VitrifyError: the model computes in float, LiteRT or the compiler refuses it, or it cannot be written.
    """
    from vitrify.pipeline.compile import compile_file

    with _file(model) as path:
        return _named(compile_file(path, target, _output(output)), "compile")


def convert(model: Source, output: str | Path, *, shapes: Shapes | None = None, dims: Dims | None = None,
            values: Values | None = None, trust: bool = False, io_layout: Layout = "nhwc") -> ConvertResult:
    """Convert a model to float TFLite and write ``output``; one that ``load`` gave is written as it is.

    Raises:
        VitrifyError: the file is no model, something in it is not supported, or ``output`` cannot be written.
    """
    from vitrify.pipeline.convert import convert_file

    options = _conversion(shapes, io_layout, values, dims, trust)
    with _file(model) as path:
        return _named(convert_file(path, _output(output), options), "convert")


def verify(*models: Source, data: object = None, samples: int | None = None, random_inputs: bool = False,
           preprocess: Preprocess | None = None, shapes: Shapes | None = None, dims: Dims | None = None,
           values: Values | None = None, trust: bool = False) -> VerifyResult:
    """Run forms of one model on the same inputs and compare each with the first.

    ``data`` is as for ``quantize``; what Python gives is written to a temporary folder first. Files become inputs as
    ``preprocess`` says, or else as the first model that remembers it.

    Raises:
        VitrifyError: a model cannot be run, the models do not belong together, or there is no data.
    """
    from contextlib import ExitStack

    from vitrify.pipeline.verify import verify_files

    with ExitStack() as stack:
        paths = [stack.enter_context(_file(model)) for model in models]
        options = _conversion(shapes, values=values, dims=dims, trust=trust)
        place = data if data is None or isinstance(data, str | Path) else _written(
            data, stack.enter_context(temporary_folder()), paths[0], options, samples, preprocess)
        given = _data(place, samples, random_inputs, preprocess)
        return _named(verify_files(paths, given, options), "verify")


def inspect(path: str | Path) -> InspectResult:
    """Say what a file holds, in any format; of a folder, what each model in it is.

    Raises:
        VitrifyError: there is nothing to read, or it is no model.
    """
    from vitrify.pipeline.inspect import inspect_path

    return _named(inspect_path(_path(path)), "inspect")


def build(model: str | Path, target: str, *, data: str | Path | None = None, output: str | Path | None = None,
          samples: int | None = None, random_calibration: bool = False, preprocess: Preprocess | None = None,
          shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None, trust: bool = False,
          io_layout: Layout = "nhwc", least_db: float | None = None) -> BuildResult:
    """Go the whole way and write a run folder with report.html; goes on where an earlier call stopped.

    ``least_db`` is the SQNR that every output is to keep on the samples: where 8 bits keep less, operators compute with
    16-bit activations, as few as do.

    Raises:
        VitrifyError: the call, the model or the data does not do, or a stage failed.
    """
    from vitrify.pipeline.build import build_run
    from vitrify.report.html import write_report

    conversion = _conversion(shapes, io_layout, values, dims, trust)
    options = BuildOptions(model=_path(model), target=target, conversion=conversion,
                           data=_data(data, samples, random_calibration, preprocess),
                           quantization=QuantizeOptions(least_db=least_db))
    return _named(build_run(options, None if output is None else _path(output), write_report), "build")


def _conversion(shapes: Shapes | None, io_layout: Layout = "nhwc", values: Values | None = None,
                dims: Dims | None = None, trust: bool = False) -> ConvertOptions:
    fixed = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    return ConvertOptions(shapes=fixed, dims=dict(dims or {}), values=dict(values or {}), trust=trust,
                          input_layout=io_layout, output_layout=io_layout)


def _data(path: object, samples: int | Literal["auto"] | None, random: bool,
          preprocess: Preprocess | None) -> DataOptions:
    if not isinstance(path, str | Path | None):
        raise UsageError.of("call.data", f"data is of type {type(path).__name__}, not a path")
    given = DataOptions(path=None if path is None else _path(path), samples=None if samples == "auto" else samples,
                        enough=samples == "auto", random=random)
    return given if preprocess is None else given.prepared_as(preprocess)


def _feed(data: object, folder: Path, given: DataOptions) -> Feed:
    from vitrify.data.feeds import Feed

    folder.mkdir()
    return Feed(data, folder, given.how(), given.samples, given.enough)


def _written(data: object, folder: Path, model: Path, options: ConvertOptions, samples: int | None,
             preprocess: Preprocess | None) -> Path:
    """Write what Python code gives for a comparison to files."""
    from vitrify.data.feeds import Feed
    from vitrify.pipeline.verify import interface_of

    feed = Feed(data, folder, preprocess, samples).bind(interface_of(model, options))
    for number, sample in enumerate(feed):
        np.savez(folder / f"{number:012d}.npz", **sample)        # type: ignore[arg-type]
    return folder


@contextmanager
def _file(model: Source) -> Iterator[Path]:
    """Yield a file of the model: its own, or a temporary one of a model in memory."""
    if not isinstance(model, Model):
        yield _path(model)
        return
    from vitrify import tflite

    with temporary_folder() as folder:
        path = folder / "model.tflite"
        tflite.write(model, path)
        yield path


def _path(path: str | Path) -> Path:
    """The path, unless it is empty: that would mean the current folder.

    Raises:
        UsageError: it is.
    """
    if not isinstance(path, Path) and not path:
        raise UsageError.of("call.path", "an empty word names no file")
    return Path(path)


def _output(path: str | Path) -> Path:
    """The path of a file to write.

    Raises:
        UsageError: it is empty, or says that it is a folder.
    """
    if not isinstance(path, Path) and path.endswith("/"):
        raise UsageError.of("file.folder", f"{path} names a folder, not a file to write", where=path,
                            help="name a file in it")
    return _path(path)


def _named(result: R, command: str) -> R:
    result.command = command
    return result


def _silent(done: int, total: int) -> None:
    """Take progress that nobody asked for."""
