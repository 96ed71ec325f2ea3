"""Quantizing well enough: 16-bit activations where 8 bits keep too little, as few as do, and said aloud."""

from pathlib import Path

import numpy as np
import pytest

from vitrify import ops
from vitrify.core.progress import Silent
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.widening import quantize_enough
from vitrify.pipeline.steps import calibrate_model
from vitrify.quant import QuantizeResult, Recipe
from vitrify.tflite import read, write


def network() -> Model:
    """Eight convolutions with activations: in 8 bits each of them loses something."""
    random, graph = np.random.default_rng(2), Graph()
    x = Tensor("x", DType.FLOAT32, (1, 8, 8, 4))
    graph.inputs.append(x)
    for number in range(8):
        weights = (random.standard_normal((4, 3, 3, 4)) * 0.4).astype(np.float32)
        inputs = [x, Tensor(f"w{number}", DType.FLOAT32, weights.shape, data=weights),
                  Tensor(f"b{number}", DType.FLOAT32, (4,), data=np.zeros(4, np.float32))]
        x = graph.add(ops.HardSwish(), [graph.add(ops.Conv2D(), inputs, name=f"conv_{number}").output],
                      name=f"act_{number}").output
    graph.set_outputs([graph.add(ops.Relu(), [x], name="last").output])
    return Model([graph])


def quantized(recipe: Recipe, folder: Path) -> tuple[QuantizeResult, Recipe]:
    path = folder / "float.tflite"
    write(network(), path)
    random = np.random.default_rng(1)
    np.save(folder / "samples.npy", random.standard_normal((4, 1, 8, 8, 4)).astype(np.float32)[:, 0])
    data, model = DataOptions(path=folder / "samples.npy"), read(path)
    statistics, _ = calibrate_model(path, model, data, recipe, None, Silent())
    return quantize_enough(model, path, statistics, recipe, data)


CASES = {
    "not_asked": (0.0, [], False),
    "kept_by_8_bits": (10.0, [], False),
    "more_than_8_bits": (36.0, ["quant.wide"], True),
    "more_than_any": (90.0, ["quant.wide"], True),
}


@pytest.mark.parametrize("name", CASES)
def test_as_many_bits_as_needed(name: str, tmp_path: Path) -> None:
    asked, codes, wide = CASES[name]
    result, recipe = quantized(Recipe(least_db=asked), tmp_path)
    assert [f.code for f in result.findings] == codes
    assert bool(result.plan.wide) == bool(recipe.wide_until) == wide
    assert ("wide" in [entry.name for entry in result.ledger.entries]) == wide
    assert all(t.dtype is DType.INT8 for t in (*result.model.main.inputs, *result.model.main.outputs))
    if name == "more_than_any":
        assert "short" in result.findings[0].headline


def test_the_recipe_that_was_found_gives_the_same_model(tmp_path: Path) -> None:
    first, recipe = quantized(Recipe(least_db=36.0), tmp_path)
    again, same = quantized(recipe, tmp_path)
    assert same == recipe
    assert [n.op.kind for n in again.model.main] == [n.op.kind for n in first.model.main]
    assert not again.findings


def test_random_samples_are_no_measure(tmp_path: Path) -> None:
    path, recipe, data = tmp_path / "float.tflite", Recipe(least_db=36.0), DataOptions(random=True)
    write(network(), path)
    model = read(path)
    statistics, _ = calibrate_model(path, model, data, recipe, None, Silent())
    result, same = quantize_enough(model, path, statistics, recipe, data)
    assert same == recipe
    assert not result.plan.wide
    assert {f.code for f in result.findings} == {"quant.random", "quant.unjudged"}
