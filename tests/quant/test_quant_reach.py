"""Logarithms of power and divisions in int8: what keeps its answer, and what is said where it cannot."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.core.errors import ModelError
from vitrify.ir import DType, Model, Tensor
from vitrify.passes import optimize
from vitrify.quant import quantize
from vitrify.quant.recipe import parse_recipe

Array = np.ndarray[Any, np.dtype[Any]]
EPSILON = 1e-10


def spectrum(net: Net, parts: int, *, minus: bool = False) -> Model:
    """The logarithm of the power of ``parts`` components."""
    x = net.add(ops.Mul(), net.x, net.constant(3.0))
    squared = net.add(ops.Mul(), x, net.x if minus else x)
    power = squared
    if parts > 1:
        mean = net.add(ops.Mean(), squared, net.constant([2]))
        power = net.add(ops.Mul(), mean, net.constant(float(parts)))
    return net.model(net.add(ops.Log(), net.add(ops.Add(), power, net.constant(EPSILON))))


def loud_and_quiet(parts: int) -> dict[str, Array]:
    """Components whose amplitude falls over 60 dB along the axis, all phases."""
    random = np.random.default_rng(0)
    angle = random.uniform(0, 2 * np.pi, (1, 400))
    length = 10.0 ** (-60 / 20 * np.linspace(0, 1, 400))
    both = np.stack([length * np.cos(angle), length * np.sin(angle)], axis=2)
    return {"x": (both if parts == 2 else length.reshape(1, 400, 1)).astype(np.float32)}


@pytest.mark.parametrize("parts", [1, 2])
def test_the_upper_forty_decibels_keep_their_logarithm(parts: int, tmp_path: Path) -> None:
    model = spectrum(Net(1, 400, parts), parts)
    sample = loud_and_quiet(parts)
    result = quantize(model, statistics_of(model, tmp_path, arrays=[sample]))
    assert "MEAN" not in kinds(result.model)
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    top = wanted.max()
    loud = wanted > top - 36 / 10 * np.log(10)
    step = (top - np.log(EPSILON)) / 255
    rounding = 2 * np.log1p(4 * np.exp((top - 36 / 10 * np.log(10) - top) / -2) / 255)
    assert np.abs(found - wanted)[loud].max() <= 2 * step + (0.16 if parts == 2 else 0.0) + rounding
    assert loud.mean() > 0.5
    (finding,) = [f for f in result.findings if f.code == "quant.decibels"]
    assert finding.headline == "the logarithm spans 60 dB, int8 amplitudes span 48 dB"


def test_roots_of_power_keep_their_amplitudes(tmp_path: Path) -> None:
    net = Net(1, 400, 2)
    parts = [net.add(ops.Slice(), net.x, net.constant([0, 0, i]), net.constant([1, 400, 1])) for i in range(2)]
    power = net.add(ops.Add(), *(net.add(ops.Mul(), p, p) for p in parts))
    model = net.model(net.add(ops.Sqrt(), power))
    sample = loud_and_quiet(2)
    result = quantize(model, statistics_of(model, tmp_path, arrays=[sample]))
    assert "SQRT" not in kinds(result.model)
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert np.abs(found - wanted).max() <= 0.02 + 4 / 255          # the polygon's corners, and four roundings
    assert np.abs(found - wanted)[wanted < 0.05].max() <= 3 / 255
    assert not result.findings


def test_a_product_of_two_things_stays(tmp_path: Path) -> None:
    net = Net(1, 400, 1)
    model = net.model(net.add(ops.Log(), net.add(ops.Add(), net.add(ops.Mul(), net.x, net.add(ops.Abs(), net.x)),
                                                 net.constant(2.0))))
    result = quantize(model, statistics_of(model, tmp_path))
    assert "ABS" in kinds(result.model)
    assert kinds(result.model).count("LOG") == 1
    assert not result.findings


def test_an_input_of_two_ranges_is_told(tmp_path: Path) -> None:
    net = Net(2, 1, 16)
    small, large = (net.add(ops.Slice(), net.x, net.constant([i, 0, 0]), net.constant([1, 1, 16])) for i in range(2))
    sum_of = net.add(ops.Add(), net.add(ops.Mul(), small, net.constant(20.0)), large)
    weights = net.add(ops.FullyConnected(), net.add(ops.Reshape(new_shape=(1, 16)), small, net.constant([1, 16])),
                      net.weights(4, 16))
    model = net.model(net.add(ops.Tanh(), sum_of), net.add(ops.Tanh(), weights))
    random = np.random.default_rng(0)
    arrays = [{"x": (random.uniform(-1, 1, (2, 1, 16)) * [[[1]], [[30]]]).astype(np.float32)} for _ in range(4)]
    result = quantize(model, statistics_of(model, tmp_path, arrays=arrays))
    finding, *others = sorted(result.findings, key=lambda f: f.code)
    assert finding.code == "range.input"
    assert {f.code for f in others} <= {"range.parts", "range.collision"}
    assert re.search(r"is cut out of input 'x' \[-\d+(\.\d)?, \d+(\.\d)?\], which leaves it \d of 256 levels",
                     finding.headline)


def over(divisor: Callable[[Net, Tensor], Tensor]) -> Callable[[Net], Model]:
    return lambda net: net.model(net.add(ops.Tanh(), net.add(ops.Div(), net.x, divisor(net, net.x))))


def shifted(net: Net, x: Tensor, by: float) -> Tensor:
    return net.add(ops.Add(), net.add(ops.Tanh(), x), net.constant(by))


@pytest.mark.parametrize(("divisor", "codes"), [
    (lambda n, x: net_abs(n, x, 1.0), []),
    (lambda n, x: net_abs(n, x, 0.01), ["quant.reciprocal"]),
], ids=["far", "near zero"])
def test_divisors_near_zero_are_told(divisor: Callable[[Net, Tensor], Tensor], codes: list[str],
                                     tmp_path: Path) -> None:
    model = over(divisor)(Net(1, 8, 8, 3))
    optimize(model)
    assert "DIV" not in kinds(model)
    result = quantize(model, statistics_of(model, tmp_path))
    assert [f.code for f in result.findings] == codes
    sample = {"x": np.random.default_rng(1).uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)}
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    if not codes:
        assert np.abs(found - wanted).max() < 0.03      # a few steps of 1/128
        return
    (told,) = result.findings
    assert re.match(r"1/sqrt\('.*'\) is rough in int8: it goes down to [\de.-]+, \d\.\d of the 255 steps up to ",
                    told.headline)
    advised = parse_recipe(told.help.partition("in the recipe: ")[2].partition(";")[0])
    again = quantize(model, statistics_of(model, tmp_path, advised), advised)
    assert not again.findings
    (finer,) = run(again.model, sample).values()
    assert np.abs(finer - wanted).max() < np.abs(found - wanted).max()


def net_abs(net: Net, x: Tensor, by: float) -> Tensor:
    return net.add(ops.Add(), net.add(ops.Abs(), x), net.constant(by))


def test_a_division_through_zero_is_refused(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = over(lambda n, x: shifted(n, x, 0.1))(net)
    statistics = statistics_of(model, tmp_path)
    with pytest.raises(ModelError, match=r"the divisor 'add\d+_add' goes from -0\.\d+ to 0\.\d+, a step of int8 is"):
        quantize(model, statistics)


def test_a_division_far_from_zero_is_a_product(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = over(lambda n, x: shifted(n, x, 2.0))(net)
    result = quantize(model, statistics_of(model, tmp_path))
    assert "DIV" not in kinds(result.model)
    assert kinds(result.model).count("RSQRT") == 1
    assert not result.findings
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, result.model))
    assert sqnr(wanted, found) > 25


def test_a_division_by_far_apart_divisors_has_16_bits(tmp_path: Path) -> None:
    """Divisors of 0.01 to 40: in 8 bits most would be 0, on which the kernel ends the run."""
    net = Net(1, 8, 8, 3)
    steep = net.add(ops.Exp(), net.add(ops.Mul(), net.x, net.constant(np.float32(4))))
    model = net.model(net.add(ops.Tanh(), net.add(ops.Div(), net.add(ops.Mul(), steep, net.x), steep, name="div")))
    result = quantize(model, statistics_of(model, tmp_path))
    (div,) = result.model.main.nodes_of(ops.Div)
    assert div.output.dtype is DType.INT16
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, result.model))
    assert sqnr(wanted, found) > 20
    silent = {net.x.name: np.full((1, 8, 8, 3), -9, np.float32)}
    assert all(np.isfinite(v).all() for v in run(result.model, silent).values())
