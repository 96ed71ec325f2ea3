"""Functions without an integer kernel, looked up: near the float function in LiteRT, in 8 and in 16 bits."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import Override, Recipe, quantize

Make = Callable[[Net, Tensor], Tensor]
WIDE = Recipe(activations="int16")


def number(n: Net, value: float) -> Tensor:
    return n.constant(np.float32(value))


CASES: dict[str, Make] = {
    "sin": lambda n, x: n.add(ops.Sin(), n.add(ops.Mul(), x, number(n, 5))),
    "cos": lambda n, x: n.add(ops.Cos(), n.add(ops.Mul(), x, number(n, 5))),
    "sign": lambda n, x: n.add(ops.Sign(), x),
    "square": lambda n, x: n.add(ops.Square(), x),
    "power": lambda n, x: n.add(ops.Pow(), n.add(ops.Add(), x, number(n, 1.5)), number(n, 1.7)),
    "power_of_a_number": lambda n, x: n.add(ops.Pow(), number(n, 2), x),
    "reciprocal": lambda n, x: n.add(ops.Div(), number(n, 3), n.add(ops.Add(), x, number(n, 2))),
}
WHOLE: dict[str, Make] = {
    "floor": lambda n, x: n.add(ops.Floor(), x),
    "ceil": lambda n, x: n.add(ops.Ceil(), x),
    "round": lambda n, x: n.add(ops.Round(), x),
    "fraction": lambda n, x: n.add(ops.FloorMod(), x, number(n, 1)),
    "quotient": lambda n, x: n.add(ops.FloorDiv(), x, number(n, 3)),
    "to_whole": lambda n, x: n.add(ops.Cast(in_data_type=0, out_data_type=2), x),
}


def answers(model: Model, tmp_path: Path, recipe: Recipe) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    made = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model
    samples = noise(model)
    return (kinds(made), [next(iter(run(model, s, "fast").values())) for s in samples],
            [next(iter(run(made, s).values())) for s in samples])


@pytest.mark.parametrize("recipe", [Recipe(), WIDE], ids=["int8", "int16"])
@pytest.mark.parametrize("name", CASES)
def test_functions_are_looked_up(name: str, recipe: Recipe, tmp_path: Path) -> None:
    net = Net(1, 6, 6, 3)
    model = net.model(net.add(ops.Mul(), CASES[name](net, net.x), number(net, 0.5)))
    found, wanted, got = answers(model, tmp_path, recipe)
    assert found.count("GATHER") == 1
    assert sqnr(np.stack(wanted), np.stack(got)) > (23 if name == "sign" else 34)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_told_apart(name: str, tmp_path: Path) -> None:
    """Places between 0 and 80: 8 bits would miss a third of them, so what leads there has 16."""
    net = Net(1, 6, 6, 3)
    places = net.add(ops.Add(), net.add(ops.Mul(), net.x, number(net, 40)), number(net, 40.3), name="places")
    model = net.model(WHOLE[name](net, places))
    _, wanted, got = answers(model, tmp_path, Recipe())
    off = np.abs(np.stack(wanted) - np.stack(got))
    if name == "fraction":
        off = np.minimum(off, 1 - off)
    assert np.mean(off > 0.17) < 0.13        # the input itself has 256 levels, a third of a place each


BETWEEN: dict[str, Make] = {
    "nothing": lambda n, x: x,
    "moved": lambda n, x: n.add(ops.Add(), x, number(n, 1)),
    "bounded": lambda n, x: n.add(ops.Minimum(), n.add(ops.Maximum(), x, number(n, 0)), number(n, 77)),
    "reshaped": lambda n, x: n.add(ops.Reshape(new_shape=(36, 3)), x, n.constant(np.array([36, 3], np.int32))),
    "rows": lambda n, x: n.add(ops.Mul(), x, n.constant(np.array([1, 2, 3], np.float32))),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_whole_numbers_stay_whole(name: str, tmp_path: Path) -> None:
    """Steps do not meet whole numbers: one that lies a hair below its number must not be cut to the one before."""
    net = Net(1, 6, 6, 3)
    places = net.add(ops.Add(), net.add(ops.Mul(), net.x, number(net, 40)), number(net, 40.3))
    whole = BETWEEN[name](net, net.add(ops.Floor(), places))
    model = net.model(net.add(ops.Cast(in_data_type=0, out_data_type=2), whole))
    _, wanted, got = answers(model, tmp_path, Recipe())
    # what is off is off by a whole number because the input was: few, as above, and not most of them
    assert np.mean(np.stack(wanted) != np.stack(got)) < 0.13


def test_equal_inputs_share_their_places(tmp_path: Path) -> None:
    net = Net(1, 6)
    model = net.model(net.add(ops.Add(), net.add(ops.Sin(), net.x), net.add(ops.Cos(), net.x)))
    found, _, _ = answers(model, tmp_path, Recipe())
    assert found.count("CAST") == 1
    assert found.count("GATHER") == 2


def test_an_override_keeps_places_in_8_bits(tmp_path: Path) -> None:
    net = Net(1, 6)
    model = net.model(net.add(ops.Floor(), net.x, name="floor"))
    recipe = Recipe(overrides=(Override(name="floor", activations="int8"),))
    made = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model
    assert all(t.dtype is not DType.INT16 for n in made.main for t in n.outputs)


@pytest.mark.parametrize(("least", "table"), [(0.5, False), (0.001, True)])
def test_roots_of_values_near_each_other_keep_their_kernel(least: float, table: bool, tmp_path: Path) -> None:
    """The 16-bit kernel draws straight lines: near where values are alike, far off where one is nearly 0."""
    net = Net(1, 6, 6, 3)
    model = net.model(net.add(ops.Mul(), net.add(ops.Rsqrt(), net.add(ops.Add(), net.add(ops.Mul(), net.x, net.x),
                                                                      number(net, least))), number(net, 0.5)))
    recipe = Recipe(activations="int16", outputs="keep")
    made = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model
    assert ("GATHER" in kinds(made)) == table
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, made))
    assert sqnr(wanted, found) > 18      # the input has 8 bits, and the root is steep
