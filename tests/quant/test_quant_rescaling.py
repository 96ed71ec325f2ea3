"""Small parts of joins are scaled up, and down in the layers behind: exact in float, more levels in int8."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import Ledger, Tensor
from vitrify.quant import quantize
from vitrify.quant.copying import copy_model
from vitrify.quant.outputs.rescaling import rescale_joins
from vitrify.quant.planning import natural_ranges
from vitrify.quant.recipe import Recipe


def silu(net: Net, x: Tensor, gain: float, name: str) -> Tensor:
    made = net.conv(x, 4, gain=gain, name=name)
    return net.add(ops.Mul(), made, net.add(ops.Logistic(), made, name=f"{name}_gate"), name=f"{name}_silu")


def joined(net: Net, parts: list[Tensor], gains: list[float]) -> Tensor:
    """A join, read by a layer that weighs its parts alike."""
    both = net.add(ops.Concatenation(axis=3), *parts, name="join")
    weights = net.weights(3, 1, 1, both.shape[-1])
    weights.data = np.asarray(weights.data) / np.repeat(gains, 4).astype(np.float32)
    return net.add(ops.Conv2D(), both, weights, net.constant(np.zeros(3)), name="reader")


def curved(net: Net) -> Tensor:
    return joined(net, [silu(net, net.x, g, f"part{g:g}") for g in (1.0, 64.0)], [1.0, 64.0])


def linear(net: Net) -> Tensor:
    return joined(net, [net.conv(net.x, 4, gain=g, name=f"part{g:g}") for g in (1.0, 64.0)], [1.0, 64.0])


def alike(net: Net) -> Tensor:
    return joined(net, [silu(net, net.x, g, f"part{g:g}") for g in (1.0, 2.0)], [1.0, 1.0])


def given_out(net: Net) -> Tensor:
    return net.add(ops.Concatenation(axis=3), silu(net, net.x, 1, "one"), silu(net, net.x, 64, "two"), name="join")


@pytest.mark.parametrize(("make", "scaled", "operators"), [
    (curved, ["part1_silu_mul"], 1), (linear, ["part1_conv_2d"], 0), (alike, [], 0), (given_out, [], 0)],
    ids=["by an operator", "in the layer", "similar parts", "an output"])
def test_parts_are_scaled_and_nothing_else_changes(make: Callable[[Net], Tensor], scaled: list[str], operators: int,
                                                   tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(make(net))
    statistics = statistics_of(model, tmp_path)
    made = copy_model(model)
    ranges = natural_ranges(made.main, statistics, Recipe())
    _, parts = rescale_joins(made.main, statistics, ranges, 32, Ledger())
    assert [t.name for t in parts] == scaled
    assert len(made.main) - len(model.main) == operators
    sample = noise(model)[0]
    (wanted,), (got,) = run(model, sample, "fast").values(), run(made, sample, "fast").values()
    assert np.abs(wanted - got).max() <= 1e-5 * np.abs(wanted).max()


def test_small_parts_keep_their_levels_in_int8(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(curved(net))
    result = quantize(model, statistics_of(model, tmp_path))
    (conflict,) = result.conflicts
    assert conflict.levels < 8
    assert conflict.resolved == "scaled up, and down in the weights behind"
    assert not [f for f in result.findings if f.code == "range.parts"]
    sample = noise(model)[0]
    (wanted,), (got,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert sqnr(wanted, got) > 25
