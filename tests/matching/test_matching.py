"""Which node is which: blocks that are all alike, names that lie, constants in another layout or type, sources."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Origin, Source, Tensor
from vitrify.matching import Group, SourceEntry, map_sources, match
from vitrify.matching.digests import digest

SHAPE = (1, 4, 4, 8)


def chain(*kinds: type[Operator], names: Callable[[int], str] = lambda n: "") -> Graph:
    graph = Graph()
    last = Tensor("x", DType.FLOAT32, SHAPE)
    graph.inputs = [last]
    for number, kind in enumerate(kinds):
        name = names(number)
        origin = Origin.of(name, kind.name) if name else Origin()
        last = graph.add(kind(), [last], name=name, output_names=[name or f"t{number}"], origin=origin).output
    graph.set_outputs([last])
    return graph


def places(left: Graph, right: Graph) -> list[tuple[int, int]]:
    """The pairs, as positions."""
    return [(g.left[0].place, g.right[0].place) for g in match(left, right).groups if g.is_pair]


BLOCK = (ops.Relu, ops.Logistic, ops.Neg)


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_blocks_that_are_alike_are_matched_in_order(count: int) -> None:
    assert places(chain(*BLOCK * count), chain(*BLOCK * count)) == [(n, n) for n in range(3 * count)]


@pytest.mark.parametrize("gone", [0, 2, 5])
def test_of_blocks_that_are_alike_as_many_are_matched_as_there_are(gone: int) -> None:
    found = places(chain(*BLOCK * 6), chain(*BLOCK * (6 - gone)))
    assert [b for _, b in found] == list(range(3 * (6 - gone)))
    assert [a for a, _ in found] == sorted(a for a, _ in found)


def test_names_that_stand_for_other_operators_count_for_nothing() -> None:
    kinds = [ops.Relu, ops.Neg, ops.Logistic, ops.Abs, ops.Tanh, ops.Exp, ops.Floor, ops.Ceil]
    right = chain(*kinds[1:], names=lambda n: f"node_{n}")
    found = places(chain(*kinds, names=lambda n: f"node_{n}"), right)
    assert found == [(n + 1, n) for n in range(7)]


def test_names_that_are_words_count_where_order_does_not() -> None:
    left, right = Graph(), Graph()
    for graph, order in ((left, "abc"), (right, "cab")):
        x = Tensor("x", DType.FLOAT32, SHAPE)
        graph.inputs = [x]
        made = {name: graph.add(ops.Relu(), [x], name=name, output_names=[name]).output for name in order}
        graph.set_outputs(made[name] for name in "abc")
    assert sorted(places(left, right)) == [(0, 1), (1, 2), (2, 0)]


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("other", "is_same"), [
    (lambda a: a.transpose(3, 1, 2, 0), True), (lambda a: a.astype(np.float16), True),
    (lambda a: a.reshape(-1), True), (lambda a: -a, False), (lambda a: a * np.float32(1.01), False),
    (lambda a: np.concatenate([a.reshape(-1)[1:], [1]]).astype(np.float32), False),
], ids=["transposed", "float16", "flat", "negative", "scaled", "one value"])
def test_a_digest_tells_values_and_not_their_order(other: Callable[[np.ndarray], np.ndarray], is_same: bool) -> None:
    data = values(8, 3, 3, 4)
    changed = other(data)
    one, two = (Tensor("w", DType.of(a.dtype), a.shape, data=a) for a in (data, changed))
    assert (digest(one) == digest(two)) == is_same


@pytest.mark.parametrize("data", [np.zeros(100, np.float32), np.arange(8), np.full((3, 9), 2)], ids=[
    "zeros", "few", "one value"])
def test_constants_that_tell_nothing(data: np.ndarray) -> None:
    assert digest(Tensor("c", DType.of(data.dtype), data.shape, data=data)) is None


def carrying(graph: Graph, *sources: str) -> Node:
    read = graph.outputs[0] if graph.outputs else graph.inputs[0]
    origin = Origin(tuple(Source(name, "Op") for name in sources))
    node = graph.add(ops.Relu(), [read], origin=origin)
    graph.set_outputs([node.output])
    return node


def test_every_source_is_mapped() -> None:
    graph = Graph()
    graph.inputs = [Tensor("x", DType.FLOAT32, SHAPE)]
    conv, one, two = carrying(graph, "conv", "norm"), carrying(graph, "gelu"), carrying(graph, "gelu")
    last = carrying(graph, "end")
    entries = [SourceEntry(name, "Op", inputs, (name,)) for name, inputs in (
        ("shape", ("x",)), ("half", ("shape",)), ("conv", ("x", "half")), ("norm", ("conv",)), ("gelu", ("norm",)),
        ("aside", ("gelu",)), ("end", ("gelu",)))]
    entries.append(SourceEntry("last", "Unsqueeze", ("end",), ("last",)))
    found = {m.source.name: (m.how, m.nodes) for m in map_sources(entries, graph)}
    assert found == {"shape": ("folded", (conv,)), "half": ("folded", (conv,)), "conv": ("fused", (conv,)),
                     "norm": ("fused", (conv,)), "gelu": ("split", (one, two)), "aside": ("unused", ()),
                     "end": ("kept", (last,)), "last": ("folded", (last,))}


MANY_READERS = """
from test_matching import hub
print([(g.left[0].place, g.right[0].place) for g in hub()])
"""


def hub() -> list[Group]:
    """Groups of two graphs in which a thousand equal nodes read one tensor."""
    graphs = []
    for _ in range(2):
        graph = Graph()
        x = Tensor("x", DType.FLOAT32, SHAPE)
        graph.inputs = [x]
        first = graph.add(ops.Neg(), [x]).output
        made = [graph.add(ops.Relu() if n % 3 else ops.Abs(), [first]).output for n in range(1000)]
        graph.set_outputs([graph.add(ops.Concatenation(axis=3), made).output])
        graphs.append(graph)
    return match(*graphs).groups


def test_the_answer_is_the_same_in_every_process() -> None:
    said = {subprocess.run([sys.executable, "-c", MANY_READERS], capture_output=True, text=True, check=True,
                           cwd=__file__.rpartition("/")[0], env={"PYTHONHASHSEED": seed}).stdout for seed in "12"}
    assert len(said) == 1
    assert said.pop().strip() == str([(n, n) for n in range(1002)])
