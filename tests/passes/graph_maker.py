"""Small graphs for tests of passes, and the check that a rewrite keeps their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vitrify import ops
from vitrify.ir import (
    DType,
    Graph,
    InputBinding,
    Interface,
    Ledger,
    Model,
    Operator,
    Origin,
    OutputBinding,
    Part,
    Tensor,
)
from vitrify.ir.graph import Array
from vitrify.ir.validation import validate
from vitrify.ops.evaluate import evaluate_graph


class Maker:
    """Builds one graph; every node's name is also its origin."""

    def __init__(self, seed: int = 0) -> None:
        self.graph = Graph()
        self.random = np.random.default_rng(seed)
        self.count = 0

    def input(self, *shape: int, name: str = "x") -> Tensor:
        tensor = Tensor(name, DType.FLOAT32, shape, origin=Origin.of(name))
        self.graph.inputs.append(tensor)
        return tensor

    def const(self, values: object, dtype: object = np.float32) -> Tensor:
        data = np.asarray(values, dtype)
        self.count += 1
        return Tensor(f"c{self.count}", DType.of(data.dtype), data.shape, data=data)

    def ints(self, *values: int) -> Tensor:
        return self.const(values, np.int32)

    def weights(self, *shape: int) -> Tensor:
        return self.const(self.random.normal(size=shape))

    def op(self, op: Operator, *inputs: Tensor | None, name: str = "") -> Tensor:
        self.count += 1
        name = name or f"{op.kind.lower()}{self.count}"
        node = self.graph.add(op, inputs, name=name, origin=Origin.of(name, op.kind))
        return node.output

    def outs(self, op: Operator, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        self.count += 1
        name = f"{op.kind.lower()}{self.count}"
        return self.graph.add(op, inputs, name=name, origin=Origin.of(name, op.kind)).outputs

    def transpose(self, x: Tensor, *perm: int) -> Tensor:
        return self.op(ops.Transpose(), x, self.ints(*perm))

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.op(ops.Reshape(new_shape=shape), x, self.ints(*shape))

    def conv(self, x: Tensor, channels: int, kernel: int = 3, stride: int = 1, *, bias: bool = True,
             padding: ops.Padding = ops.Padding.SAME) -> Tensor:
        """A CONV_2D on NHWC."""
        w = self.weights(channels, kernel, kernel, x.shape[3])
        return self.op(ops.Conv2D(stride_h=stride, stride_w=stride, padding=padding), x, w,
                       *([self.weights(channels)] if bias else []))

    def nchw_conv(self, x: Tensor, channels: int, kernel: int = 3, stride: int = 1) -> Tensor:
        """A CONV_2D between TRANSPOSEs, as an importer of NCHW graphs writes it."""
        return self.transpose(self.conv(self.transpose(x, 0, 2, 3, 1), channels, kernel, stride), 0, 3, 1, 2)

    def model(self, *outputs: Tensor) -> Model:
        """Finish: the model with an interface that binds every input and output as it is."""
        self.graph.set_outputs(outputs)
        inputs = tuple(InputBinding(name=t.name, shape=t.shape, dtype="float32", position=i)
                       for i, t in enumerate(self.graph.inputs))
        given = tuple(OutputBinding(name=t.name, shape=t.shape, dtype="float32", parts=(Part(position=i),))
                      for i, t in enumerate(outputs))
        model = Model(graphs=[self.graph], interface=Interface(inputs=inputs, outputs=given, source_format="onnx"))
        validate(model)
        return model


def run(model: Model, arrays: Sequence[Array]) -> list[Array]:
    """Run a model as its source: arrays in the source's layout in and out."""
    assert model.interface is not None
    given: list[Array] = [np.zeros(0)] * len(model.main.inputs)
    for binding, array in zip(model.interface.inputs, arrays, strict=True):
        given[binding.position] = array.transpose(binding.perm) if binding.perm else array
    results = evaluate_graph(model.main, given)
    found = []
    for binding in model.interface.outputs:
        (part,) = binding.parts
        result = results[part.position]
        found.append(result.transpose(part.perm) if part.perm else result)
    return found


def check_kept(model: Model, rewrite: Callable[[Model], object], *, tolerance: float = 1e-5, seed: int = 0) -> None:
    """Rewrite ``model`` and compare what it gives before and after, on random inputs."""
    random = np.random.default_rng(seed)
    assert model.interface is not None
    arrays = [random.normal(size=b.shape).astype(np.float32) for b in model.interface.inputs]
    before = run(model, arrays)
    names = [t.name for t in model.main.inputs], [t.name for t in model.main.outputs]
    rewrite(model)
    validate(model)
    assert ([t.name for t in model.main.inputs], [t.name for t in model.main.outputs]) == names
    for old, new in zip(before, run(model, arrays), strict=True):
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance * _largest(old))


def activation_names(model: Model) -> list[str]:
    """The names of inputs and of what nodes make, in order."""
    return [t.name for t in model.main.inputs] + [t.name for node in model.main for t in node.outputs]


def _largest(values: Array) -> float:
    return max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0)))


def kinds(model: Model) -> list[str]:
    """The operators' names in order."""
    return [node.op.kind for node in model.main]


__all__ = ["Ledger", "Maker", "check_kept", "kinds", "run"]
