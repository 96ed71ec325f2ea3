"""The places of a graph's nodes: below what they come after, apart from each other, and quickly found."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest

from vitrify.report.page.drawing import MOST_NODES, graph
from vitrify.report.page.layout import GAP, LONGEST, lay_out
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow


def tangled(count: int, seed: int = 0) -> list[list[int]]:
    """Return a graph of blocks with branches and skips."""
    source = random.Random(seed)
    found: list[list[int]] = [[]]
    for number in range(1, count):
        near = number - 1 if source.random() < 0.8 else max(0, number - source.randint(2, 8))
        far = [max(0, number - source.randint(1, 40))] if source.random() < 0.3 else []
        found.append(sorted({near, *far}))
    return found


GRAPHS = {"none": [], "one": [[]], "chain": [[], [0], [1]], "diamond": [[], [0], [0], [1, 2]],
          "two": [[], [], [0], [1]], "late input": [[], [0], [1], [], [2, 3]], "skip": [[], [0], [1], [0, 2]],
          "itself and later": [[0, 1], [5, -1, 0]], "long skip": [[], *([n] for n in range(LONGEST + 5)), [0]],
          "tangled": tangled(400)}


@pytest.mark.parametrize("after", GRAPHS.values(), ids=GRAPHS)
def test_nodes_stand_below_what_they_come_after_and_apart(after: list[list[int]]) -> None:
    found = lay_out(after)
    assert len(found.x) == len(found.layer) == len(after)
    for number, makers in enumerate(after):
        for maker in makers:
            if 0 <= maker < number:
                assert found.layer[maker] < found.layer[number]
    rows: dict[int, list[float]] = {}
    for x, layer in zip(found.x, found.layer, strict=True):
        rows.setdefault(layer, []).append(x)
    for places in rows.values():
        places.sort()
        assert all(other - one > GAP - 1e-9 for one, other in pairwise(places))
    assert min(found.x, default=0.0) == 0.0


def test_bends_pass_every_layer_between() -> None:
    found = lay_out(GRAPHS["skip"])
    assert list(found.bends) == [(0, 3)]
    assert len(found.bends[0, 3]) == 2


def test_a_chain_is_straight() -> None:
    assert set(lay_out([[], *([n] for n in range(50))]).x) == {0.0}


def test_an_input_stands_above_its_first_use() -> None:
    assert lay_out(GRAPHS["late input"]).layer == [0, 1, 2, 2, 3]


def test_ten_thousand_nodes_are_placed_in_seconds() -> None:
    started = time.process_time()
    lay_out(tangled(10_000))
    assert time.process_time() - started < 10


def test_what_nobody_could_look_at_is_not_drawn() -> None:
    rows = [EstimatedRow(index=n, node="", operator="ADD", placement="npu") for n in range(MOST_NODES + 1)]
    assert graph(ProfileResult(operators=rows)) is None
    assert graph(ProfileResult()) is None
