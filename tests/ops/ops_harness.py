"""Models of one operator, and how the runtime answers to them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.ir import DType, Graph, Model, Operator, Quantization, Tensor
from vitrify.tflite import to_bytes


@dataclass
class Given:
    """One input of a case."""

    array: np.ndarray
    constant: bool = False
    variable: bool = False


class Case:
    """One row of a table: an operator and its inputs."""

    def __init__(self, op: Operator, *inputs: Given | None, atol: float = 0.0, rtol: float = 2e-6) -> None:
        self.op, self.inputs, self.atol, self.rtol = op, inputs, atol, rtol

    @property
    def arrays(self) -> list[np.ndarray | None]:
        return [given and given.array for given in self.inputs]

    def tensors(self) -> list[Tensor | None]:
        return [given and Tensor(f"input{i}", DType.of(given.array.dtype), given.array.shape,
                                 data=given.array if given.constant else None, is_variable=given.variable)
                for i, given in enumerate(self.inputs)]


def f32(*shape: int, low: float = -2, high: float = 2, seed: int = 0) -> Given:
    return Given(np.random.default_rng(seed + len(shape)).uniform(low, high, shape).astype(np.float32))


def i32(*shape: int, low: int = -20, high: int = 20, dtype: Any = np.int32, seed: int = 0) -> Given:
    return Given(np.random.default_rng(seed).integers(low, high, shape).astype(dtype))


def boolean(*shape: int, seed: int = 0) -> Given:
    return Given(np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_))


def fixed(given: Given) -> Given:
    return Given(given.array, True)


def ints(*values: Any, dtype: Any = np.int32) -> Given:
    """A constant vector, or a constant of the shape of one nested list."""
    nested = len(values) == 1 and isinstance(values[0], list)
    return Given(np.array(values[0] if nested else values, dtype), True)


def scalar(value: Any, dtype: Any = np.int32) -> Given:
    return Given(np.array(value, dtype), True)


def model_of(case: Case) -> Model:
    graph = Graph()
    tensors = case.tensors()
    graph.inputs = [t for t in tensors if t is not None and not t.is_constant and not t.is_variable]
    graph.set_outputs(graph.add(case.op, tensors).outputs)
    return Model(graphs=[graph])


def run(model: Model, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Run a model that is known to be legal in LiteRT, inputs and outputs in the graph's order."""
    return run_bytes(bytes(to_bytes(model)), arrays)


def run_bytes(data: bytes, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Run in the reference kernels, or in the plain ones where there is no reference kernel (CEIL, ROUND, ELU)."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    try:
        interpreter = Interpreter(model_content=data, num_threads=1,
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    except ValueError as error:
        if "Didn't find op" not in str(error):
            raise
        interpreter = Interpreter(model_content=data, num_threads=1,
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def run_in_children(jobs: list[tuple[bytes, list[np.ndarray]]]) -> list[list[np.ndarray] | str]:
    """Run models that LiteRT may refuse or die of, each in a process of its own.

    Gives the outputs, or "refused: message", or "died: signal".
    """
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("ops_child.py"))], input=pickle.dumps(jobs),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=300)
    outcomes: list[list[np.ndarray] | str] = pickle.loads(done.stdout)
    return outcomes


def quantization(array: np.ndarray, widen: float = 1.0, zero_point: int | None = None) -> Quantization:
    """The asymmetric int8 quantization of the values' range."""
    low, high = min(0.0, float(array.min())) * widen, max(0.0, float(array.max())) * widen
    scale = max(high - low, 1e-6) / 255
    return Quantization.per_tensor(scale, round(-128 - low / scale) if zero_point is None else zero_point)


def symmetric(array: np.ndarray, axis: int | None) -> Quantization:
    """The symmetric int8 quantization of weights."""
    if axis is None:
        return Quantization.per_tensor(float(np.abs(array).max()) / 127)
    scale = np.abs(array).max(axis=tuple(i for i in range(array.ndim) if i != axis)) / 127
    return Quantization.per_axis(scale.astype(np.float32), axis)


class Int8Case:
    """A float case quantized as its operator's rule says, with the real values that its steps stand for."""

    def __init__(self, case: Case, *, output: Quantization | None = None, second: Quantization | None = None,
                 per_axis: bool = True) -> None:
        rule = case.op.int8
        assert rule is not None
        shared = set(range(len(case.inputs))) if rule.variadic else set(rule.same_scale)
        shared = {i for i in shared if i < len(case.inputs) and is_float(case.inputs[i])}
        joint = quantization(np.concatenate([case.inputs[i].array.reshape(-1) for i in shared])) if shared else None
        self.tensors: list[Tensor | None] = []
        self.arrays: list[np.ndarray] = []
        real: list[np.ndarray | None] = []
        first: Quantization | None = None
        for i, (given, tensor) in enumerate(zip(case.inputs, case.tensors(), strict=True)):
            if given is None or tensor is None or not is_float(given):
                self.tensors.append(tensor)
                real.append(given and given.array)
                if tensor is not None and not tensor.is_constant:
                    self.arrays.append(given.array)
                continue
            dtype = np.int8
            if i == rule.weight:
                used = symmetric(given.array, rule.weight_axis if per_axis else None)
                weight = used
            elif i == rule.bias:
                scale = first.scale * weight.scale
                used = Quantization.per_axis(scale, 0) if len(scale) > 1 else Quantization.per_tensor(scale[0])
                dtype = np.int32
            else:
                used = joint if i in shared else quantization(given.array)
                if first is not None and second is not None:
                    used = second
                first = first or used
            steps = used.quantize(given.array, dtype)
            tensor.dtype, tensor.quantization = DType.of(dtype), used
            if tensor.is_constant:
                tensor.data = steps
            else:
                self.arrays.append(steps)
            self.tensors.append(tensor)
            real.append(used.dequantize(steps))
        self.expected = case.op.evaluate(real)
        self.graph = Graph()
        self.graph.inputs = [t for t in self.tensors if t is not None and not t.is_constant]
        node = self.graph.add(case.op, self.tensors)
        for tensor, values in zip(node.outputs, self.expected, strict=True):
            if tensor.dtype is DType.INT8:
                own = Quantization.per_tensor(*rule.output) if rule.output else joint
                tensor.quantization = output or own or quantization(values)
        self.graph.set_outputs(node.outputs)
        self.node = node

    def job(self) -> tuple[bytes, list[np.ndarray]]:
        return bytes(to_bytes(Model(graphs=[self.graph]))), self.arrays

    def error(self, answers: list[np.ndarray]) -> float:
        """The largest distance from the real result, in steps of the output."""
        worst = 0.0
        for tensor, wanted, answer in zip(self.node.outputs, self.expected, answers, strict=True):
            if tensor.quantization is not None and tensor.dtype is DType.INT8:
                steps = wanted / tensor.quantization.scale[0] + tensor.quantization.zero_point[0]
                worst = max(worst, float(np.abs(np.clip(steps, -128, 127) - answer).max(initial=0)))
            else:
                worst = max(worst, float(np.abs(wanted.astype(np.float64) - answer).max(initial=0)))
        return worst


def is_float(given: Given | None) -> bool:
    return given is not None and given.array.dtype == np.float32
