"""Operators without an integer kernel, written with those that have one: the same values in the numpy reference."""

import numpy as np
import pytest

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Operator, Tensor
from vitrify.ops import Padding
from vitrify.passes import to_integer_forms

CASES: dict[str, tuple[Operator, list[tuple[int, ...]], int | None, list[str]]] = {
    "sum_last": (ops.Cumsum(), [(2, 3, 5)], -1, ["FULLY_CONNECTED"]),
    "sum_exclusive": (ops.Cumsum(exclusive=True), [(2, 5)], 1, ["FULLY_CONNECTED"]),
    "sum_backwards": (ops.Cumsum(reverse=True), [(2, 5)], 1, ["FULLY_CONNECTED"]),
    "sum_both": (ops.Cumsum(exclusive=True, reverse=True), [(2, 5)], 1, ["FULLY_CONNECTED"]),
    "sum_first": (ops.Cumsum(), [(4, 3, 5)], 0, ["TRANSPOSE", "FULLY_CONNECTED", "TRANSPOSE"]),
    "add_n": (ops.AddN(), [(2, 3)] * 4, None, ["ADD", "ADD", "ADD"]),
    "local_response": (ops.LocalResponseNormalization(radius=2, bias=1.0, alpha=0.2, beta=0.7), [(1, 3, 4, 8)], None,
                       ["MUL", "CONV_2D", "POW", "MUL"]),
    "root_of_mean": (ops.L2Pool2D(padding=Padding.VALID, stride_h=1, stride_w=2, filter_height=2, filter_width=3),
                     [(1, 5, 7, 3)], None, ["MUL", "AVERAGE_POOL_2D", "SQRT"]),
    "floor_div": (ops.FloorDiv(), [(2, 9), (2, 9)], None, ["DIV", "FLOOR"]),
    "floor_mod": (ops.FloorMod(), [(2, 9), (2, 9)], None, ["DIV", "FLOOR", "MUL", "SUB"]),
}


@pytest.mark.parametrize("name", CASES)
def test_same_values(name: str) -> None:
    op, shapes, axis, expected = CASES[name]
    graph = Graph()
    inputs = [Tensor(f"x{i}", DType.FLOAT32, shape) for i, shape in enumerate(shapes)]
    graph.inputs = list(inputs)
    axes = [] if axis is None else [Tensor("axis", DType.INT32, (), data=np.array(axis, np.int32))]
    graph.set_outputs([graph.add(op, [*inputs, *axes], name="op").output])
    random = np.random.default_rng(4)
    arrays = [random.uniform(0.5, 4, shape).astype(np.float32) for shape in shapes]
    wanted = compute(graph, arrays)
    to_integer_forms(Model([graph]))
    assert [node.op.kind for node in graph] == expected
    np.testing.assert_allclose(compute(graph, arrays), wanted, rtol=2e-6, atol=1e-6)


def compute(graph: Graph, arrays: list[np.ndarray]) -> np.ndarray:
    """Run a graph in the numpy reference."""
    found = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph:
        given = [None if t is None else t.data if t.data is not None else found[t] for t in node.inputs]
        found |= dict(zip(node.outputs, node.op.evaluate(given), strict=True))
    return found[graph.outputs[0]]
