"""Operators that a recipe keeps in float: the rest is integer, the borders convert, and nothing else stays behind."""

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import Override, Recipe, Statistics, quantize
from vitrify.quant.recipe import format_recipe, parse_recipe
from vitrify.tflite import float_operators


def floats(**given: str) -> Recipe:
    return Recipe(overrides=(Override(activations="float", **given),))


def total(net: Net, x: Tensor, name: str = "total") -> Tensor:
    return net.add(ops.Cumsum(), x, net.constant(3), name=name)


def between(net: Net) -> Model:
    return net.model(net.conv(total(net, net.conv(net.x, 4)), 4))


def chained(net: Net) -> Model:
    one = total(net, net.conv(net.x, 4), "total_one")
    other = total(net, one, "total_other")
    return net.model(net.add(ops.Add(), net.conv(one, 4), net.conv(other, 4)))


def at_the_end(net: Net) -> Model:
    return net.model(total(net, net.conv(net.x, 4)))


def at_the_start(net: Net) -> Model:
    return net.model(net.conv(total(net, net.x), 4))


def with_constants(net: Net) -> Model:
    x = net.conv(net.x, 4)
    added = net.add(ops.Add(), x, net.constant(np.array([1e-4, 2.0, -3.0, 90.0])), name="added")
    return net.model(net.conv(net.add(ops.Tanh(), added), 4))


def moved(net: Net) -> Model:
    x = net.conv(net.x, 4)
    return net.model(net.conv(net.add(ops.Transpose(), x, net.constant([0, 2, 1, 3]), name="turn"), 4))


CASES = {
    "between": (between, floats(operator="CUMSUM"), {"total"}, 1),
    "chained": (chained, floats(name="total*"), {"total_one", "total_other"}, 1),
    "at_the_end": (at_the_end, floats(name="total"), {"total"}, 1),
    "at_the_start": (at_the_start, floats(name="total"), {"total"}, 1),
    "with_constants": (with_constants, floats(name="added"), {"added"}, 1),
    "moved": (moved, floats(name="turn"), {"turn"}, 1),
    "layer": (between, Recipe(overrides=(Override(operator="CUMSUM", activations="float"),
                                         Override(operator="CONV_2D", activations="float"))), None, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_only_what_is_named_stays_in_float(name: str, tmp_path: Path) -> None:
    make, recipe, stay, entries = CASES[name]
    model = make(Net(1, 6, 6, 3))
    result = quantize(model, statistics_of(model, tmp_path, recipe), recipe)
    left = {node.name for node in float_operators(result.model.main)}
    assert left == (stay or {node.name for node in model.main})
    assert set(result.islands) == left
    assert kinds(result.model).count("DEQUANTIZE") == entries
    assert [f.code for f in result.findings if "float" in f.headline] == ["quant.islands"]
    for kernels in ("reference", "fast"):
        (wanted,), (found,) = (run(m, noise(model)[0], kernels).values() for m in (model, result.model))
        assert sqnr(wanted, found) > (21 if name == "with_constants" else 30)


def test_a_refusal_says_how_to_make_an_island() -> None:
    model = between(Net(1, 6, 6, 3))
    with pytest.raises(UnsupportedError, match=r'operator = "CUMSUM", activations = "float"'):
        quantize(model, Statistics())


def test_an_island_is_kept_as_text() -> None:
    recipe = floats(name="total*", operator="CUMSUM")
    assert parse_recipe(format_recipe(recipe)) == recipe


def test_what_an_island_gives_out_is_float(tmp_path: Path) -> None:
    model = at_the_end(Net(1, 6, 6, 3))
    recipe = floats(name="total")
    result = quantize(model, statistics_of(model, tmp_path, recipe), recipe)
    assert result.model.main.outputs[0].dtype is DType.FLOAT32


def test_a_division_through_zero_may_stay_in_float(tmp_path: Path) -> None:
    net = Net(1, 6, 6, 3)
    model = net.model(net.add(ops.Div(), net.x, net.add(ops.Sub(), net.x, net.constant(np.float32(0.1))), name="ratio"))
    with pytest.raises(ModelError, match=r'nodes = \["ratio"\], activations = "float"'):
        quantize(model, statistics_of(model, tmp_path))
    recipe = floats(name="ratio")
    result = quantize(model, statistics_of(model, tmp_path, recipe), recipe)
    assert {node.name for node in float_operators(result.model.main)} == {"ratio"}
