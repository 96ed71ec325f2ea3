"""Normalizations whose tokens differ by orders of magnitude keep the quiet ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quant_graphs import Net, kinds, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import Recipe, quantize
from vitrify.quant.forms.norms import normalizing, norms, part_roots

Array = np.ndarray[Any, np.dtype[Any]]
TOKENS, WIDTH = 24, 32
FINE = Recipe(fully_connected_weights="per-axis")
COARSE = Recipe(fully_connected_weights="per-axis", norms="int8")


def normalized(net: Net, x: Tensor) -> Tensor:
    """A layer normalization as the passes leave it: means as products with equal weights."""
    def mean(of: Tensor, name: str) -> Tensor:
        return net.add(ops.FullyConnected(keep_num_dims=True), of, net.constant(np.full((1, WIDTH), 1 / WIDTH)),
                       net.constant(np.zeros(1) + 1e-6 * (name == "variance")), name=name)

    centred = net.add(ops.Sub(), x, mean(x, "mean"), name="centre")
    variance = mean(net.add(ops.Mul(), centred, centred, name="square"), "variance")
    return net.add(ops.Mul(), centred, net.add(ops.Rsqrt(), variance, name="root"), name="normalized")


def stream(loud: float = 10) -> Model:
    """An embedding that makes what stands first ``loud`` times as large, one layer added to it, a normalization."""
    net = Net(1, TOKENS, WIDTH)
    taken = np.eye(WIDTH)
    taken[5, 0] = loud
    start = net.add(ops.FullyConnected(keep_num_dims=True), net.x, net.constant(taken),
                    net.constant(np.zeros(WIDTH)), name="embed")
    start = net.add(ops.Add(), start, net.constant(np.full((TOKENS, 1), 0.01)), name="place")
    layer = net.add(ops.FullyConnected(keep_num_dims=True), net.x, net.weights(WIDTH, WIDTH, gain=0.5),
                    net.constant(np.zeros(WIDTH)), name="layer")
    return net.model(normalized(net, net.add(ops.Add(), start, layer, name="sum")))


def tokens(count: int = 6) -> list[dict[str, Array]]:
    """Samples of tokens, two of which the embedding makes loud."""
    random = np.random.default_rng(11)
    samples = []
    for _ in range(count):
        values = random.standard_normal((1, TOKENS, WIDTH)).astype(np.float32) * 0.1
        values[0, :, 0] = 0
        values[0, :2, 0] = 0.1
        samples.append({"x": values})
    return samples


def quality(folder: Path, loud: float, recipe: Recipe) -> float:
    """The SQNR over the quiet tokens of fresh samples, in dB."""
    model = stream(loud)
    made = quantize(model, statistics_of(model, folder, recipe, tokens()), recipe).model
    pairs = [(run(model, s), run(made, s)) for s in tokens(8)[6:]]
    quiet = [np.concatenate([next(iter(side[i].values()))[0, 2:] for side in pairs]) for i in (0, 1)]
    return sqnr(*quiet)


@pytest.mark.parametrize(("loud", "least", "most"), [(10, 34, 30), (30, 25, 17), (100, 17, 5)])
def test_quiet_tokens_are_kept_beside_loud_ones(tmp_path: Path, loud: float, least: float, most: float) -> None:
    assert quality(tmp_path, loud, FINE) >= least
    assert quality(tmp_path, loud, COARSE) <= most


def test_the_stream_is_wide_and_the_layer_is_not() -> None:
    graph = stream().main
    found = {node.name for node in normalizing(graph)}
    assert found == {"embed", "place", "sum", "mean", "centre", "square", "variance", "normalized"}


def test_products_with_weights_stay_in_8_bits(tmp_path: Path) -> None:
    model = stream()
    made = quantize(model, statistics_of(model, tmp_path, Recipe(), tokens()), Recipe()).model
    types = {n.name: n.input(0).dtype for n in made.main}
    assert types["layer"] is DType.INT8
    assert types["square"] is DType.INT16
    assert all(t.dtype is DType.INT8 for t in (*made.main.inputs, *made.main.outputs))


@pytest.mark.parametrize(("loud", "roots"), [(1, 1), (100, 2), (1000, 3)])
def test_roots_far_apart_get_tables_of_their_own(tmp_path: Path, loud: float, roots: int) -> None:
    model = stream(loud)
    made = quantize(model, statistics_of(model, tmp_path, Recipe(), tokens()), Recipe()).model
    assert kinds(made).count("RSQRT") == roots


@pytest.mark.parametrize("ratio", [100.0, 1e4])
def test_parts_add_up_to_the_root(ratio: float) -> None:
    net = Net(1, 64, 1)
    square = net.add(ops.Mul(), net.x, net.x)
    variance = net.add(ops.Mean(keep_dims=True), square, net.constant([2]))
    model = net.model(net.add(ops.Rsqrt(), variance))
    values = np.sqrt(np.geomspace(1 / ratio, 1, 64, dtype=np.float32)).reshape(1, 64, 1)
    (before,) = run(model, {"x": values}).values()
    from vitrify.quant.calibration.statistics import Range
    made, wide = part_roots(model.main, {variance: Range(1 / ratio, 1.0)})
    (after,) = run(model, {"x": values}).values()
    assert made
    assert wide
    assert np.allclose(before, after, rtol=1e-5)


def test_what_is_no_normalization_is_left_alone() -> None:
    net = Net(1, 8, 4)
    lifted = net.add(ops.Maximum(), net.x, net.constant(np.float32(0.5)))
    graph = net.model(net.add(ops.Add(), net.add(ops.Rsqrt(), lifted), net.x)).main
    assert norms(graph) == []
    assert normalizing(graph) == set()
