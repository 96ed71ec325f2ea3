"""Inputs that 8 bits do not hold are told of before they are lost, with the measured cost and the cure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, run, sqnr, statistics_of, stored

import vitrify as vt
import vitrify.ops as ops
from vitrify.core.errors import QualityWarning
from vitrify.ir import Model
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.input_ranges import input_ranges
from vitrify.quant import Recipe, quantize
from vitrify.tflite import write

BANDS = 40


def listener(decibels: float) -> tuple[Model, list[dict[str, np.ndarray]]]:
    """Powers of bands, each so much quieter than the one below, which the model makes equal and looks at."""
    net = Net(1, 20, BANDS, name="powers")
    falls = 10 ** (-decibels / 20 * np.arange(BANDS) / BANDS)
    equal = net.add(ops.Mul(), net.x, net.constant((1 / falls).reshape(1, 1, BANDS)), name="equal")
    made = net.add(ops.FullyConnected(keep_num_dims=True), equal, net.weights(8, BANDS), net.constant(np.zeros(8)))
    feed = [{"powers": (net.random.uniform(0, 1, (1, 20, BANDS)) * falls).astype(np.float32)} for _ in range(4)]
    return net.model(made), feed


@pytest.mark.parametrize(("decibels", "told"), [(10.0, False), (90.0, True)])
@pytest.mark.parametrize("recipe", [Recipe(), Recipe(input_type="int16", activations="int16")], ids=["int8", "int16"])
def test_what_8_bits_lose_is_told(decibels: float, told: bool, recipe: Recipe, tmp_path: Path) -> None:
    model, feed = listener(decibels)
    statistics = statistics_of(model, tmp_path, recipe, feed)
    found = input_ranges(model, tmp_path / "float.tflite", statistics, recipe, DataOptions(path=tmp_path / "samples"))
    assert [f.code for f in found] == ["quant.input-range"] * (told and recipe == Recipe())
    if found:
        assert "input 'powers' spans 9" in found[0].headline
        assert "8 bits hold 48 dB" in found[0].headline
        assert "--io int16" in found[0].help


def test_a_quantization_tells_it(tmp_path: Path) -> None:
    model, feed = listener(90.0)
    write(model, tmp_path / "float.tflite")
    stored(model, feed, tmp_path)
    with pytest.warns(QualityWarning):
        made = vt.quantize(tmp_path / "float.tflite", data=tmp_path / "samples")
    (found,) = (f for f in made.result.findings if f.code == "quant.input-range")
    assert "overrides = [{nodes = [" in found.help


def test_the_cure_helps(tmp_path: Path) -> None:
    model, feed = listener(90.0)
    kept = []
    for recipe in (Recipe(), Recipe(input_type="int16", activations="int16")):
        made = quantize(model, statistics_of(model, tmp_path, recipe, feed), recipe).model
        kept.append(np.mean([sqnr(*(next(iter(run(m, s).values())) for m in (model, made))) for s in feed]))
    assert kept[1] > kept[0] + 10


def test_a_silent_input_says_nothing(tmp_path: Path) -> None:
    model, feed = listener(10.0)
    silent = [{"powers": np.zeros_like(sample["powers"])} for sample in feed]
    statistics = statistics_of(model, tmp_path, Recipe(), silent)
    write(model, tmp_path / "float.tflite")
    assert not input_ranges(model, tmp_path / "float.tflite", statistics, Recipe(),
                            DataOptions(path=tmp_path / "samples"))
