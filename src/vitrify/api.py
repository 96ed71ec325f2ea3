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
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

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
    from vitrify.data.preprocess import Preprocess
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


def quantize(model: Source, *, data: str | Path | None = None, samples: int | None = None,
             random_calibration: bool = False, preprocess: Preprocess | None = None, recipe: Recipe | None = None,
             shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None,
             trust: bool = False) -> Model:
    """Return the full-integer int8 form of a float model; the model itself is not changed.

    Args:
        model: a float model or its file.
        data: a folder of pictures, .npy or .npz files, or one such file.
        samples: use at most so many samples.
        random_calibration: calibrate on random values instead; the answers then mean nothing.
        preprocess: how a picture becomes an input.
        recipe: what is quantized how.
        shapes, dims, values, trust: as for ``load``, when ``model`` is a file.
    Raises:
        VitrifyError: an operator has no int8 form, or the data does not fit.
    """
    from vitrify import quant, tflite
    from vitrify.passes import to_integer_forms
    from vitrify.pipeline.steps import calibrate_model
    from vitrify.pipeline.widening import quantize_enough
    from vitrify.quant.copying import copy_model

    given = _data(data, samples, random_calibration, preprocess)
    given.require("calibration")
    source = model if isinstance(model, Model) else load(model, shapes=shapes, dims=dims, values=values, trust=trust)
    chosen = recipe or quant.Recipe()
    to_integer_forms(source := copy_model(source))
    with temporary_folder() as folder:
        path = folder / "float.tflite"
        tflite.write(source, path)
        statistics, _ = calibrate_model(path, source, given, chosen, None, _silent)
        return quantize_enough(source, path, statistics, chosen, given)[0].model


def run(model: Source, inputs: Mapping[str, Array], *, shapes: Shapes | None = None, dims: Dims | None = None,
        values: Values | None = None, trust: bool = False) -> dict[str, Array]:
    """Run a model once: takes and returns what the source model takes and returns, whatever became of it inside.

    ``shapes``, ``dims``, ``values`` and ``trust`` are as for ``load``, when ``model`` is a file.

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
        return runtime.run(inputs)


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


def verify(*models: Source, data: str | Path | None = None, samples: int | None = None, random_inputs: bool = False,
           preprocess: Preprocess | None = None, shapes: Shapes | None = None, dims: Dims | None = None,
           values: Values | None = None, trust: bool = False) -> VerifyResult:
    """Run forms of one model on the same inputs and compare each with the first.

    Raises:
        VitrifyError: a model cannot be run, the models do not belong together, or there is no data.
    """
    from contextlib import ExitStack

    from vitrify.pipeline.verify import verify_files

    with ExitStack() as stack:
        paths = [stack.enter_context(_file(model)) for model in models]
        given = _data(data, samples, random_inputs, preprocess)
        options = _conversion(shapes, values=values, dims=dims, trust=trust)
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


def _data(path: str | Path | None, samples: int | None, random: bool, preprocess: Preprocess | None) -> DataOptions:
    given = DataOptions(path=None if path is None else _path(path), samples=samples, random=random)
    if preprocess is None:
        return given
    from msgspec import structs

    return structs.replace(given, fit=preprocess.fit, color=preprocess.color, mean=preprocess.mean, std=preprocess.std)


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
