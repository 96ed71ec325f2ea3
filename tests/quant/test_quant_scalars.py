"""Sums and products with one constant keep the integers of their input."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from quant_graphs import Array, Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import Model, Tensor
from vitrify.quant import quantize
from vitrify.tflite import to_bytes

Make = Callable[[Net, Tensor], Tensor]
PADS = [[0, 0], [1, 1], [1, 1], [0, 0]]


def inner(model: Model, names: tuple[str, str], sample: dict[str, Array]) -> list[Array]:
    """The integers of two tensors in LiteRT's reference kernels."""
    interpreter = Interpreter(model_content=bytes(to_bytes(model)), experimental_preserve_all_tensors=True,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    scale, zero_point = details["quantization"]
    steps = np.clip(np.round(sample["x"] / scale) + zero_point, -128, 127).astype(np.int8)
    interpreter.set_tensor(details["index"], steps)
    interpreter.invoke()
    index = {d["name"]: d["index"] for d in interpreter.get_tensor_details()}
    return [interpreter.get_tensor(index[name]) for name in names]


CASES: dict[str, tuple[Make, int]] = {
    "add": (lambda n, x: n.add(ops.Add(), x, n.constant(np.float32(0.7)), name="scalar"), 1),
    "add_less_than_a_step": (lambda n, x: n.add(ops.Add(), x, n.constant(np.float32(1e-4)), name="scalar"), 0),
    "add_negative": (lambda n, x: n.add(ops.Add(), n.constant(np.float32(-0.3)), x, name="scalar"), -1),
    "sub": (lambda n, x: n.add(ops.Sub(), x, n.constant(np.float32(0.4)), name="scalar"), -1),
    "mul": (lambda n, x: n.add(ops.Mul(), x, n.constant(np.float32(0.37)), name="scalar"), 0),
    "mul_up": (lambda n, x: n.add(ops.Mul(), n.constant(np.float32(5.3)), x, name="scalar"), 0),
}


@pytest.mark.parametrize("padded", [False, True], ids=["bare", "padded"])
@pytest.mark.parametrize("name", CASES)
def test_the_integers_stay(name: str, padded: bool, tmp_path: Path) -> None:
    make, direction = CASES[name]
    net = Net(1, 8, 8, 3)
    before = net.add(ops.HardSwish(), net.conv(net.x, 6, gain=5))
    after = make(net, before)
    read = net.add(ops.Pad(), after, net.constant(PADS)) if padded else after
    model = net.model(net.conv(read, 4, padding=ops.Padding.VALID))
    sample = noise(model)[0]
    made = quantize(model, statistics_of(model, tmp_path)).model
    node = next(n for n in made.main if n.name == "scalar")
    data = next(t for t in node.inputs if t is not None and not t.is_constant)
    first, second = inner(made, (data.name, node.output.name), sample)
    assert np.array_equal(first, second)
    assert data.quantization is not None
    assert node.output.quantization is not None
    moved = int(data.quantization.zero_point[0]) - int(node.output.quantization.zero_point[0])
    assert np.sign(moved) == direction
    (wanted,), (found,) = run(model, sample).values(), run(made, sample).values()
    assert sqnr(wanted, found) > 30


def test_a_sum_that_is_given_out_keeps_its_constant(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(net.add(ops.Add(), net.add(ops.HardSwish(), net.conv(net.x, 6)), net.constant(np.float32(0.01))))
    made = quantize(model, statistics_of(model, tmp_path)).model
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample).values(), run(made, sample).values()
    assert sqnr(wanted, found) > 36
