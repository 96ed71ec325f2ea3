"""How long a comparison takes as graphs grow, and whether it grows with them or faster.

    python benchmarks/diff.py [NODES ...]

Each graph is compared with itself, with a copy without names, with one in which blocks, weights and attributes were
changed, and with another network of its size; CPU seconds of matching, and of telling the differences. Blocks are alike
and have no names in all but the first, which is the hardest case: a matcher that tries each with each takes hours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np

from vitrify import ops
from vitrify.core.progress import Silent
from vitrify.ir import DType, Graph, Model, Origin, Tensor
from vitrify.matching import match
from vitrify.pipeline.diffing.diff import compared
from vitrify.pipeline.diffing.sides import read_side
from vitrify.pipeline.options import ConvertOptions

SIZES = (300, 1_000, 3_000, 10_000)
CHANNELS = 16


def network(nodes: int, *, alike: bool, seed: int = 0, kinds: int = 0) -> Model:
    """Blocks of five nodes; ``alike`` blocks share their weights' values, ``kinds`` chooses the gate."""
    random, graph = np.random.default_rng(seed), Graph()
    x = last = Tensor("x", DType.FLOAT32, (1, 8, 8, CHANNELS))
    graph.inputs = [x]
    same = random.normal(size=(CHANNELS, 1, 1, CHANNELS)).astype(np.float32)
    gate = (ops.Logistic, ops.Tanh)[kinds]
    for number in range(nodes // 5):
        values = same if alike else random.normal(size=same.shape).astype(np.float32)
        weights = Tensor(f"w{number}", DType.FLOAT32, values.shape, data=values)

        def add(kind: str, op: ops.Operator, *inputs: Tensor, number: int = number) -> Tensor:
            name = f"/block.{number}/{kind}"
            return graph.add(op, inputs, name=name, output_names=[name], origin=Origin.of(name, op.kind)).output

        made = add("conv", ops.Conv2D(), last, weights)
        made = add("mul", ops.Mul(), made, add("gate", gate(), made))
        last = add("relu", ops.Relu(), add("add", ops.Add(), made, last))
    graph.set_outputs([last])
    return Model([graph])


def nameless(model: Model) -> Model:
    """Take the names away, in place."""
    for number, tensor in enumerate(model.main.tensors()):
        tensor.name, tensor.origin = f"t{number}", Origin()
    for node in model.main:
        node.name, node.origin = "", Origin()
    return model


def edited(model: Model) -> Model:
    """Take every tenth activation away, in place."""
    for number, node in enumerate(model.main.nodes_of(ops.Relu)):
        if number % 10 == 5:
            model.main.replace_uses(node.output, node.input(0))
            model.main.remove(node)
    return model


CASES: dict[str, Callable[[int], tuple[Model, Model]]] = {
    "itself": lambda n: (network(n, alike=False), network(n, alike=False)),
    "without names": lambda n: (network(n, alike=True), nameless(network(n, alike=True))),
    "edited, without names": lambda n: (network(n, alike=True), nameless(edited(network(n, alike=True)))),
    "another network": lambda n: (network(n, alike=False), nameless(network(n, alike=False, seed=1, kinds=1))),
}


def main(sizes: list[int]) -> None:
    """Print a table."""
    print(f"{'case':<24}{'nodes':>8}{'match s':>10}{'tell s':>10}  relations")
    for name, make in CASES.items():
        for nodes in sizes:
            left, right = (read_side(model, ConvertOptions(), Silent()) for model in make(nodes))
            start = process_time()
            matching = match(left.graph, right.graph)
            matched = process_time()
            result = compared(left, right, matching)
            told = process_time()
            print(f"{name:<24}{nodes:>8}{matched - start:>10.2f}{told - matched:>10.2f}  {result.counts}", flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or list(SIZES))
