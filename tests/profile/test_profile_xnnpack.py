"""Operators of XNNPACK find the nodes that they were made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitrify import ops, tflite
from vitrify.core.isolation import Worker
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.profile.host import _columns
from vitrify.profile.xnnpack import align, stretches

CONV, DENSE, TABLE = "Convolution (NHWC, QC8) IGEMM", "Fully Connected (NC, QS8, QC8W) GEMM", "Invalid Unary Op"
ADD, COPY, TURN, SHAPE = "Add (ND)", "Copy (NC, X8)", "Transpose (ND, X8)", "Static Reshape (NC)"


def nodes(*operators: type[Operator]) -> list[Node]:
    graph = Graph("main")
    x = Tensor("x", DType.FLOAT32, (1,))
    found = []
    for number, kind in enumerate(operators):
        y = Tensor(f"t{number}", DType.FLOAT32, (1,))
        found.append(graph.add(kind(), [x], [y]))
        x = y
    return found


CASES = {
    "one each": ((ops.Conv2D, ops.Add, ops.Conv2D), (CONV, ADD, DENSE), [0, 1, 2]),
    "a padding went into the convolution": ((ops.Pad, ops.Conv2D, ops.Add), (CONV, ADD), [1, 2]),
    "x * sigmoid(x) is one table": ((ops.Conv2D, ops.Logistic, ops.Mul, ops.Conv2D), (CONV, TABLE, CONV), [0, 1, 3]),
    "a shape beside stays with the node before": ((ops.Mean, ops.FullyConnected), ("Mean (ND) Reduce", SHAPE, DENSE),
                                                  [0, 0, 1]),
    "a reshape vanished": ((ops.Conv2D, ops.Reshape, ops.Add), (CONV, ADD), [0, 2]),
    "a movement stays with its node": ((ops.Transpose, ops.Conv2D), (TURN, CONV), [0, 1]),
    "nothing ran": ((ops.Reshape,), (), []),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_find_their_nodes(name: str) -> None:
    kinds, names, owners = CASES[name]
    got = align(nodes(*kinds), names)
    assert got.owners == owners
    assert got.sure == 1


def test_a_name_that_fits_nothing_is_unsure() -> None:
    got = align(nodes(ops.Conv2D, ops.Add), (CONV, "Softmax (NC, F32)"))
    assert got.sure == 0.5


ZOO = Path(__file__).resolve().parents[2] / ".cache" / "zoo" / "int8"


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize("name", ["yolov8n", "efficientdet_lite0", "mobilenet_v3_small", "deit_tiny", "minilm",
                                  "hrnet_w18", "unet"])
def test_real_stretches_and_names_fit(name: str) -> None:
    import numpy as np

    path = ZOO / f"{name}.int8.tflite"
    if not path.exists():
        pytest.skip("not in .cache/zoo/int8; `make zoo-int8` makes it")
    graph = tflite.read(path).main
    values = {t.name: np.zeros(t.shape, t.dtype.numpy) for t in graph.inputs}
    with Worker("LiteRT") as worker:
        recorded = worker.call("vitrify.runtimes.litert.native:record", str(path), "xnnpack", 1, values, 1, 1, 30.0)
    own, inside = _columns(recorded.events)
    parts = stretches(graph, [index not in own for index in range(len(graph))])
    assert len(parts) == len(inside)
    everything = list(graph)
    for part, columns in zip(parts, inside, strict=True):
        assert align([everything[i] for i in part], [recorded.events[c].tag for c in columns]).sure == 1
