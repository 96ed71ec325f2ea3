"""A small detection transformer, as exporters write it: shape arithmetic folds, and only the tail picks by index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_makers import by_litert, by_runtime, model, saved

from vitrify.importers import load
from vitrify.ir import DType, Graph, Model, Node, Tensor
from vitrify.passes import optimize

RNG = np.random.default_rng(5)
WIDTH, HEADS, CLASSES, BEST = 64, 4, 9, 10
FEEDS = {"x": RNG.standard_normal((1, WIDTH, 8, 8)).astype(np.float32)}


class Writer:
    """Nodes and constants under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, kind: str, *inputs: str | np.ndarray, outputs: int = 1, **attributes: Any) -> str:
        names = [self.constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        made = [f"{kind.lower()}{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, made, f"{kind}_{len(self.nodes)}", **attributes))
        return made[0]

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def weights(self, *shape: int) -> np.ndarray:
        return (RNG.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def normalized(w: Writer, x: str) -> str:
    """LayerNorm written out."""
    centred = w.add("Sub", x, w.add("ReduceMean", x, axes=[-1]))
    variance = w.add("ReduceMean", w.add("Pow", centred, number(2)), axes=[-1])
    scaled = w.add("Div", centred, w.add("Sqrt", w.add("Add", variance, number(1e-5))))
    return w.add("Add", w.add("Mul", scaled, w.weights(WIDTH)), w.weights(WIDTH))


def attended(w: Writer, x: str) -> str:
    """Softmax attention of 4 heads of 16."""

    def heads(*perm: int) -> str:
        split = w.add("Reshape", w.add("MatMul", x, w.weights(WIDTH, WIDTH)), i64(1, -1, HEADS, WIDTH // HEADS))
        return w.add("Transpose", split, perm=perm)

    scores = w.add("MatMul", heads(0, 2, 1, 3), heads(0, 2, 3, 1))
    shares = w.add("Softmax", w.add("Div", scores, number(4)), axis=-1)
    mixed = w.add("Transpose", w.add("MatMul", shares, heads(0, 2, 1, 3)), perm=[0, 2, 1, 3])
    flat = w.add("Reshape", mixed, i64(1, -1, WIDTH))
    return w.add("Add", x, w.add("MatMul", flat, w.weights(WIDTH, WIDTH)))


def detector() -> onnx.ModelProto:
    """Tokens of a feature map, one layer, the best boxes, and the features where they lie."""
    w = Writer()
    shape = w.add("Shape", "x")
    batch = w.add("Unsqueeze", w.add("Gather", shape, np.array(0)), i64(0))
    rows = w.add("Reshape", "x", w.add("Concat", batch, i64(WIDTH, -1), axis=0))
    tokens = w.add("Transpose", rows, perm=[0, 2, 1])
    count = w.add("Gather", w.add("Shape", tokens), np.array(1))
    index = w.add("Add", w.add("Range", np.array(0), count, np.array(1)), np.array(2))
    tokens = w.add("Add", tokens, w.add("Gather", w.weights(80, WIDTH), index))
    tokens = attended(w, normalized(w, tokens))
    scores = w.add("Sigmoid", w.add("MatMul", tokens, w.weights(WIDTH, CLASSES)))
    boxes = w.add("Sigmoid", w.add("MatMul", tokens, w.weights(WIDTH, 4)))
    best = w.add("TopK", w.add("Flatten", scores, axis=1), i64(BEST), axis=1, outputs=2)
    places = f"{best}_1"
    label = w.add("Mod", places, np.array(CLASSES))
    token = w.add("Tile", w.add("Unsqueeze", w.add("Div", places, np.array(CLASSES)), i64(-1)), i64(1, 1, 4))
    chosen = w.add("GatherElements", boxes, token, axis=1)
    corner = w.add("Slice", chosen, i64(0), i64(2), i64(2))
    grid = w.add("Sub", w.add("Mul", w.add("Unsqueeze", corner, i64(1)), number(2)), number(1))
    features = w.add("GridSample", "x", grid, mode="bilinear")
    return model(w.nodes, FEEDS, w.constants, [best, label, chosen, features], 16)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model]:
    path = saved(detector(), tmp_path_factory.mktemp("detector"))
    imported = load(path)
    optimize(imported, input_layout="nchw", output_layout="nchw")
    return path, imported


def test_detector_equals_onnx_runtime(built: tuple[Path, Model]) -> None:
    path, imported = built
    wanted, got = by_runtime(path, FEEDS), by_litert(imported, FEEDS)
    for name, value in wanted.items():
        assert got[name].shape == value.shape
        np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-4, err_msg=name)


def before(graph: Graph, node: Node) -> set[Node]:
    """Everything that a node depends on, itself included."""
    found, waiting = {node}, [node]
    while waiting:
        for tensor in waiting.pop().inputs:
            made = tensor.producer if isinstance(tensor, Tensor) else None
            if made is not None and made not in found:
                found.add(made)
                waiting.append(made)
    return found


def test_only_the_tail_computes_with_integers(built: tuple[Path, Model]) -> None:
    """Position indices and shapes are gone; what is left of integers comes from TopK or GridSample."""
    graph = built[1].main
    for node in graph.nodes:
        if any(t.dtype in (DType.INT32, DType.INT64) for t in node.outputs):
            sampled = any(source.operator == "GridSample" for source in node.origin.sources)
            assert sampled or any(n.op.kind == "TOPK_V2" for n in before(graph, node)), node.name


def test_detector_has_no_shape_arithmetic(built: tuple[Path, Model]) -> None:
    nodes = built[1].main.nodes
    kinds = [node.op.kind for node in nodes]
    assert not set(kinds) & {"SHAPE", "RANGE", "BROADCAST_TO", "TILE", "SCATTER_ND", "POW", "SQRT"}
    assert not [node.name for node in nodes if node.op.kind == "DIV" and node.output.dtype is DType.FLOAT32]
    assert kinds.count("TOPK_V2") == 1
    assert kinds.count("GATHER") == 2
