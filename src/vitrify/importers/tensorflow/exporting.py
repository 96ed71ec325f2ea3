"""TensorFlow's TFLite converter and tf2onnx on one model, each judged against TensorFlow; the cleaner result is kept.

The second is asked only where the first leaves something to better: TRANSPOSEs, loops, or an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.sizes import Sizes
from vitrify.importers.tensorflow.checks import refuse_operators
from vitrify.importers.tensorflow.renaming import rename_onnx, rename_tflite
from vitrify.importers.tensorflow.source import TfSource, fixed_inputs

Arrays = list[np.ndarray[Any, np.dtype[Any]]]
LEAST_DB = 60.0
"""Below this a converted model is not the model any more: two float computations agree to 90 dB and more."""
OPSET = 18


@dataclass(frozen=True)
class Frozen:
    """A model with static shapes, its variables as constants, and what it gives for random inputs."""

    label: str
    function: Any
    inputs: list[str]
    outputs: list[str]
    arrays: Arrays
    wanted: Arrays


@dataclass(frozen=True)
class Export:
    """A file that a converter wrote: how near it is to TensorFlow, and the graph that it gives."""

    path: Path
    converter: str
    decibels: float
    loops: int
    transposes: int
    operators: int

    @property
    def is_clean(self) -> bool:
        """True when nothing can be better but the number of operators."""
        return self.decibels >= LEAST_DB and not self.loops and not self.transposes


def best_export(source: TfSource, sizes: Sizes, folder: Path) -> tuple[Path, list[Finding]]:
    """Convert, and return the file that gives the cleanest graph, with what was seen.

    Raises:
        VitrifyError: shapes are missing, or no converter can write the model, or none writes it right.
    """
    frozen = freeze(source, sizes)
    made: list[Export] = []
    problems: list[Finding] = []
    for converter, write in CONVERTERS.items():
        if any(export.is_clean for export in made):
            break
        try:
            made.append(_judged(write(frozen, folder), converter, frozen))
        except VitrifyError as error:
            problems += error.findings
        except Exception as error:      # the converters' errors share no base class
            problems.append(_cannot(source.label, converter, error))
    good = [export for export in made if export.decibels >= LEAST_DB]
    problems += [_wrong(source.label, export) for export in made if export not in good]
    if not good:
        raise UnsupportedError(list(dict.fromkeys(problems)))
    best = min(good, key=lambda export: (export.loops, export.transposes, export.operators))
    return best.path, [*source.findings, _told(source.label, best, made)]


def freeze(source: TfSource, sizes: Sizes) -> Frozen:
    """Fix shapes, make constants of variables, and run the model on random inputs.

    Raises:
        VitrifyError: a shape is missing or does not fit, or the model computes with what no converter can express.
    """
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    held = tf.compat.v1.GraphDef() if source.graph is None else source.graph.as_graph_def()
    refuse_operators(source.label, held, source.inputs, {})
    shapes = fixed_inputs(source, sizes)
    specs = [tf.TensorSpec(shapes[name], spec.dtype, name=_identifier(name)) for name, spec in source.inputs.items()]
    traced = tf.function(source.function, autograph=False).get_concrete_function(*specs)
    outputs = dict(zip(source.outputs, traced.outputs, strict=True))
    refuse_operators(source.label, traced.graph.as_graph_def(), {}, outputs)
    function = convert_variables_to_constants_v2(traced, lower_control_flow=False)
    generator = np.random.default_rng(0)
    arrays = [_random(generator, tuple(spec.shape), spec.dtype) for spec in specs]
    wanted = [np.asarray(value) for value in tf.nest.flatten(traced(*map(tf.constant, arrays)))]
    return Frozen(source.label, function, list(source.inputs), source.outputs, arrays, wanted)


def _identifier(name: str) -> str:
    """A name as TensorFlow's nodes take it."""
    found = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name)
    return found if re.match(r"[A-Za-z0-9.]", found) else f"x{found}"


def _random(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, np.dtype[Any]]:
    kind = dtype.as_numpy_dtype
    if dtype.is_floating:
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, 2, shape).astype(kind)


def _by_tflite(frozen: Frozen, folder: Path) -> Path:
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen.function])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.allow_custom_ops = False
    written = folder / "converted.tflite"
    written.write_bytes(converter.convert())
    return rename_tflite(written, folder / "model.tflite", frozen.inputs, frozen.outputs)


def _by_onnx(frozen: Frozen, folder: Path) -> Path:
    if find_spec("tf2onnx") is None:
        raise UnsupportedError.of("framework.missing", "tf2onnx, the other way from TensorFlow, is not installed",
                                  help="pip install 'vitrify[tf]'")
    import tf2onnx

    function = frozen.function
    model, _ = tf2onnx.convert.from_graph_def(
        function.graph.as_graph_def(), input_names=[t.name for t in function.inputs],
        output_names=[t.name for t in function.outputs], opset=OPSET)
    return rename_onnx(model, folder / "model.onnx", frozen.inputs, frozen.outputs)


CONVERTERS: dict[str, Callable[[Frozen, Path], Path]] = {"tflite": _by_tflite, "onnx": _by_onnx}


def _judged(path: Path, converter: str, frozen: Frozen) -> Export:
    """Import the file as Vitrify does, and run what becomes of it beside TensorFlow.

    Raises:
        VitrifyError: something in it is not supported.
    """
    from vitrify import importers, tflite
    from vitrify.ops import Transpose, While
    from vitrify.passes import optimize

    model = importers.load(path)
    optimize(model, input_layout="nchw", output_layout="nchw")
    found = _by_interpreter(bytes(tflite.to_bytes(model)), frozen.arrays)
    worst = min((decibels(a, b) for a, b in zip(frozen.wanted, found, strict=False)), default=math.inf)
    if len(found) != len(frozen.wanted):
        worst = -math.inf
    nodes = [node for graph in model.graphs for node in graph]
    return Export(path, converter, worst, sum(isinstance(n.op, While) for n in nodes),
                  sum(isinstance(n.op, Transpose) for n in nodes), len(nodes))


def _by_interpreter(content: bytes, arrays: Arrays) -> Arrays:
    from tensorflow.lite.python.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    for place, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(place["index"], array.astype(place["dtype"]).reshape(place["shape"]))
    interpreter.invoke()
    return [interpreter.get_tensor(place["index"]) for place in interpreter.get_output_details()]


def decibels(wanted: Any, found: Any) -> float:
    """How near ``found`` is to ``wanted``: signal to noise."""
    if np.shape(wanted) != np.shape(found):
        return -math.inf
    a, b = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    noise, signal = float(np.square(a - b).sum()), float(np.square(a).sum())
    if not math.isfinite(noise):
        return math.inf if np.array_equal(a, b, equal_nan=True) else -math.inf
    return math.inf if noise == 0 else 10 * math.log10(max(signal, 1e-30) / noise)


_WORDS = {"tflite": "TensorFlow's TFLite converter", "onnx": "tf2onnx"}


def _told(label: str, best: Export, made: list[Export]) -> Finding:
    seen = "; ".join(f"{_WORDS[e.converter]}: {e.operators} nodes, {e.transposes} of them TRANSPOSE"
                     f"{f', {e.loops} loops' if e.loops else ''}, {e.decibels:.0f} dB to TensorFlow" for e in made)
    return Finding(code="tf.exported", severity=Severity.INFO, where=label,
                   headline=f"{label} was converted by {_WORDS[best.converter]}", why=seen)


def _cannot(label: str, converter: str, error: Exception) -> Finding:
    flex = sorted(set(re.findall(r"tf\.(\w+)\(", str(error)))) if converter == "tflite" else []
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if flex:
        text = f"TFLite has no operators for {', '.join(flex)}"
    return Finding(code="tf.export", where=label, why=f"{type(error).__name__}: {text[:400]}",
                   headline=f"{label} cannot be converted by {_WORDS[converter]}",
                   help="leave what it names out of the signature, and compute it in the application")


def _wrong(label: str, export: Export) -> Finding:
    return Finding(code="tf.export-wrong", where=label,
                   headline=f"{label} converted by {_WORDS[export.converter]} gives other values than TensorFlow: "
                            f"{export.decibels:.0f} dB, {LEAST_DB:.0f} are needed",
                   why="random numbers, training mode, or an operator that the converter writes wrong",
                   help="save the model for inference: model.export('FOLDER')")
