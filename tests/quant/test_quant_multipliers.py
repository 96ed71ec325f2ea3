"""A layer whose sums have wider steps than its whole output: XNNPACK takes none of 256 and more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import Model, Quantization
from vitrify.ops.checking import check_node
from vitrify.ops.legality import MOST_MULTIPLIER
from vitrify.quant import Recipe, quantize

LOUD = 3e5
"""The weight of a channel that is hardly there beside the others."""


def uneven(kind: str) -> tuple[Model, list[dict[str, np.ndarray]]]:
    """A layer that brings a channel of a millionth of the others' size to their size."""
    net = Net(1, 6, 6, 4)
    gains = np.array([1.0, 1.0, 1.0, LOUD])
    if kind == "depthwise":
        taps = net.random.standard_normal((1, 3, 3, 4)) * gains
        y = net.add(ops.DepthwiseConv2D(), net.x, net.constant(taps), net.constant(np.zeros(4)), name="layer")
    else:
        y = net.add(ops.Conv2D(), net.x, net.constant(np.diag(gains).reshape(4, 1, 1, 4)), net.constant(np.zeros(4)),
                    name="layer")
    small = np.array([1.0, 1.0, 1.0, 1 / LOUD])
    feed = [{"x": (net.random.uniform(-1, 1, (1, 6, 6, 4)) * small).astype(np.float32)} for _ in range(4)]
    return net.model(y), feed


@pytest.mark.parametrize("kind", ["depthwise", "pointwise"])
@pytest.mark.parametrize("kernels", ["reference", "fast"])
def test_the_file_runs_in_every_set_of_kernels(kind: str, kernels: str, tmp_path: Path) -> None:
    model, feed = uneven(kind)
    recipe = Recipe(faint="int8")
    made = quantize(model, statistics_of(model, tmp_path, recipe, feed), recipe).model
    (layer,) = (n for n in made.main if n.name == "layer")
    x, w, y = (t.quantization for t in (layer.input(0), layer.input(1), layer.output))
    assert x is not None
    assert w is not None
    assert y is not None
    assert 200 < float((x.scale[0] * w.scale / y.scale[0]).max()) <= MOST_MULTIPLIER
    wanted, found = (next(iter(run(m, feed[0], kernels).values())) for m in (model, made))
    assert sqnr(wanted[..., :3], found[..., :3]) > 25           # the fourth is lost in 8 bits, as it was before


@pytest.mark.parametrize(("factor", "told"), [(0.9, []), (1.1, ["ops.multiplier"])])
def test_wider_ones_are_told(factor: float, told: list[str], tmp_path: Path) -> None:
    model, feed = uneven("pointwise")
    recipe = Recipe(faint="int8")
    made = quantize(model, statistics_of(model, tmp_path, recipe, feed), recipe).model
    (layer,) = (n for n in made.main if n.name == "layer")
    weights, bias = layer.input(1), layer.input(2)
    assert weights.quantization is not None
    assert bias.quantization is not None
    weights.quantization = Quantization.per_axis(weights.quantization.scale * np.float32(factor), 0)
    bias.quantization = Quantization.per_axis(bias.quantization.scale * np.float32(factor), 0)
    assert [f.code for f in check_node(layer)] == told
