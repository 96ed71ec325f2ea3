"""Grouping placed nodes: as few partitions as the order allows, every crossing tensor counted once on each side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.targets.partition import partition
from vitrify.targets.placement import Place

LETTERS: dict[str, Place] = {"n": "npu", "c": "cpu", "f": "folded"}


class Placed:
    """A graph of additions with a side for each; ``n1(x)`` would be ``node("n1", x)``: the first letter is the side."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.x = Tensor("x", DType.INT8, (10,))
        self.graph.inputs = [self.x]
        self.places: dict[Node, Place] = {}

    def node(self, name: str, *inputs: Tensor) -> Tensor:
        made = Tensor(name, DType.INT8, (10,))
        self.places[self.graph.add(ops.AddN(), inputs, [made], name=name)] = LETTERS[name[0]]
        return made

    def parts(self, *outputs: Tensor, groups: dict[str, int] | None = None) -> list[str]:
        self.graph.set_outputs(outputs)
        numbers = {node: (groups or {})[node.name] for node in self.graph if node.name in (groups or {})}
        self.found = partition(self.graph, self.places, numbers)
        return [" ".join(part.nodes) for part in self.found]


def chain(letters: Sequence[str]) -> list[str]:
    placed = Placed()
    x = placed.x
    for index, letter in enumerate(letters):
        x = placed.node(f"{letter}{index}", x)
    return placed.parts(x)


CHAINS = {
    "nnn": ["n0 n1 n2"],
    "ncn": ["n0", "c1", "n2"],
    "cnc": ["c0", "n1", "c2"],
    "nfn": ["n0 f1 n2"],
    "nfc": ["n0 f1", "c2"],
    "cfn": ["c0", "f1 n2"],
    "cfc": ["c0 f1 c2"],
    "cffn": ["c0", "f1 f2 n3"],
    "fnf": ["f0 n1 f2"],
    "ffn": ["f0 f1 n2"],
    "nff": ["n0 f1 f2"],
    "fff": [],
    "": [],
}


@pytest.mark.parametrize("letters", CHAINS)
def test_chains(letters: str) -> None:
    assert chain(letters) == CHAINS[letters]


def test_parallel_branches_share_partitions() -> None:
    placed = Placed()
    stem = placed.node("n0", placed.x)
    ends = [placed.node(f"n{i}b", placed.node(f"c{i}a", stem)) for i in (1, 2, 3)]
    assert placed.parts(placed.node("n9", *ends)) == ["n0", "c1a c2a c3a", "n1b n2b n3b n9"]
    before, between, after = placed.found
    assert [crossing.tensor for crossing in before.outputs] == ["n0"]
    assert (between.bytes_in, between.bytes_out) == (10, 30)
    assert [crossing.tensor for crossing in after.inputs] == ["c1a", "c2a", "c3a"]
    assert [crossing.tensor for crossing in after.outputs] == ["n9"]


def test_a_folded_node_does_not_run_before_what_it_reads() -> None:
    placed = Placed()
    stem = placed.node("n0", placed.x)
    joined = placed.node("f2", stem, placed.node("c1", stem))
    assert placed.parts(joined) == ["n0", "c1 f2"]
    placed = Placed()
    stem = placed.node("n0", placed.x)
    joined = placed.node("f2", stem, placed.node("c1", stem))
    assert placed.parts(placed.node("n3", joined)) == ["n0", "c1", "f2 n3"]


def test_a_branch_past_the_island_waits_for_it() -> None:
    placed = Placed()
    stem = placed.node("n0", placed.x)
    side = placed.node("n1", stem)
    island = placed.node("c2", stem)
    assert placed.parts(placed.node("n3", side, island)) == ["n0 n1", "c2", "n3"]
    assert placed.found[2].bytes_in == 20


def test_the_compilers_groups_stay_apart() -> None:
    placed = Placed()
    x = placed.node("n1", placed.node("n0", placed.x))
    assert placed.parts(x, groups={"n0": 1, "n1": 2}) == ["n0", "n1"]


def test_constants_do_not_cross() -> None:
    placed = Placed()
    weights = Tensor("w", DType.INT8, (10,))
    weights.data = np.zeros(10, np.int8)
    placed.parts(placed.node("n0", placed.x, weights))
    assert placed.found[0].bytes_in == 10


def test_an_output_that_is_read_as_well_leaves_once() -> None:
    placed = Placed()
    x = placed.node("n0", placed.x)
    placed.parts(x, placed.node("c1", x))
    assert [c.tensor for c in placed.found[0].outputs] == ["n0"]
