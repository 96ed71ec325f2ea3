"""What was made without an origin takes that of its maker, or of its readers."""

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Origin, Tensor
from vitrify.ir.inheriting import inherit_origins
from vitrify.ir.origin import Source


def test_origins_are_inherited() -> None:
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (2, 3), origin=Origin.of("x"))
    graph.inputs.append(x)
    shared = Tensor("c", DType.FLOAT32, (), data=np.array(2.0, np.float32))
    first = graph.add(ops.Mul(), [x, shared], name="a", origin=Origin.of("a", "Mul")).output
    first.origin = Origin()
    made = graph.add(ops.Add(), [first, shared], name="b", origin=Origin.of("b", "Add").by("some-pass"))
    made.output.origin = Origin.of("y")
    last = graph.add(ops.Relu(), [made.output], name="r")
    graph.set_outputs([last.output])
    inherit_origins(graph)
    assert first.origin == Origin.of("a", "Mul")
    assert shared.origin == Origin((Source("a", "Mul"), Source("b", "Add")), ("some-pass",))
    assert made.output.origin == Origin.of("y"), "it had one"
    assert last.origin == Origin.of("y")
    assert last.output.origin == Origin.of("y")
