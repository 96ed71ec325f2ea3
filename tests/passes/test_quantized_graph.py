"""Graphs that are int8 already: the same bits in LiteRT, the scales kept, nothing folded that int8 cannot fold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from graph_maker import Maker, kinds

from vitrify import ops
from vitrify.ir import DType, Model, Operator, Quantization, Tensor
from vitrify.passes import optimize
from vitrify.tflite import write


class Int8Maker(Maker):
    """Builds int8 graphs; every tensor has a scale."""

    def input(self, *shape: int, name: str = "x") -> Tensor:
        return quantized(super().input(*shape, name=name), 0.05, 3)

    def op(self, op: Operator, *inputs: Tensor | None, name: str = "", scale: float = 0.05, zero: int = 3) -> Tensor:
        return quantized(super().op(op, *inputs, name=name), scale, zero)

    def operand(self, *shape: int) -> Tensor:
        return quantized(self.const(self.random.integers(-128, 128, shape), np.int8), 0.02, -5)


def quantized(tensor: Tensor, scale: float, zero: int) -> Tensor:
    tensor.dtype, tensor.quantization = DType.INT8, Quantization.per_tensor(scale, zero)
    return tensor


def run(model: Model, path: Path, x: np.ndarray) -> np.ndarray:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    write(model, path)
    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ascontiguousarray(x))
    interpreter.invoke()
    result: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def build() -> Model:
    m = Int8Maker()
    x = m.transpose(m.input(1, 4, 6, 3), 0, 3, 1, 2)
    x = m.op(ops.Add(), x, m.operand(3, 1, 1), scale=0.07, zero=1)
    x = m.op(ops.Mul(), x, m.operand(1, 3, 4, 6), scale=0.03, zero=0)
    x = m.op(ops.Pad(), x, m.const([[0, 0], [1, 0], [0, 2], [1, 1]], np.int32), scale=0.03, zero=0)
    x = m.op(ops.Relu(), x, scale=0.02, zero=-128)
    x = m.op(ops.Concatenation(axis=1), x, x, scale=0.02, zero=-128)
    x = m.transpose(x, 0, 2, 3, 1)
    x.quantization = Quantization.per_tensor(0.02, -128)
    return m.model(m.op(ops.Mean(keep_dims=True), x, m.ints(1, 2), scale=0.01, zero=-128))


def test_same_bits_without_transposes(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 6, 3)).astype(np.int8)
    wanted = run(build(), tmp_path / "before.tflite", x)
    model = build()
    optimize(model)
    assert kinds(model) == ["ADD", "MUL", "PAD", "RELU", "CONCATENATION", "MEAN"]
    assert all(t.quantization is not None for node in model.main for t in node.outputs)
    np.testing.assert_array_equal(run(model, tmp_path / "after.tflite", x), wanted)
    assert len(np.unique(wanted)) == 3
