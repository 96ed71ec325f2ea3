"""Places of a grid in integers, and constants that integers should not compute with."""

from collections.abc import Callable

import numpy as np
import pytest

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Node, Tensor
from vitrify.passes import to_integer_forms

Make = Callable[[Graph, Tensor], Tensor]


def number(value: object, dtype: type = np.float32) -> Tensor:
    data = np.array(value, dtype)
    return Tensor("c", DType.of(data.dtype), data.shape, data=data)


def whole(graph: Graph, x: Tensor) -> Tensor:
    return graph.add(ops.Cast(in_data_type=DType.FLOAT32.value, out_data_type=DType.INT32.value), [x]).output


def floor(graph: Graph, x: Tensor) -> Tensor:
    return graph.add(ops.Floor(), [x]).output


def limited(graph: Graph, x: Tensor, activation: ops.Activation) -> Tensor:
    more = graph.add(ops.Add(fused_activation_function=activation), [floor(graph, x), number([1, 2])]).output
    return graph.add(ops.Minimum(), [more, number(5)]).output


CASES: dict[str, tuple[Make, list[str]]] = {
    "limits": (lambda g, x: whole(g, limited(g, x, ops.Activation.NONE)), ["FLOOR", "CAST", "ADD", "MINIMUM"]),
    "limits_from_0": (lambda g, x: whole(g, limited(g, x, ops.Activation.RELU)),
                      ["FLOOR", "CAST", "ADD", "MAXIMUM", "MINIMUM"]),
    "halves": (lambda g, x: whole(g, g.add(ops.Add(), [floor(g, x), number(0.5)]).output), ["FLOOR", "ADD", "CAST"]),
    "not_whole_before": (lambda g, x: whole(g, g.add(ops.Add(), [x, number(1)]).output), ["ADD", "CAST"]),
    "fraction": (lambda g, x: g.add(ops.Sub(), [x, floor(g, x)]).output, ["FLOOR_MOD"]),
    "divisors": (lambda g, x: g.add(ops.Div(), [x, number([[[2]], [[4]]])]).output, ["MUL"]),
    "divisor_zero": (lambda g, x: g.add(ops.Div(), [x, number([[[2]], [[0]]])]).output, ["DIV"]),
    "certain": (lambda g, x: g.add(ops.Logistic(), [g.add(ops.Gather(axis=2), [g.add(ops.Add(), [
        x, number([0.5, 3e38])]).output, number([1, 0], np.int32)]).output]).output, ["ADD", "GATHER", "LOGISTIC"]),
    "positions": (lambda g, x: g.add(ops.Add(), [x, g.add(ops.Sin(), [g.add(ops.Mul(), [
        number(np.ones((300, 1))), number(np.arange(400).reshape(200, 1, 2))]).output]).output]).output, ["ADD"]),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_numbers_and_constants(name: str) -> None:
    make, expected = CASES[name]
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (1, 1, 2))
    graph.inputs.append(x)
    graph.set_outputs([make(graph, x)])
    values = np.random.default_rng(0).uniform(-4, 8, (64, 1, 1, 2)).astype(np.float32)
    before = [compute(graph, v) for v in values]
    to_integer_forms(Model([graph]))
    assert [node.op.kind for node in graph] == expected
    for value, wanted in zip(values, before, strict=True):
        np.testing.assert_allclose(compute(graph, value), wanted, rtol=1e-6, atol=1e-6)


def compute(graph: Graph, value: np.ndarray) -> np.ndarray:
    """Run a graph in the numpy reference."""
    found = {graph.inputs[0]: value}
    for node in graph:
        with np.errstate(divide="ignore"):
            results = node.op.evaluate([of(found, node, i) for i in range(len(node.inputs))])
        found |= dict(zip(node.outputs, results, strict=True))
    return found[graph.outputs[0]]


def of(found: dict[Tensor, np.ndarray], node: Node, index: int) -> np.ndarray:
    tensor = node.input(index)
    return tensor.data if tensor.data is not None else found[tensor]


def test_what_is_certain_to_a_logistic_is_bounded() -> None:
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (1, 1, 2))
    graph.inputs.append(x)
    graph.set_outputs([CASES["certain"][0](graph, x)])
    to_integer_forms(Model([graph]))
    (added,) = graph.nodes_of(ops.Add)
    assert added.input(1).data.tolist() == [0.5, 64.0]
