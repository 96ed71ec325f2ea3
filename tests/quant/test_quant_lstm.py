"""Sequence LSTMs in integers: near the float layer, in every set of kernels, from zeros in every run."""

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.core.errors import DataError
from vitrify.ir import DType, Model, Quantization, Tensor
from vitrify.ops import Activation
from vitrify.passes import to_integer_forms
from vitrify.quant import Recipe, Statistics, quantize
from vitrify.quant.forms.lstm import cell_step
from vitrify.quant.recipe import format_recipe, parse_recipe
from vitrify.tflite import float_operators

DEPTH, HIDDEN, STEPS = 6, 8, 30


def layer(net: Net, x: Tensor, name: str, time_major: bool = False, gain: float = 1.0) -> Tensor:
    depth = x.shape[-1]
    weights = [net.weights(HIDDEN, depth, gain=2 * gain) for _ in range(4)] + [
        net.weights(HIDDEN, HIDDEN, gain=1.5 * gain) for _ in range(4)]
    biases = [net.constant(net.random.standard_normal(HIDDEN) * 0.3 * gain, f"{name}b{i}") for i in range(4)]
    batch = x.shape[1 if time_major else 0]
    states = [Tensor(f"{name}_{s}", DType.FLOAT32, (batch, HIDDEN), is_variable=True) for s in "hc"]
    op = ops.UnidirectionalSequenceLSTM(fused_activation_function=Activation.TANH, time_major=time_major)
    return net.graph.add(op, [x, *weights, *[None] * 3, *biases, None, None, *states, *[None] * 4], name=name).output


def one(net: Net) -> Model:
    return net.model(layer(net, net.x, "first"))


def both(net: Net) -> Model:
    turned = net.add(ops.ReverseV2(), net.x, net.constant([1]))
    back = net.add(ops.ReverseV2(), layer(net, turned, "back"), net.constant([1]))
    return net.model(net.add(ops.Concatenation(axis=2), layer(net, net.x, "forth"), back))


def stacked(net: Net) -> Model:
    x = net.x
    for number in range(3):
        x = layer(net, x, f"layer{number}")
    return net.model(net.add(ops.FullyConnected(keep_num_dims=True), x, net.weights(4, HIDDEN)))


CASES = {
    "one": (lambda: one(Net(1, STEPS, DEPTH)), 36.0),
    "batch": (lambda: one(Net(3, STEPS, DEPTH)), 36.0),
    "time_major": (lambda: (n := Net(STEPS, 2, DEPTH)).model(layer(n, n.x, "first", True)), 36.0),
    "quiet": (lambda: (n := Net(1, STEPS, DEPTH)).model(layer(n, n.x, "first", gain=0.1)), 36.0),
    "bidirectional": (lambda: both(Net(1, STEPS, DEPTH)), 35.0),
    "stacked": (lambda: stacked(Net(1, STEPS, DEPTH)), 28.0),
}


@pytest.mark.parametrize("recipe", [Recipe(sequences="whole"), Recipe(activations="int16")], ids=["int8", "int16"])
@pytest.mark.parametrize("name", CASES)
def test_the_layer_is_near_float(name: str, recipe: Recipe, tmp_path: Path) -> None:
    make, least = CASES[name]
    model = make()
    result = quantize(model, statistics_of(model, tmp_path, recipe), recipe)
    assert not float_operators(result.model.main)
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in kinds(result.model)
    for kernels in ("reference", "fast"):
        for sample in noise(model):
            (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample, kernels).values()
            assert sqnr(wanted, found) > least


@pytest.mark.parametrize(("form", "kind"), [("whole", "UNIDIRECTIONAL_SEQUENCE_LSTM"), ("steps", "LOGISTIC")])
def test_the_recipe_chooses_the_form(form: str, kind: str) -> None:
    model = one(Net(1, 4, DEPTH))
    to_integer_forms(model, steps=form == "steps")
    assert kind in kinds(model)
    assert parse_recipe(format_recipe(Recipe(sequences=form))).sequences == form    # type: ignore[arg-type]


@pytest.mark.parametrize(("recipe", "steps"), [
    (Recipe(sequences="whole"), False), (Recipe(activations="int16"), True), (Recipe(sequences="steps"), True),
    (Recipe(activations="int16", sequences="whole"), False)])
def test_sixteen_bits_go_step_by_step(recipe: Recipe, steps: bool) -> None:
    assert recipe.in_steps == steps


def test_cells_that_were_not_seen_are_asked_for(tmp_path: Path) -> None:
    model = one(Net(1, STEPS, DEPTH))
    statistics = statistics_of(model, tmp_path)
    del statistics.tensors["first/cell"]
    with pytest.raises(DataError, match="cells of 'first' were not observed"):
        quantize(model, statistics)


@pytest.mark.parametrize(("largest", "exponent"), [
    (0.0, -15), (0.3, -15), (0.9, -15), (1.0, -14), (3.9, -13), (63.0, -9), (1e6, -9)])
def test_cells_have_a_power_of_two_of_which_the_kernel_has_a_tanh(largest: float, exponent: int) -> None:
    assert cell_step(largest) == 2.0 ** exponent


def test_the_range_of_cells_is_that_of_the_steps(tmp_path: Path) -> None:
    model = one(Net(1, STEPS, DEPTH))
    seen = statistics_of(model, tmp_path)["first/cell"]
    assert np.isfinite(seen.high)
    assert 0.2 < seen.high < 5
    assert seen.low == -seen.high


def test_statistics_with_cells_are_kept(tmp_path: Path) -> None:
    model = one(Net(1, STEPS, DEPTH))
    seen = statistics_of(model, tmp_path)
    seen.save(tmp_path / "seen.npz")
    found = Statistics.load(tmp_path / "seen.npz")
    assert found["first/cell"].range == seen["first/cell"].range
    assert seen.history
    assert all(np.array_equal(found.history[step], seen.history[step]) for step in seen.history)


def test_a_cell_that_the_kernel_has_no_tanh_of_is_told(tmp_path: Path) -> None:
    model = one(Net(1, STEPS, DEPTH))
    recipe = Recipe(sequences="whole")
    (node,) = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model.main.nodes_of(
        ops.UnidirectionalSequenceLSTM)
    assert not list(node.op.check(node))
    node.input(19).quantization = Quantization.per_tensor(2.0 ** -16)
    assert [finding.code for finding in node.op.check(node)] == ["ops.lstm_cell"]
