"""The same commands in Python: models in memory go in and come out, files where a file is named.

    import vitrify as vt
    model = vt.load("yolov8n.onnx", shapes={"images": (1, 3, 640, 640)})
    int8 = vt.quantize(model, data="photos/")
    print(vt.check(int8, target="imx93"))
    vt.run(int8, {"images": array})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from warnings import warn

import numpy as np
from msgspec import structs

from vitrify.core.errors import QualityWarning, UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Severity
from vitrify.core.progress import Silent
from vitrify.ir import Model
from vitrify.pipeline.calls import (
    Dims,
    Shapes,
    Values,
    conversion_of,
    data_of,
    output_of,
    path_of,
    quantization_of,
    require_data,
    task_options,
    write_given,
)
from vitrify.pipeline.options import BuildOptions, ConvertOptions, Layout
from vitrify.results import (
    BuildResult,
    CheckResult,
    CompileResult,
    ConvertResult,
    DiffResult,
    EvalResult,
    ExplainResult,
    InspectResult,
    ProfileResult,
    QuantizeResult,
    Result,
    RunResult,
    SweepResult,
    TargetsResult,
    VerifyResult,
)

if TYPE_CHECKING:
    from vitrify.data.preprocess import Preprocess
    from vitrify.ir import Interface
    from vitrify.pipeline.quantizing.quantized import QuantizedModel
    from vitrify.quant import Recipe
    from vitrify.quant.efforts import Effort

R = TypeVar("R", bound=Result)
Array = np.ndarray[Any, np.dtype[Any]]
Source = Model | str | Path
IoType = Literal["int8", "uint8", "int16"]
Outputs = Literal["split", "normalize", "keep"]
Kernels = Literal["xnnpack", "optimized", "reference"]


def load(source: str | Path | object, example_inputs: Sequence[Any] | Mapping[str, Any] | None = None, *,
         shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None, trust: bool = False,
         io_layout: Layout = "nhwc", task: str = "") -> Model:
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
        task: what the model is for, such as "detection", where its exporter does not say so; its files remember it.
    Raises:
        VitrifyError: the file is no model, or something in it is not supported.
    """
    from vitrify.pipeline.convert import float_model, module_model
    from vitrify.pipeline.files import existing

    options = conversion_of(shapes, io_layout, values, dims, trust, task)
    if not isinstance(source, str | Path):
        return module_model(source, example_inputs, options)
    if example_inputs is not None:
        raise UsageError.of("call.example-inputs", "example inputs belong to a module in memory, a file was given",
                            help="leave them out; shapes={...} fixes the shapes of a file's inputs")
    model, _ = float_model(existing(path_of(source)), options, Silent())
    return model


def quantize(model: Source, *, data: object = None, samples: int | Literal["auto"] | None = None,
             random_calibration: bool = False, preprocess: Preprocess | None = None,
             recipe: Recipe | str | Path | None = None, preset: str = "", effort: Effort | None = None,
             io: IoType = "int8", outputs: Outputs = "split", calibrator: str | None = None,
             least_db: float | None = None, target_quality: str = "", metric: str = "", max_drop: float | None = None,
             budget_ms: float | None = None, target: str = "", jobs: int = 1, analyze: bool = False,
             shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None,
             trust: bool = False, task: str = "") -> QuantizedModel:
    """Return the full-integer form of a float model, judged against it; the model itself is not changed.

    What comes back is a model with two things more: ``result`` is what ``vitrify quantize --json`` prints (``ok``,
    ``findings``, ``quality``, ``conflicts``, ``ledger``), and ``recipe`` the recipe that was used. Where the answers
    are not good, ``result.ok`` is false and a ``QualityWarning`` is given.

    Args:
        model: a float model or its file.
        data: a folder of pictures, recordings or arrays, one such file or a list of them; or an array, a dict of arrays
            by input name, or an iterable of those, such as a generator, which is walked once and never gathered.
        samples: use at most so many samples; "auto" stops when the ranges no longer move.
        random_calibration: calibrate on random values instead; the answers then mean nothing.
        preprocess: how a file, or an array of 8-bit pixels, becomes an input; the model remembers it.
        recipe: what is quantized how; a path is that of a recipe's TOML file. What is given besides comes before it.
        preset: a recipe that comes along, such as "detector".
        effort: how much is done for quality: "fast", "balanced" or "best".
        io: the element type of the model's inputs and outputs: "int8", "uint8" or "int16".
        outputs: what becomes of outputs that join parts of very different range: "split", "normalize" or "keep".
        calibrator: how ranges are taken, such as "minmax".
        least_db: SQNR that every output is to keep; where 8 bits keep less, operators from the input on compute with
            16-bit activations, as few as do.
        target_quality: such as "sqnr>=35": as few operators as reach it compute with 16-bit activations.
        metric, max_drop: the same by what may be lost of a metric: "top1", "detections", "agreement" or "cosine".
        budget_ms, target: the most that an inference may take on a chip, by its compiler's estimate; ``target`` alone
            has the time told.
        jobs: how many candidates of that search are tried at once.
        analyze: give each operator its own error, and what it costs the outputs.
        shapes, dims, values, trust, task: as for ``load``, when ``model`` is a file.
    Raises:
        VitrifyError: an operator has no integer form, the data does not fit, or the options contradict each other.
    """
    from vitrify.pipeline.quantizing.quantized import quantize_in_memory

    file, own = (recipe, None) if isinstance(recipe, str | Path) else (None, recipe)
    options = quantization_of(
        file, io=io, outputs=outputs, calibrator=calibrator, least_db=least_db, preset=preset, effort=effort,
        target_quality=target_quality, metric=metric, max_drop=max_drop, budget_ms=budget_ms, target=target, jobs=jobs,
        analyze=analyze)
    options.goal(base=own)                     # says what is wrong with it before any work is done
    feed = None if data is None or isinstance(data, str | Path) else data
    given = data_of(data if feed is None else None, samples, random_calibration, preprocess)
    if feed is None or random_calibration:
        require_data(given, "calibration", "random_calibration=True")
    source = model if isinstance(model, Model) else load(model, shapes=shapes, dims=dims, values=values, trust=trust,
                                                              task=task)
    made = quantize_in_memory(source, given, feed, options, own)
    if not made.result.ok:
        warn(_unsound(made.result), QualityWarning, stacklevel=2)
    return made


@overload
def run(model: Source, inputs: Mapping[str, Array | str | Path], *, shapes: Shapes | None = None,
        dims: Dims | None = None, values: Values | None = None, trust: bool = False) -> dict[str, Array]: ...


@overload
def run(model: Source, inputs: str | Path, *, output: str | Path | None = None, compare: Sequence[Source] = (),
        task: str = "", decoder: str = "", names: Sequence[str] = (), score: float | None = None,
        overlap: float | None = None, most: int | None = None, options: Mapping[str, Any] | None = None,
        kernels: Kernels = "xnnpack", preprocess: Preprocess | None = None, shapes: Shapes | None = None,
        dims: Dims | None = None, values: Values | None = None, trust: bool = False) -> RunResult: ...


def run(model: Source, inputs: Mapping[str, Array | str | Path] | str | Path, *, output: str | Path | None = None,
        compare: Sequence[Source] = (), task: str = "", decoder: str = "", names: Sequence[str] = (),
        score: float | None = None, overlap: float | None = None, most: int | None = None,
        options: Mapping[str, Any] | None = None, kernels: Kernels = "xnnpack", preprocess: Preprocess | None = None,
        shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None,
        trust: bool = False) -> dict[str, Array] | RunResult:
    """Run a model once on arrays, or on files to say what it finds in them.

    With arrays by input name it takes and returns what the source model takes and returns, whatever became of it
    inside. The path of a picture may stand for an array: it becomes the input as in calibration, which the model
    remembers. A file that Vela compiled for an Ethos-U55 or U65 runs in the model of that NPU, bit for bit as its
    commands say.

    With the path of a picture, a video, a recording, an array or a folder of those, it does what ``vitrify run`` does:
    the answer's ``rows`` have boxes, masks, classes, text.

    Args:
        model: a model or its file.
        inputs: arrays by input name, or a path.
        output: where what is found is drawn: a picture, a folder or a video. This and what follows is for a path.
        compare: other forms of the model, drawn beside it.
        task, decoder: what the model is for, and the form of its outputs; by default told by its metadata and shapes.
        names: the classes' names.
        score, overlap, most: the least score that counts, the overlap above which the weaker box goes, the most boxes.
        options: of the decoder, such as anchors.
        kernels: LiteRT's: "xnnpack", "optimized" or "reference".
        preprocess: how files become inputs; by default as the model remembers.
        shapes, dims, values, trust: as for ``load``, when ``model`` is a file.
    Raises:
        VitrifyError: an input is missing, does not fit, is an index beyond its table, or holds NaN where the model
            takes integers; the runtime refuses the model; or nothing tells what its outputs mean.
    """
    if isinstance(inputs, str | Path):
        from vitrify.pipeline.running.run import RunOptions, run_files

        asked = RunOptions(output=None if output is None else path_of(output), kernels=kernels, told=preprocess,
                           task=task_options(task, decoder, names, score, overlap, most, options),
                           conversion=conversion_of(shapes, "nhwc", values, dims, trust))
        with ExitStack() as stack:
            forms = [stack.enter_context(_file(one)) for one in (model, *compare)]
            return _named(run_files(forms, path_of(inputs), asked), "run")
    return _run_once(model, inputs, conversion_of(shapes, values=values, dims=dims, trust=trust))


def _run_once(model: Source, inputs: Mapping[str, Array | str | Path], options: ConvertOptions) -> dict[str, Array]:
    """The answer to arrays."""
    from vitrify import runtimes
    from vitrify.data.limits import not_numbers
    from vitrify.pipeline.exchange import exchanged
    from vitrify.pipeline.files import existing
    from vitrify.pipeline.steps import refuse_compiled, runs_on_npusim

    with ExitStack() as stack:
        source: Model | Path = model if isinstance(model, Model) else stack.enter_context(
            exchanged(existing(path_of(model)), options, Silent()))[0]
        if not runs_on_npusim(source):
            refuse_compiled(source)
        runtime = stack.enter_context(
            runtimes.open(source, shapes=options.sizes, values=options.values, kernels="optimized"))
        given: object = inputs
        if not isinstance(given, Mapping):
            names = ", ".join(f"'{binding.name}'" for binding in runtime.interface.inputs)
            raise UsageError.of("run.inputs", f"the inputs are of type {type(given).__name__}, not arrays by name",
                                help=f"give a dict with an array for each of {names}")
        arrays = _read(inputs, runtime.interface, source)
        for said in filter(None, (not_numbers(name, np.asarray(array)) for name, array in arrays.items())):
            if runtime.precision != "integer":          # with integers, the runtime refuses it
                warn(said, RuntimeWarning, stacklevel=2)
        return runtime.run(arrays)


def _read(inputs: Mapping[str, Array | str | Path], interface: Interface, model: Model | Path) -> dict[str, Array]:
    """The arrays, those of pictures read as the model remembers."""
    from vitrify.data.preprocess import Preprocess, remembered
    from vitrify.data.reading import source_of
    from vitrify.pipeline.remembered import remembered_in

    files = {name: path_of(value) for name, value in inputs.items() if isinstance(value, str | Path)}
    arrays = {name: value for name, value in inputs.items() if not isinstance(value, str | Path)}
    if not files:
        return arrays
    how = (remembered(model) if isinstance(model, Model) else remembered_in(model)) or Preprocess()
    taken = [binding for binding in interface.inputs if binding.name in files]
    return arrays | {one.name: source_of(files[one.name], [one], how).sample(0)[one.name] for one in taken}


def check(model: Source, target: str, *, data: str | Path | None = None,
          samples: int | Literal["auto"] | None = None, preprocess: Preprocess | None = None, rules_only: bool = False,
          fix: str | Path | None = None, approximate: Sequence[str] = (), shapes: Shapes | None = None,
          dims: Dims | None = None, values: Values | None = None, trust: bool = False) -> CheckResult:
    """Say for each node of a model where it would run on ``target``, why, and what mends it.

    A float model is judged as it is (``as_it_is``) and as it would be quantized: with ``data``, or else on random
    values, since where a node runs does not depend on them.

    Args:
        model: a model or its file.
        target: the chip.
        data, samples, preprocess: as for ``quantize``.
        rules_only: neither LiteRT nor the target's compiler is asked about an integer model.
        fix: apply the fixes of the target and write the result to this file.
        approximate: fixes that change values, applied besides the exact ones.
        shapes, dims, values, trust: as for ``load``.
    Raises:
        VitrifyError: there is no such target, the file is no model, or it cannot be fixed.
    """
    from vitrify.pipeline.checking.check import check_file
    from vitrify.pipeline.checking.fixing import FixOptions

    given = data_of(data, samples, False, preprocess)
    fixing = FixOptions(wanted=fix is not None, output=None if fix is None else output_of(fix),
                        approximate=tuple(approximate))
    options = conversion_of(shapes, "nhwc", values, dims, trust)
    with _file(model) as path:
        return _named(check_file(path, target, given, options, rules_only=rules_only, fix=fixing), "check")


def compile(model: Source, target: str, output: str | Path | None = None, *, search: bool = False,
            search_seconds: float | None = None, approximate: Sequence[str] = (), neutron_sdk: str | Path = "",
            neutron_option: Mapping[str, str] | None = None, recorded: str | Path | None = None,
            tolerance_lsb: float | None = None) -> CompileResult:
    """Compile an int8 model for ``target`` and write ``output``: by default NAME_vela.tflite or NAME_neutron.tflite.

    With ``search``, for about ``search_seconds`` (60), settings of the compiler and exact rewrites are tried, those
    that are named in ``approximate`` too; what is estimated fastest is kept.

    ``neutron_sdk`` is a place or a release of the eIQ Neutron SDK, ``neutron_option`` are passed on to its converter
    (an empty value stands for a flag). Its result is compared with the model where the SDK can run it, or with what a
    board gave: ``recorded``, an .npz file; values may differ by ``tolerance_lsb`` steps. Without the SDK the answer is
    what the rules know, and ``ok`` is false.

    Raises:
        VitrifyError: the model computes in float, LiteRT or the compiler refuses it, or it cannot be written.
    """
    from vitrify.backends.base import CompilerOptions, driver_of
    from vitrify.pipeline.compiling.compile import compile_file
    from vitrify.pipeline.compiling.search import SearchOptions
    from vitrify.pipeline.compiling.verifying import VerifyOptions
    from vitrify.targets import load

    options = SearchOptions(wanted=search, seconds=search_seconds, approximate=tuple(approximate))
    compiler = CompilerOptions(where=str(neutron_sdk), options=dict(neutron_option or {}))
    verify = VerifyOptions(recorded=None if recorded is None else path_of(recorded), steps=tolerance_lsb)
    driver = driver_of(load(target))
    ending = "_compiled.tflite" if driver is None else driver.ending
    with _file(model) as path:
        written = Path(f"{_stem(model)}{ending}") if output is None else output_of(output)
        return _named(compile_file(path, target, written, options=options, compiler=compiler, verify=verify), "compile")


def sweep(model: str | Path, target: str, output: str | Path | None = None, *, sizes: str | Sequence[str] = (),
          precisions: str | Sequence[str] = (), memory_modes: str | Sequence[str] = (),
          arenas: str | Sequence[str] = (), input: str = "", workers: int = 2, data: str | Path | None = None,
          samples: int | Literal["auto"] | None = None, preprocess: Preprocess | None = None,
          shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None,
          trust: bool = False) -> SweepResult:
    """Estimate a model over sizes, precisions and memory modes of ``target``, and find where it jumps.

    Args:
        model: the model's file.
        target: the chip.
        output: the folder for the answer, and for what a killed sweep goes on from.
        sizes: of the picture, such as ``160:640:32`` or ``480x640``; the model's own without any.
        precisions: ``int8``, ``int16x8`` or ``all``.
        memory_modes, arenas: of Vela, ``all`` for each mode.
        input: the input that is the picture, where that is not plain.
        workers: how many processes at once.
        data, samples, preprocess: as for ``quantize``; without data the model is quantized on random values.
        shapes, dims, values, trust: as for ``load``.
    Raises:
        VitrifyError: there is no such grid, the file is no model, or its size cannot be changed.
    """
    from vitrify.pipeline.sweeping.sweep import SweepOptions, sweep_file
    from vitrify.report.page.sweep_page import write_page

    def listed(given: str | Sequence[str]) -> tuple[str, ...]:
        return (given,) if isinstance(given, str) else tuple(given)

    options = SweepOptions(target=target, sizes=listed(sizes), precisions=listed(precisions),
                           memory_modes=listed(memory_modes), arenas=listed(arenas), input=input, workers=workers)
    result = sweep_file(Path(model), None if output is None else path_of(output), options,
                        data_of(data, samples, False, preprocess), conversion_of(shapes, "nhwc", values, dims, trust))
    write_page(result)
    return result


def profile(model: Source, target: str = "", *, xnnpack: bool = True, int8: bool = False, memory_modes: bool = False,
            threads: int = 1, runs: int | None = None, warmup: int = 5, compare: Source | None = None,
            fail_if: Sequence[str] = (), on: str = "", data: str | Path | None = None,
            preprocess: Preprocess | None = None, shapes: Shapes | None = None, dims: Dims | None = None,
            values: Values | None = None, trust: bool = False) -> ProfileResult:
    """Say where the time and the memory of a model go: measured on this machine, or estimated for ``target``.

    Args:
        model: the model; for a target a float one is profiled in integers.
        target: the chip; empty: this machine.
        xnnpack, threads, runs, warmup: how LiteRT runs it here; without ``runs``, until the figures agree.
        int8: measure the integer form of a float model too.
        memory_modes: compile in each memory mode of the target.
        compare: another model, profiled the same way, or the JSON of an earlier profile.
        fail_if: conditions such as ``latency_ms>+5%``; the result is not ``ok`` where one holds.
        on: "npusim" runs a compiled file in the model of its NPU, and counts the bytes that each node moves.
        data, preprocess: as for ``quantize``; without data the values are random.
        shapes, dims, values, trust: as for ``load``.

    Raises:
        VitrifyError: the file is no model, or the call makes no sense.
    """
    from vitrify.pipeline.profiling.command import Asked, profile_file
    from vitrify.pipeline.profiling.profile import ProfileOptions

    options = ProfileOptions(target=target, xnnpack=xnnpack, integers=int8, modes=memory_modes, threads=threads,
                             runs=runs, warmup=warmup, on=on)
    with ExitStack() as stack:
        path = stack.enter_context(_file(model))
        other = None if compare is None else stack.enter_context(_file(compare))
        asked = Asked(compare=other, fail_if=tuple(fail_if))
        return _named(profile_file(path, options, asked, data_of(data, None, False, preprocess),
                                   conversion_of(shapes, "nhwc", values, dims, trust)), "profile")


def evaluate(*models: Source, data: str | Path, task: str = "", labels: str = "", decoder: str = "",
             names: Sequence[str] = (), score: float | None = None, overlap: float | None = None,
             most: int | None = None, options: Mapping[str, Any] | None = None, samples: int | None = None,
             max_drop: float | None = None, workers: int = 1, scheduler: str = "", state: str | Path | None = None,
             batch: int = 250, kernels: Kernels = "xnnpack", preprocess: Preprocess | None = None,
             shapes: Shapes | None = None, dims: Dims | None = None, values: Values | None = None,
             trust: bool = False) -> EvalResult:
    """Score a model and other forms of it on a set of samples, all by one scorer: what ``vitrify eval`` does.

    Each form's figures are in ``stages``. Without labels the answers of the first form stand for them, and ``truth``
    says so. Several processes read their program again: call it under ``if __name__ == "__main__"`` then.

    Args:
        models: a model, and other forms of it, which are held against the first.
        data: samples with labels: COCO JSON, a folder in YOLO, VOC or ImageNet form, a CSV table, an .npz file.
        labels: the form of the labels; by default told by what lies there.
        samples: score at most so many.
        max_drop: points of the main figure that a form may lose; the result is not ``ok`` where one loses more.
        workers, scheduler: processes at once, or the address of a Dask scheduler.
        state: where finished batches are kept, so that a run that was killed goes on.
        batch: samples that are worked on together.
        task, decoder, names, score, overlap, most, options, kernels, preprocess: as for ``run``.
        shapes, dims, values, trust: as for ``load``.
    Raises:
        VitrifyError: a model cannot be run, nothing tells what its outputs mean, or labels and model do not fit.
    """
    from vitrify.pipeline.evaluating.evaluate import EvalOptions, evaluate_files

    if not models:
        raise UsageError.of("call.models", "no model is given", help="vitrify.evaluate(model, other, data=FOLDER)")
    asked = EvalOptions(labels=labels, samples=samples, max_drop=max_drop, workers=workers, scheduler=scheduler,
                        batch=batch, kernels=kernels, told=preprocess,
                        task=task_options(task, decoder, names, score, overlap, most, options),
                        conversion=conversion_of(shapes, "nhwc", values, dims, trust))
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        asked = structs.replace(asked, state=folder / "state.jsonl" if state is None else path_of(state))
        forms = [stack.enter_context(_file(one)) for one in models]
        return _named(evaluate_files(forms, path_of(data), asked), "eval")


def convert(model: Source, output: str | Path, *, shapes: Shapes | None = None, dims: Dims | None = None,
            values: Values | None = None, trust: bool = False, io_layout: Layout = "nhwc",
            task: str = "") -> ConvertResult:
    """Convert a model to float TFLite and write ``output``; one that ``load`` gave is written as it is.

    ``task`` is what the model is for, where its exporter does not say so; the file remembers it.

    Raises:
        VitrifyError: the file is no model, something in it is not supported, or ``output`` cannot be written.
    """
    from vitrify.pipeline.convert import convert_file

    options = conversion_of(shapes, io_layout, values, dims, trust, task)
    with _file(model) as path:
        return _named(convert_file(path, output_of(output), options), "convert")


def verify(*models: Source, data: object = None, samples: int | None = None, random_inputs: bool = False,
           preprocess: Preprocess | None = None, shapes: Shapes | None = None, dims: Dims | None = None,
           values: Values | None = None, trust: bool = False, on: str | None = None) -> VerifyResult:
    """Run forms of one model on the same inputs and compare each with the first.

    A form that Vela compiled is run by the model of its NPU (``on="npusim"``, which refuses where there is none).

    ``data`` is as for ``quantize``; what Python gives is written to a temporary folder first. Files become inputs as
    ``preprocess`` says, or else as the first model that remembers it.

    Raises:
        VitrifyError: a model cannot be run, the models do not belong together, or there is no data.
    """
    from contextlib import ExitStack

    from vitrify.pipeline.verifying.verify import verify_files

    with ExitStack() as stack:
        paths = [stack.enter_context(_file(model)) for model in models]
        options = conversion_of(shapes, values=values, dims=dims, trust=trust)
        place = data if data is None or isinstance(data, str | Path) else write_given(
            data, stack.enter_context(temporary_folder()), paths[0], options, samples, preprocess)
        given = data_of(place, samples, random_inputs, preprocess)
        if on is None:
            require_data(given, "comparison", "random_inputs=True")
        return _named(verify_files(paths, given, options, on=on), "verify")


def diff(a: Source, b: Source, *, shapes: Shapes | None = None, dims: Dims | None = None,
         values: Values | None = None, trust: bool = False) -> DiffResult:
    """Say how model ``b`` differs from model ``a`` in structure: ends, operators, and each node with its counterpart.

    ``result.equal`` is true when nothing differs. Models in memory are compared as they are; a file of another format
    than TFLite goes the way of ``load`` first, with ``shapes``, ``dims``, ``values`` and ``trust``.

    Raises:
        VitrifyError: one of them cannot be read.
    """
    from vitrify.pipeline.diffing.diff import diff_models

    options = conversion_of(shapes, values=values, dims=dims, trust=trust)
    left, right = (m if isinstance(m, Model) else path_of(m) for m in (a, b))
    return _named(diff_models(left, right, options), "diff")


def inspect(path: str | Path, *, commands: bool = False) -> InspectResult:
    """Say what a file holds, in any format; of a folder, what each model in it is.

    ``commands``: of a file that Vela compiled, every command of its NPU streams.

    Raises:
        VitrifyError: there is nothing to read, or it is no model.
    """
    if commands:
        from vitrify.pipeline.inspecting.streams import inspect_commands

        return _named(inspect_commands(path_of(path)), "inspect")
    from vitrify.pipeline.inspecting.inspect import inspect_path

    return _named(inspect_path(path_of(path)), "inspect")


def explain(code: str = "") -> ExplainResult:
    """Say what the code of a finding means: the rule, why, what mends it, the source; without one, list all codes.

    Raises:
        VitrifyError: there is no such code; names those that are near.
    """
    from vitrify.pipeline.explaining import explain as explained

    return _named(explained(code), "explain")


def targets(name: str = "") -> TargetsResult:
    """Return the chips that there are; of one that is named, all its facts with their sources too.

    Raises:
        VitrifyError: there is no such chip; names those that are near.
    """
    from vitrify.pipeline.listing import list_targets

    return _named(list_targets(name), "targets")


def build(model: str | Path, target: str, *, data: str | Path | None = None, output: str | Path | None = None,
          samples: int | None = None, random_calibration: bool = False, preprocess: Preprocess | None = None,
          recipe: str | Path | None = None, preset: str = "", effort: Effort | None = None, io: IoType = "int8",
          outputs: Outputs = "split", calibrator: str | None = None, least_db: float | None = None,
          target_quality: str = "", metric: str = "", max_drop: float | None = None, budget_ms: float | None = None,
          jobs: int = 1, analyze: bool = False, shapes: Shapes | None = None, dims: Dims | None = None,
          values: Values | None = None, trust: bool = False, io_layout: Layout = "nhwc",
          neutron_sdk: str | Path = "", neutron_option: Mapping[str, str] | None = None,
          task: str = "") -> BuildResult:
    """Go the whole way and write a run folder with report.html; goes on where an earlier call stopped.

    The options are those of ``convert``, ``quantize`` and ``compile``. Without the target's compiler the verdict says
    so.

    Raises:
        VitrifyError: the call, the model or the data does not do, or a stage failed.
    """
    from vitrify.backends.base import CompilerOptions
    from vitrify.pipeline.building.build import build_run
    from vitrify.report.page.html import write_report

    conversion = conversion_of(shapes, io_layout, values, dims, trust, task)
    quantization = quantization_of(
        recipe, io=io, outputs=outputs, calibrator=calibrator, least_db=least_db, preset=preset, effort=effort,
        target_quality=target_quality, metric=metric, max_drop=max_drop, budget_ms=budget_ms, jobs=jobs,
        analyze=analyze)
    options = BuildOptions(model=path_of(model), target=target, conversion=conversion, quantization=quantization,
                           compiler=CompilerOptions(where=str(neutron_sdk), options=dict(neutron_option or {})),
                           data=data_of(data, samples, random_calibration, preprocess))
    return _named(build_run(options, None if output is None else path_of(output), write_report), "build")


@contextmanager
def _file(model: Source) -> Iterator[Path]:
    """Yield a file of the model: its own, or a temporary one of a model in memory."""
    if not isinstance(model, Model):
        yield path_of(model)
        return
    from vitrify import tflite

    with temporary_folder() as folder:
        path = folder / "model.tflite"
        tflite.write(model, path)
        yield path


def _stem(model: Source) -> str:
    """What a file made of the model is named after: its own file, or the one that it was loaded from."""
    if not isinstance(model, Model):
        return path_of(model).stem
    return Path(model.source or model.main.name).stem or "model"


def _unsound(result: QuantizeResult) -> str:
    """What is said of a model whose answers are not good."""
    wrong = [finding for finding in result.findings if finding.severity is Severity.ERROR]
    return "\n".join(["the answers of the quantized model are not good:", *map(str, wrong)])


def _named(result: R, command: str) -> R:
    result.command = command
    return result
