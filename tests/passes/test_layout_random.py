"""Random graphs keep their values, and end with no more bytes transposed than before."""

from __future__ import annotations

import pytest
from graph_maker import Maker, activation_names, check_kept
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_steps import grow

from scale import examples
from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import optimize


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A random graph over one or two inputs."""
    maker = Maker(draw(st.integers(0, 100)))
    values = [maker.input(*draw(st.sampled_from([(1, 4, 6, 2), (1, 2, 3, 4), (2, 3, 4), (1, 8, 1, 1), (4, 6)])))]
    for _ in range(draw(st.integers(2, 14))):
        grow(draw, maker, values)
    made = [t for t in values if t.producer is not None] or [maker.op(ops.Relu(), values[0])]
    unused = [t for t in made if not t.uses]
    chosen = dict.fromkeys([*unused[:2], draw(st.sampled_from(made))])
    return maker.model(*chosen)


def moved(model: Model) -> int:
    return sum(node.output.nbytes for node in model.main.nodes_of(ops.Transpose))


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(model=models())
def test_random_graph(model: Model, layout: str) -> None:
    before = moved(model)
    check_kept(model, lambda m: optimize(m, input_layout=layout, output_layout=layout), tolerance=1e-4)
    assert moved(model) <= before
    names = activation_names(model)
    assert len(set(names)) == len(names)
    again = optimize(model, input_layout=layout, output_layout=layout)
    assert [entry.name for entry in again.entries] == []
