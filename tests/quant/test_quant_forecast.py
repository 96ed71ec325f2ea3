"""What rounding will cost is told before it is done: the options' forecast order is the measured one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from quant_graphs import Net, run, sqnr, statistics_of, stored

import vitrify.ops as ops
from vitrify.core.findings import Severity
from vitrify.ir import Model, Tensor
from vitrify.ops import Activation
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.forecasting import channels_seen, forecast
from vitrify.quant import Recipe, quantize
from vitrify.quant.forecasting.options import Option, is_asked, ranked

CHANNELS, SIZE, SAMPLES = 32, 16, 8
EQUAL_DB = 3.0
"""Measured differences of less are chance."""


class Case(NamedTuple):
    """Blocks of depthwise layers whose channels differ by so many decades, with an activation, and with gates."""

    decades: float
    swish: bool = True
    gates: bool = True


CASES = {"swish-gates": Case(3.0), "swish-gates-mild": Case(1.5), "swish": Case(3.0, gates=False),
         "relu": Case(2.0, swish=False, gates=False)}


def block(net: Net, x: Tensor, case: Case, number: int, feed: list[dict[str, np.ndarray]]) -> Tensor:
    """One block, whose normalization is folded into the layer, as exporters do."""
    taps = net.random.standard_normal((1, 3, 3, CHANNELS)) / 3
    gain = 10.0 ** net.random.uniform(-case.decades / 2, case.decades / 2, CHANNELS)
    raw = net.add(ops.DepthwiseConv2D(), x, net.constant(taps), net.constant(np.zeros(CHANNELS)), name=f"raw{number}")
    seen = np.concatenate([next(iter(run(net.model(raw), sample).values())) for sample in feed[:4]])
    net.graph.set_outputs([])
    assert raw.producer is not None
    net.graph.remove(raw.producer)
    mean, factor = seen.mean((0, 1, 2)), gain / seen.std((0, 1, 2))
    shift = gain * net.random.standard_normal(CHANNELS) * 0.5 - mean * factor
    y = net.add(ops.DepthwiseConv2D(), x, net.constant(taps * factor), net.constant(shift), name=f"depthwise{number}")
    if case.swish:
        y = net.add(ops.Mul(), y, net.add(ops.Logistic(), y, name=f"sigmoid{number}"), name=f"swish{number}")
    else:
        y = net.add(ops.Relu(), y, name=f"relu{number}")
    if not case.gates:
        return y
    gate = net.add(ops.Mean(keep_dims=True), y, net.constant([1, 2]), name=f"gate{number}/pool")
    gate = net.conv(gate, 8, 1, gain=0.1, name=f"gate{number}/reduce", fused_activation_function=Activation.RELU)
    gate = net.conv(gate, CHANNELS, 1, gain=0.5, name=f"gate{number}/expand")
    return net.add(ops.Mul(), y, net.add(ops.Logistic(), gate, name=f"gate{number}/sigmoid"), name=f"gate{number}/mul")


def network(case: Case) -> tuple[Model, list[dict[str, np.ndarray]]]:
    net = Net(1, SIZE, SIZE, CHANNELS)
    feed = [{"x": net.random.standard_normal(net.x.shape).astype(np.float32)} for _ in range(SAMPLES)]
    x = net.add(ops.Conv2D(), net.x, net.weights(CHANNELS, 1, 1, CHANNELS), net.constant(np.zeros(CHANNELS)),
                name="stem")
    for number in range(4):
        x = block(net, x, case, number, feed)
    x = net.add(ops.Mean(keep_dims=True), x, net.constant([1, 2]), name="pool")
    x = net.add(ops.Reshape(), x, net.constant([1, CHANNELS]))
    head = net.add(ops.FullyConnected(), x, net.weights(10, CHANNELS), net.constant(np.zeros(10)), name="head")
    return net.model(head), feed


def measured(model: Model, feed: list[dict[str, np.ndarray]], recipe: Recipe, folder: Path) -> float:
    made = quantize(model, statistics_of(model, folder, recipe, feed), recipe).model
    wanted, found = (np.stack([next(iter(run(m, sample, "fast").values())) for sample in feed]) for m in (model, made))
    return sqnr(wanted, found)


def options(model: Model, feed: list[dict[str, np.ndarray]], folder: Path) -> list[Option]:
    statistics = statistics_of(model, folder, Recipe(), feed)
    return ranked(model.main, channels_seen(model, folder / "float.tflite", feed[0]), statistics, Recipe())


@pytest.mark.parametrize("name", CASES)
def test_the_forecast_order_is_the_measured_one(name: str, tmp_path: Path) -> None:
    model, feed = network(CASES[name])
    found = options(model, feed, tmp_path)
    known = {option.name: measured(model, feed, option.recipe, tmp_path) for option in found}
    assert [o.decibels for o in found] == sorted((o.decibels for o in found), reverse=True)
    for number, better in enumerate(found):
        for worse in found[number + 1:]:
            assert known[better.name] > known[worse.name] - EQUAL_DB, (better, worse, known)
    plain, whole = known["as the recipe says"], known["everything in 16 bits"]
    lost = whole - plain
    assert lost > 10
    assert max(value for option, value in known.items() if option != "everything in 16 bits") >= plain + (
        0.8 * lost if CASES[name].decades > 1.5 else 0)
    assert known[found[0].name] >= plain + 0.8 * lost


@pytest.mark.parametrize("name", ["swish-gates", "relu"])
def test_it_is_told_beforehand(name: str, tmp_path: Path) -> None:
    model, feed = network(CASES[name])
    statistics = statistics_of(model, tmp_path, Recipe(), feed)
    stored(model, feed, tmp_path)
    data = DataOptions(path=tmp_path / "samples")
    (finding,) = forecast(model, tmp_path / "float.tflite", statistics, Recipe(), data)
    assert (finding.code, finding.severity) == ("quant.spread", Severity.WARNING)
    assert 'activations = "int16"' in finding.help
    assert ("equalize = true" in finding.help) == (name == "relu")
    assert "8 bits are forecast to keep" in finding.headline


def test_nothing_is_told_where_all_is_well(tmp_path: Path) -> None:
    model, feed = network(Case(0.3))
    statistics = statistics_of(model, tmp_path, Recipe(), feed)
    data = DataOptions(path=tmp_path / "samples")
    assert not forecast(model, tmp_path / "float.tflite", statistics, Recipe(), data)


def test_sixteen_bits_ask_for_no_forecast(tmp_path: Path) -> None:
    model, feed = network(CASES["swish-gates"])
    recipe = Recipe(activations="int16")
    assert not is_asked(model.main, statistics_of(model, tmp_path, recipe, feed), recipe)
