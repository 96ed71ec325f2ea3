"""Weights rounded against each other: the output loses less, and layers without moments are rounded as ever."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Array, Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import Model, Tensor
from vitrify.quant import Recipe, quantize
from vitrify.quant.calibration.moments import Moments, is_looked_at, moments_of
from vitrify.quant.scales import quantize_weights, weight_scales
from vitrify.quant.weights.rounding import round_weights

Make = Callable[[Net, Tensor], Tensor]


def smooth(model: Model, count: int = 6) -> list[dict[str, Array]]:
    """Samples whose neighbours and channels go together, as those of pictures do."""
    made = []
    for sample in noise(model, count):
        x = sample["x"].cumsum(axis=1).cumsum(axis=2) / 8
        made.append({"x": (x + x.mean(axis=-1, keepdims=True) * 4).astype(np.float32)})
    return made


LAYERS: dict[str, Make] = {
    "pointwise": lambda n, x: n.conv(x, 24, size=1),
    "conv": lambda n, x: n.conv(x, 24, dilation_h_factor=2),
    "strided": lambda n, x: n.conv(n.add(ops.Pad(), x, n.constant([[0, 0], [1, 1], [1, 1], [0, 0]])), 24, stride_h=2,
                                   stride_w=2, padding=ops.Padding.VALID),
    "grouped": lambda n, x: n.add(ops.Conv2D(), x, n.weights(24, 3, 3, 4), n.constant(np.zeros(24))),
    "depthwise": lambda n, x: n.add(ops.DepthwiseConv2D(), x, n.weights(1, 5, 5, 16, gain=3), n.constant(np.zeros(16))),
    "dense": lambda n, x: n.add(ops.FullyConnected(keep_num_dims=True), x, n.weights(24, 16), n.constant(np.zeros(24))),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_output_loses_less(name: str, tmp_path: Path) -> None:
    net = Net(1, 16, 16, 16)
    model = net.model(LAYERS[name](net, net.x))
    samples = smooth(model)
    statistics = statistics_of(model, tmp_path, arrays=samples)
    moments, = statistics.moments.values()
    weights, op = weights_of(model), next(n.op for n in model.main if n.op.kind != "PAD")
    scales = weight_scales(weights, 3 if name == "depthwise" else 0, None, 1.0)
    levels = round_weights(op, weights, scales, moments, True)
    assert levels is not None
    assert np.abs(levels).max() <= 127
    nearest = quantize_weights(weights, scales)
    assert not np.array_equal(levels, nearest)
    assert error(name, scales.dequantize(levels) - weights, moments) < \
        0.5 * error(name, scales.dequantize(nearest) - weights, moments)
    (wanted,), (found,) = run(model, samples[-1]).values(), run(quantize(model, statistics).model, samples[-1]).values()
    assert sqnr(wanted, found) > 34


def test_without_moments_each_weight_goes_to_the_nearest(tmp_path: Path) -> None:
    net = Net(1, 16, 16, 16)
    model = net.model(net.conv(net.x, 24, size=1))
    recipe = Recipe(rounding="nearest")
    statistics = statistics_of(model, tmp_path, recipe, smooth(model))
    assert not statistics.moments
    made = quantize(model, statistics, recipe).model
    stored = next(iter(made.main)).input(1)
    assert stored.quantization is not None
    assert np.array_equal(stored.data, quantize_weights(weights_of(model), stored.quantization))


@pytest.mark.parametrize(("inputs", "size"), [(385, 1), (64, 3)], ids=["pointwise", "conv"])
def test_large_layers_have_no_moments(inputs: int, size: int, tmp_path: Path) -> None:
    net = Net(1, 8, 8, inputs)
    model = net.model(net.conv(net.x, 2, size=size))
    assert not statistics_of(model, tmp_path).moments


def test_inputs_that_never_vary_are_no_trouble() -> None:
    net = Net(1, 4, 4, 3)
    model = net.model(net.conv(net.x, 5, size=1))
    node = next(iter(model.main))
    moments = moments_of(node, np.zeros((1, 4, 4, 3), np.float32))
    weights = weights_of(model)
    scales = weight_scales(weights, 0, None, 1.0)
    levels = round_weights(node.op, weights, scales, moments, True)
    assert np.array_equal(levels, quantize_weights(weights, scales))


def test_moments_add_up_and_move() -> None:
    net = Net(1, 6, 6, 2)
    node = next(iter(net.model(net.conv(net.x, 3)).main))
    values = net.random.standard_normal((1, 6, 6, 2)).astype(np.float32)
    one = moments_of(node, values)
    assert one.count == 16                                      # windows of 3 x 3 that lie inside of 6 x 6
    both = one.add(one)
    assert (both.count, both.second[0, 0, 0]) == (32, 2 * one.second[0, 0, 0])
    scale, offset = np.array([2.0, 3.0]), np.array([0.5, -1.0])
    moved = one.affine(np.tile(scale, 9), np.tile(offset, 9))
    again = moments_of(node, (values * scale + offset).astype(np.float32))
    np.testing.assert_allclose(moved.first, again.first, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(moved.second, again.second, rtol=1e-4, atol=1e-3)


def test_few_samples_are_looked_at() -> None:
    assert [s for s in range(70) if is_looked_at(s)] == [*range(9), 12, 16, 24, 32, 48, 64]


def weights_of(model: Model) -> Array:
    node = next(n for n in model.main if n.op.kind != "PAD")
    data = node.input(1).data
    assert data is not None
    return data


def error(name: str, change: Array, moments: Moments) -> float:
    """The variance of the output's error."""
    rows = change.reshape(-1, change.shape[-1]).T[:, None, :] if name == "depthwise" else \
        change.reshape(len(moments.first), change.shape[0] // len(moments.first), -1)
    return float(np.einsum("gon,gnm,gom->", rows, moments.spread(centered=True), rows))
