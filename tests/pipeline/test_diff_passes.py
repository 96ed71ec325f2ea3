"""A model against itself before each pass: what the pass left alone is told to be the same, what it did is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from diff_models import FILES

from vitrify import importers
from vitrify.core.progress import Silent
from vitrify.ir import Model, Node
from vitrify.matching import map_sources, match
from vitrify.passes import tables
from vitrify.passes.base import Pass, Runner
from vitrify.passes.layout.turning import TurnLayout
from vitrify.pipeline.diffing.diff import compared
from vitrify.pipeline.diffing.sides import read_side
from vitrify.pipeline.options import ConvertOptions
from vitrify.quant.copying import copy_model

ZOO = sorted((Path(__file__).resolve().parents[2] / ".cache" / "zoo").glob("*.onnx"))
ROUNDS = 6
NOTHING_SEEN = {"SharedConstants"}
"""Passes that change how a file stores a graph, not the graph."""

Told = Callable[[str, str], None]


def facts(node: Node) -> tuple[Any, ...]:
    """All that a node is, down to which tensors it reads."""
    tensors = [t for t in (*node.inputs, *node.outputs) if t is not None]
    return node.op, node.inputs, node.outputs, [(t.shape, t.dtype, id(t.data)) for t in tensors]


class Watching(Runner):
    """Runs passes and compares the model before and after each that did something."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.seen = 0
        self.wrong: list[str] = []

    def apply(self, one: Pass) -> int:
        before, nodes = copy_model(self.model), self.model.main.nodes
        was = {node: facts(node) for node in nodes}
        changes = super().apply(one)
        if changes and type(one).__name__ not in NOTHING_SEEN:
            self._compare(before, dict(zip(nodes, before.main.nodes, strict=True)), was, type(one).__name__)
        return changes

    def _compare(self, before: Model, twins: dict[Node, Node], was: dict[Node, Any], name: str) -> None:
        left, right = (read_side(model, ConvertOptions(), Silent()) for model in (before, self.model))
        matching = match(left.graph, right.graph)
        result = compared(left, right, matching)
        rows = {id(group): row for group, row in zip(matching.groups, result.nodes, strict=True)}
        if result.equal:
            self.wrong.append(f"{name}: nothing is told")
        for node, facts_before in was.items():
            if node.graph is not self.model.main or facts(node) != facts_before or node not in matching.right.of:
                continue
            self.seen += 1
            mine, other = matching.left.of[twins[node]], matching.right.of[node]
            group = matching.of[other]
            if matching.of[mine] is not group:
                self.wrong.append(f"{name}: {mine} and {other} are apart")
            elif group.is_pair and rows[id(group)].relation != "same":
                told = [change.text for change in rows[id(group)].changes]
                self.wrong.append(f"{name}: {mine} is told to be {rows[id(group)].relation}: {told}")


def watched(path: Path) -> Watching:
    """Optimize a model as converting it does, and bring it to the forms for integers."""
    runner = Watching(importers.load(path))
    layout = TurnLayout(runner.model, True, True)
    for _ in range(ROUNDS):
        runner.run((*tables.CLEANUP, *tables.PATTERNS))
        if runner.apply(layout.again()):
            continue
        runner.run(tables.FUSION)
        if not runner.run(tables.HEADS):
            break
    runner.run(tables.LEFTOVERS)
    runner.run(tables.INTEGER_FORMS, rounds=1)
    runner.run(tables.FUSION)
    return runner


@pytest.mark.parametrize("name", ["one_exporter.onnx", "other_exporter.onnx"])
def test_each_pass_is_told_and_nothing_else(name: str) -> None:
    runner = watched(FILES / name)
    assert runner.wrong == []
    assert runner.seen > 100


@pytest.mark.slow
@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_each_pass_on_models_of_the_zoo(path: Path) -> None:
    runner = watched(path)
    assert runner.wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_each_node_of_a_source_is_mapped(path: Path) -> None:
    side = read_side(path, ConvertOptions(), Silent())
    found = map_sources(side.sources, side.graph)
    assert [mapped.source for mapped in found] == side.sources
    assert all(mapped.nodes for mapped in found if mapped.how != "unused")
    unused = {mapped.source.name for mapped in found if mapped.how == "unused"}
    given = {output.name for output in side.model.interface.outputs} if side.model.interface else set()
    computed = (mapped.source for mapped in found if mapped.how in ("kept", "split", "fused"))
    left = {name for entry in computed for name in entry.inputs} | given
    assert not [entry.name for entry in side.sources if entry.name in unused and left & set(entry.outputs)]
