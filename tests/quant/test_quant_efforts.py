"""Efforts, presets, the parts of a model that a recipe names, scaled channels, and weights' scales.

`python tests/quant/test_quant_efforts.py` writes the tables of docs/quantization.md anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vitrify.core.errors import UsageError
from vitrify.ir import DType, Graph, Tensor
from vitrify.ops import Conv2D, Relu, Relu6
from vitrify.ops.attributes import Activation
from vitrify.quant.calibration.calibrators import node_names
from vitrify.quant.calibration.ranges import range_of
from vitrify.quant.calibration.statistics import Range, TensorStatistics
from vitrify.quant.efforts import EFFORTS, SAYS, effort_table
from vitrify.quant.equalizing.channels import Channels
from vitrify.quant.equalizing.choosing import Seen, choose_scales
from vitrify.quant.equalizing.scaling import scale_channels
from vitrify.quant.presets import load_preset, preset_names, preset_table
from vitrify.quant.recipe import Override, Recipe, format_recipe, parse_recipe
from vitrify.quant.scales import quantize_weights, weight_scales
from vitrify.quant.selecting import settled
from vitrify.quant.weights.clipping import clipped_scales

PAGE = Path(__file__).parent.parent.parent / "docs" / "quantization.md"
TABLES = {"efforts": effort_table, "presets": preset_table}


def page_with_tables() -> str:
    text = PAGE.read_text()
    for name, table in TABLES.items():
        before, rest = text.split(f"<!-- begin {name} -->")
        text = f"{before}<!-- begin {name} -->\n\n" + "\n".join(table()) + f"\n\n<!-- end {name} -->" \
            + rest.split(f"<!-- end {name} -->")[1]
    return text


def chain(activation: Activation = Activation.NONE, kind: type = Relu) -> tuple[Graph, Tensor]:
    """A 1x1 convolution whose channels differ a thousandfold, an activation, and a convolution that reads it."""
    rng = np.random.default_rng(1)
    graph = Graph("main")
    x = Tensor("x", DType.FLOAT32, (1, 4, 4, 3))
    graph.inputs = [x]
    wide = (10.0 ** np.linspace(-2, 1, 6)).astype(np.float32).reshape(6, 1, 1, 1)
    first = rng.normal(size=(6, 1, 1, 3)).astype(np.float32) * wide
    second = rng.normal(size=(5, 1, 1, 6)).astype(np.float32) / wide.reshape(1, 1, 1, 6)
    a, b, y = (Tensor(n, DType.FLOAT32, (1, 4, 4, c)) for n, c in (("a", 6), ("b", 6), ("y", 5)))
    graph.add(Conv2D(fused_activation_function=activation), [x, constant("w", first), constant("v", wide.reshape(-1))],
              [a], name="enc/conv")
    graph.add(kind(), [a], [b], name="enc/act")
    graph.add(Conv2D(), [b, constant("u", second), constant("z", np.ones(5, np.float32))], [y], name="dec/conv")
    graph.set_outputs([y])
    return graph, b


def constant(name: str, data: np.ndarray) -> Tensor:
    return Tensor(name, DType.FLOAT32, data.shape, data=data.astype(np.float32))


def test_scaled_channels_compute_the_same() -> None:
    graph, hidden = chain()
    before = run(graph, [hidden])
    channels = Channels(graph)
    scales = choose_scales(graph, channels, {t: Seen.of(run(graph, [t])[0]) for t in channels.tensors()})
    assert scale_channels(graph, scales) == 2
    after = run(graph, [hidden])
    np.testing.assert_allclose(after[-1], before[-1], rtol=1e-5, atol=1e-5)
    spread = [np.ptp(np.log10(v[0].reshape(-1, 6).max(axis=0))) for v in (before, after)]
    assert spread[1] < spread[0] / 2


def run(graph: Graph, wanted: list[Tensor]) -> list[np.ndarray]:
    """The values of some tensors and of the output."""
    x = np.random.default_rng(0).normal(size=graph.inputs[0].shape).astype(np.float32)
    known: dict[Tensor, np.ndarray] = {graph.inputs[0]: x}
    for node in graph:
        inputs = [None if t is None else t.data if t.is_constant else known[t] for t in node.inputs]
        known.update(zip(node.outputs, node.op.evaluate(inputs), strict=True))
    return [known[t] for t in (*wanted, graph.outputs[0])]


@pytest.mark.parametrize(("activation", "kind"), [(Activation.RELU6, Relu), (Activation.NONE, Relu6)],
                         ids=["fused", "apart"])
def test_what_is_cut_at_six_is_not_scaled(activation: Activation, kind: type) -> None:
    graph, hidden = chain(activation, kind)
    channels = Channels(graph)
    assert hidden not in channels.tensors() or activation is Activation.RELU6
    assert not channels.free[channels.of(graph.inputs[0])].any()
    assert not channels.free[channels.of(graph.outputs[0])].any()


def test_scales_of_few_weights_lose_less() -> None:
    weights = np.random.default_rng(3).normal(size=(64, 9)).astype(np.float32)
    plain = weight_scales(weights, 0, None, 1.0)
    chosen = clipped_scales(weights, plain, None)

    def lost(scales: object) -> float:
        return float(np.square(scales.dequantize(quantize_weights(weights, scales)) - weights).sum())  # type: ignore[attr-defined]

    assert (chosen.scale <= plain.scale).all()
    assert lost(chosen) < 0.98 * lost(plain)


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_effort_sets_what_the_text_does_not(effort: str) -> None:
    recipe = parse_recipe(f'effort = "{effort}"\nrounding_inputs = 7')
    expected = {**EFFORTS[effort], "rounding_inputs": 7}                        # type: ignore[index]
    assert {key: getattr(recipe, key) for key in SAYS} == expected
    assert parse_recipe(format_recipe(recipe)) == recipe


def test_the_default_is_balanced() -> None:
    assert parse_recipe("", "balanced") == Recipe()


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_recipes(name: str) -> None:
    assert load_preset(name, "fast").effort == "fast"
    assert parse_recipe(format_recipe(load_preset(name))) == load_preset(name)


def test_a_wrong_preset_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="transformer"):
        load_preset("transformers")


@pytest.mark.parametrize(("rule", "selected"), [
    (Override(partition="enc"), ["enc/conv", "enc/act"]),
    (Override(partition="enc/act..dec/conv"), ["enc/act", "dec/conv"]),
    (Override(nodes=("dec/conv",)), ["dec/conv"]),
    (Override(name="*conv", operator="conv_2d"), ["enc/conv", "dec/conv"]),
], ids=["module", "range", "nodes", "kind"])
def test_parts_of_a_model(rule: Override, selected: list[str]) -> None:
    graph, _ = chain()
    found = settled(Recipe(overrides=(rule,)), graph).overrides[0]
    assert [n.name for n in graph if found.matches(node_names(n), n.op.kind)] == selected


@pytest.mark.parametrize(("rule", "said"), [
    (Override(name="enc/con"), "near are 'enc/conv'"),
    (Override(operator="CONV2D"), "operators of the model are CONV_2D, RELU"),
    (Override(partition="encoder"), "near are 'enc"),
    (Override(partition="enc/conv..dec/cnv"), "there is no node 'dec/cnv'"),
    (Override(partition="dec/conv..enc/conv"), "comes before"),
    (Override(name="enc/conv", operator="RELU"), "none together"),
], ids=["name", "operator", "module", "end", "reversed", "together"])
def test_what_selects_nothing_is_told(rule: Override, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        settled(Recipe(overrides=(rule,)), chain()[0])


def test_a_moving_average_lets_one_outlier_count_little() -> None:
    seen = TensorStatistics()
    for high in (1.0, 1.0, 9.0, 1.0):
        seen.low, seen.high = min(seen.low, -1.0), max(seen.high, high)
        seen.move(-1.0, high)
    assert range_of(seen, "minmax", 100) == Range(-1.0, 9.0)
    found = range_of(seen, "moving-average", 100)
    assert found.low == pytest.approx(-1.0)
    assert 2 < found.high < 4


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_tables(name: str) -> None:
    assert "\n".join(TABLES[name]()) in PAGE.read_text()


if __name__ == "__main__":
    PAGE.write_text(page_with_tables())
