"""Overrides of tensors, overrides that contradict each other, and those that a later one takes the word from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, statistics_of

from vitrify import ops
from vitrify.core.errors import UsageError
from vitrify.ir import Model
from vitrify.quant import Recipe, quantize
from vitrify.quant.calibration.calibrators import Calibrators
from vitrify.quant.overruling import overruled
from vitrify.quant.recipe import Override, format_recipe, parse_recipe
from vitrify.quant.selecting import selected, settled


def model() -> Model:
    """Two convolutions, enc and dec, each with an activation behind."""
    net = Net(1, 8, 8, 3)
    first = net.add(ops.Relu(), net.conv(net.x, 8))
    second = net.add(ops.Relu(), net.conv(first, 4))
    made = net.model(second)
    for node, name in zip(made.main, ("enc/conv", "enc/act", "dec/conv", "dec/act"), strict=True):
        node.name = name
        node.output.name = f"{name}_out"
    return made


def recipe(*overrides: dict[str, object]) -> Recipe:
    return Recipe(overrides=tuple(Override(**given) for given in overrides))       # type: ignore[arg-type]


CONTRADICTIONS = {
    "the_same_pattern": ([{"name": "enc/*", "weights": "per-tensor"}, {"name": "enc/*", "weights": "per-axis"}],
                         "1 says weights = per-tensor, override 2 says weights = per-axis, of the same 2 nodes"),
    "the_same_nodes_otherwise": ([{"operator": "CONV_2D", "calibrator": "minmax"},
                                  {"nodes": ("enc/conv", "dec/conv"), "calibrator": "percentile"}],
                                 "calibrator = minmax, override 2 says calibrator = percentile, of the same 2 nodes"),
    "a_tensor": ([{"tensor": "enc/act_out", "percentile": 99.0}, {"tensor": "enc/a*", "percentile": 99.9}],
                 "of the same 1 tensor"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused(name: str) -> None:
    given, said = CONTRADICTIONS[name]
    with pytest.raises(UsageError, match=said) as told:
        settled(recipe(*given), model().main)
    assert [f.code for f in told.value.findings] == ["recipe.contradiction"]
    assert told.value.findings[0].help


OVERRULED = {
    "the_later_is_narrower": ([{"operator": "CONV_2D", "weights": "per-tensor"},
                               {"name": "enc/conv", "weights": "per-axis"}], []),
    "the_later_is_wider": ([{"name": "enc/conv", "weights": "per-axis"},
                            {"operator": "CONV_2D", "weights": "per-tensor"}], ["of 1 node: the later one holds"]),
    "they_cross": ([{"name": "enc/*", "calibrator": "minmax"}, {"operator": "RELU", "calibrator": "percentile"}],
                   ["of 1 node: the later one holds"]),
    "they_say_the_same": ([{"name": "enc/*", "calibrator": "minmax"},
                           {"operator": "RELU", "calibrator": "minmax"}], []),
    "they_say_other_things": ([{"name": "enc/*", "calibrator": "minmax"},
                               {"operator": "RELU", "percentile": 99.0}], []),
    "they_select_others": ([{"name": "enc/*", "weights": "per-axis"}, {"name": "dec/*", "weights": "per-tensor"}], []),
}


@pytest.mark.parametrize("name", OVERRULED)
def test_what_a_later_override_takes_is_told(name: str, tmp_path: Path) -> None:
    given, said = OVERRULED[name]
    made = settled(recipe(*given), model().main)
    found = overruled(made, selected(made, model().main))
    assert [f.headline.partition(", of ")[2] for f in found] == [text.removeprefix("of ") for text in said]
    if name == "they_cross":
        result = quantize(model(), statistics_of(model(), tmp_path, made), made)
        assert "recipe.overruled" in {f.code for f in result.findings}


def test_a_tensor_has_a_calibrator_of_its_own(tmp_path: Path) -> None:
    chosen = recipe({"operator": "RELU", "calibrator": "minmax"},
                    {"tensor": "dec/*", "calibrator": "percentile", "percentile": 90.0},
                    {"tensor": "x", "percentile": 95.0})
    graph = model().main
    by_name = {t.name: Calibrators(graph, chosen).of(t) for t in (*graph.inputs, *(n.output for n in graph))}
    assert by_name["enc/act_out"] == ("minmax", 99.99)
    assert by_name["dec/conv_out"] == by_name["dec/act_out"] == ("percentile", 90.0)
    assert by_name["x"][1] == 95.0
    assert parse_recipe(format_recipe(chosen)) == chosen
    arrays = noise(model())
    wide, cut = (quantize(model(), statistics_of(model(), tmp_path, r, arrays=arrays), r).model.main.outputs[0]
                 for r in (Recipe(calibrator="minmax"), chosen))
    assert wide.quantization is not None
    assert cut.quantization is not None
    assert float(np.max(cut.quantization.scale)) < 0.9 * float(np.max(wide.quantization.scale))


@pytest.mark.parametrize(("given", "said"), [
    ({"tensor": "enc/cov_out", "calibrator": "minmax"}, r"'enc/cov_out' selects no tensor\n.*\n.*'enc/conv_out'"),
    ({"tensor": "enc/*", "activations": "int16"}, "gives activations, which nodes have"),
])
def test_wrong_overrides_of_tensors(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        settled(recipe(given), model().main)
