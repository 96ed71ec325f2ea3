"""Models of one operator, and how the runtime answers to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.ir import DType, Graph, Model, Operator, Tensor
from vitrify.tflite import to_bytes


@dataclass
class Given:
    """One input of a case."""

    array: np.ndarray
    constant: bool = False


class Case:
    """One row of a table: an operator and its inputs."""

    def __init__(self, op: Operator, *inputs: Given | None, atol: float = 0.0, rtol: float = 2e-6) -> None:
        self.op, self.inputs, self.atol, self.rtol = op, inputs, atol, rtol

    @property
    def arrays(self) -> list[np.ndarray | None]:
        return [given and given.array for given in self.inputs]

    def tensors(self) -> list[Tensor | None]:
        return [given and Tensor(f"input{i}", DType.of(given.array.dtype), given.array.shape,
                                 data=given.array if given.constant else None) for i, given in enumerate(self.inputs)]


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
    graph.inputs = [t for t in tensors if t is not None and not t.is_constant]
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
