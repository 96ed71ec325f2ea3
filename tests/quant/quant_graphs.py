"""Small float graphs, calibration of them, and LiteRT to run what came out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import vitrify.ops as ops
from vitrify.data import Samples, open_samples
from vitrify.data.binding import identity_interface, to_file_inputs, to_source_outputs
from vitrify.ir import DType, Graph, Model, Operator, Tensor
from vitrify.quant import Recipe, Statistics
from vitrify.runtimes.litert.calibrate import calibrate_here
from vitrify.tflite import to_bytes, write

Array = np.ndarray[Any, np.dtype[Any]]


class Net:
    """Builds a graph; weights are random but always the same."""

    def __init__(self, *shape: int, name: str = "x") -> None:
        self.graph = Graph()
        self.random = np.random.default_rng(5)
        self.x = Tensor(name, DType.FLOAT32, shape)
        self.graph.inputs.append(self.x)

    def constant(self, data: Any, name: str = "c") -> Tensor:
        array = np.asarray(data)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int32)
        return Tensor(f"{name}{len(self.graph)}_{array.size}", DType.of(array.dtype), array.shape, data=array)

    def add(self, op: Operator, *inputs: Tensor, name: str = "") -> Tensor:
        return self.graph.add(op, inputs, name=name or f"{op.kind.lower()}{len(self.graph)}").output

    def weights(self, *shape: int, gain: float = 1.0) -> Tensor:
        fan = int(np.prod(shape[1:]))
        return self.constant(self.random.standard_normal(shape) * gain / np.sqrt(fan), "w")

    def conv(self, x: Tensor, channels: int, size: int = 3, gain: float = 1.0, name: str = "", **kwargs: Any) -> Tensor:
        bias = self.constant(self.random.standard_normal(channels) * 0.1 * gain, "b")
        return self.add(ops.Conv2D(**kwargs), x, self.weights(channels, size, size, x.shape[-1], gain=gain), bias,
                        name=name)

    def model(self, *outputs: Tensor) -> Model:
        self.graph.set_outputs(outputs)
        return Model([self.graph])


def noise(model: Model, count: int = 4, seed: int = 0, low: float = -1.0, high: float = 1.0) -> list[dict[str, Array]]:
    """Samples of uniform noise for all inputs."""
    random = np.random.default_rng(seed)
    return [{t.name: random.uniform(low, high, t.shape).astype(np.float32) for t in model.main.inputs}
            for _ in range(count)]


def stored(model: Model, arrays: Sequence[dict[str, Array]], folder: Path) -> Samples:
    """Write arrays to files and open them as samples."""
    data = folder / "samples"
    data.mkdir(exist_ok=True)
    for number, sample in enumerate(arrays):
        np.savez(data / f"{number:03}.npz", **sample)      # type: ignore[arg-type]
    return open_samples(data, model.interface or identity_interface(model))


def statistics_of(model: Model, folder: Path, recipe: Recipe = Recipe(),
                  arrays: Sequence[dict[str, Array]] | None = None) -> Statistics:
    """Calibrate a model on noise, or on ``arrays``."""
    path = folder / "float.tflite"
    write(model, path)
    return calibrate_here(str(path), stored(model, arrays or noise(model), folder), recipe)


def run(model: Model, sample: dict[str, Array], kernels: str = "reference") -> dict[str, Array]:
    """Run a model in LiteRT and return the source's outputs."""
    resolver = OpResolverType.BUILTIN_REF if kernels == "reference" else OpResolverType.BUILTIN
    interpreter = Interpreter(model_content=bytes(to_bytes(model)), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interface = model.interface or identity_interface(model)
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    for details, array in zip(inputs, to_file_inputs(interface, sample, inputs), strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return to_source_outputs(interface, [interpreter.get_tensor(d["index"]) for d in outputs], outputs)


def sqnr(reference: Array, found: Array) -> float:
    """Signal to quantization noise, dB; 200 when equal."""
    error = float(np.square(reference.astype(np.float64) - found).sum())
    return 200.0 if error == 0 else float(10 * np.log10(np.square(reference.astype(np.float64)).sum() / error))


def kinds(model: Model) -> list[str]:
    """The operators in order."""
    return [node.op.kind for node in model.main]
