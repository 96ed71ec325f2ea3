"""Names and layouts: what is matched, and by which permutation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vitrify import ops
from vitrify.core.errors import UsageError
from vitrify.ir import DType, Graph, Origin, OutputBinding, Part, Source, Tensor
from vitrify.verify.alignment import Layout, choose, downstream, inner_tensors, layouts, match

RNG = np.random.default_rng(1)

SHAPES = {
    "same": ((1, 4), (1, 4), [Layout()]),
    "nhwc": ((1, 3, 8, 9), (1, 8, 9, 3), [Layout((0, 2, 3, 1))]),
    "nchw": ((1, 8, 9, 3), (1, 3, 8, 9), [Layout((0, 3, 1, 2))]),
    "dropped_ones": ((1, 16, 1, 1), (1, 16), [Layout((), (1, 16))]),
    "moved_and_dropped": ((1, 3, 8, 1), (1, 8, 3), [Layout((0, 2, 3, 1), (1, 8, 3))]),
    "nothing_fits": ((1, 6), (2, 3), []),
    "other_size": ((1, 6), (1, 5), []),
}


@pytest.mark.parametrize("name", SHAPES)
def test_layouts(name: str) -> None:
    reference, candidate, expected = SHAPES[name]
    found = layouts(reference, candidate)
    assert found[:1] == expected[:1]
    value = RNG.random(reference)
    assert all(layout.apply(value).shape == candidate for layout in found)


@pytest.mark.parametrize("perm", [(0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2)])
def test_values_decide_where_shapes_do_not(perm: tuple[int, ...]) -> None:
    reference = RNG.standard_normal((1, 4, 4, 4))
    candidate = reference.transpose(perm) + 0.01 * RNG.standard_normal((1, 4, 4, 4))
    layout = choose(reference, candidate)
    assert layout is not None
    np.testing.assert_array_equal(layout.apply(reference), reference.transpose(perm))


def _output(name: str, *shape: int) -> OutputBinding:
    return OutputBinding(name=name, shape=shape, dtype="float32", parts=(Part(position=0),))


MATCHES = {
    "by_name": (["b", "a"], ["a", "b"], {}, {"b": "b", "a": "a"}),
    "by_alias": (["t:0", "t:1"], ["y", "x"], {"t:0": "x", "t:1": "y"}, {"t:0": "x", "t:1": "y"}),
    "by_order": (["a", "b"], ["p", "q"], {}, {"a": "p", "b": "q"}),
}


@pytest.mark.parametrize("name", MATCHES)
def test_match(name: str) -> None:
    left, right, aliases, expected = MATCHES[name]
    assert match([_output(n, 1, 4) for n in left], [_output(n, 1, 4) for n in right], aliases, "outputs") == expected


def test_match_by_shape_when_order_does_not_fit() -> None:
    assert match([_output("a", 1, 4), _output("b", 1, 9)], [_output("p", 1, 9), _output("q", 1, 4)], {}, "outputs") == {
        "a": "q", "b": "p"}


def test_models_that_do_not_belong_together() -> None:
    with pytest.raises(UsageError, match=r"outputs cannot be matched: 'a' \[1,4\] against 'p' \[1,5\]"):
        match([_output("a", 1, 4)], [_output("p", 1, 5)], {}, "outputs")


def _chain() -> tuple[Graph, list[Tensor]]:
    graph = Graph()
    names = ["x", "one", "two", "three"]
    tensors = [Tensor(name, DType.FLOAT32, (1, 4)) for name in names]
    tensors[2].origin = Origin.of("source_two")
    tensors[3].origin = Origin((Source("a"), Source("one")))
    graph.inputs = [tensors[0]]
    for before, after in itertools.pairwise(tensors):
        graph.add(ops.Neg(), [before], [after])
    graph.set_outputs(tensors[3:])
    return graph, tensors


def test_inner_tensors_by_name_then_by_single_origin() -> None:
    graph, _ = _chain()
    found = [(name, tensor.name) for name, tensor in inner_tensors(["one", "source_two", "a"], graph)]
    assert found == [("one", "one"), ("source_two", "two")]


def test_downstream_bits() -> None:
    graph, tensors = _chain()
    reach = downstream(graph, tensors[1:])
    assert [reach[id(t)] for t in tensors] == [0b111, 0b110, 0b100, 0]
