"""What is refused, with every reason at once; what the file's own inputs and outputs look like; recipes as text."""

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.core.errors import DataError, ModelError, UnsupportedError, UsageError
from vitrify.ir import DType, Graph, Model, Origin, Tensor
from vitrify.passes import to_integer_forms
from vitrify.quant import (
    Override,
    Recipe,
    Statistics,
    format_recipe,
    load_recipe,
    parse_recipe,
    quantize,
    save_recipe,
)


def test_every_operator_without_an_int8_form_is_named() -> None:
    net = Net(1, 4)
    axis = net.constant(1)
    net.graph.add(ops.Cumsum(), [net.x, axis], name="sum_a", origin=Origin.of("/pos/CumSum", "CumSum"))
    total = net.add(ops.Cumsum(), net.x, axis, name="sum_b")
    model = net.model(net.add(ops.Atan2(), total, net.x, name="angle"))
    with pytest.raises(UnsupportedError) as caught:
        quantize(model, Statistics())
    text = str(caught.value)
    assert len(caught.value.findings) == 2
    for part in ("2 x CUMSUM", "'sum_a'", "'sum_b'", "/pos/CumSum", "1 x ATAN2", "'angle'"):
        assert part in text


def sequence(steps: int, clip: float = 0.0, time_major: bool = True,
             activation: ops.Activation = ops.Activation.RELU) -> Model:
    """An LSTM as it stands in a float model."""
    net = Net(*((steps, 1, 2) if time_major else (1, steps, 2)))
    weights = [net.weights(3, 2) for _ in "ifco"] + [net.weights(3, 3) for _ in "ifco"]
    states = [Tensor(name, DType.FLOAT32, (1, 3), is_variable=True) for name in "hc"]
    op = ops.UnidirectionalSequenceLSTM(fused_activation_function=activation, time_major=time_major, cell_clip=clip)
    inputs = [net.x, *weights, None, None, None, *(net.constant(np.zeros(3)) for _ in "ifco"), None, None, *states]
    node = net.graph.add(op, [*inputs, None, None, None, None], name="hearing", origin=Origin.of("/rnn/LSTM", "LSTM"))
    return net.model(node.output)


@pytest.mark.parametrize(("model", "parts"), [
    (sequence(5000), ("'hearing' has 5,000 steps; up to 4,096", "/rnn/LSTM", "shorter sequences")),
    (sequence(4097, time_major=False), ("'hearing' has 4,097 steps", "/rnn/LSTM")),
    (sequence(4, clip=0.5), ("1 x UNIDIRECTIONAL_SEQUENCE_LSTM", "no clipping")),
], ids=["long", "batch first", "clipped"])
def test_a_sequence_that_is_not_written_out_says_why(model: Model, parts: tuple[str, ...]) -> None:
    to_integer_forms(model)
    with pytest.raises(UnsupportedError) as caught:
        quantize(model, Statistics())
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_a_quantized_model_is_refused(tmp_path: Path) -> None:
    net = Net(1, 4, 4, 3)
    model = net.model(net.conv(net.x, 2))
    statistics = statistics_of(model, tmp_path)
    once = quantize(model, statistics).model
    with pytest.raises(ModelError, match="quantized already"):
        quantize(once, statistics)


def test_weights_computed_at_run_time_are_refused() -> None:
    net = Net(3, 3, 3, 3)
    model = net.model(net.add(ops.Conv2D(), net.x, net.add(ops.Tanh(), net.x), net.constant(np.zeros(3))))
    with pytest.raises(UnsupportedError, match="computes its weights at run time"):
        quantize(model, Statistics())


def test_several_graphs_are_refused() -> None:
    net = Net(1, 4)
    model = net.model(net.add(ops.Relu(), net.x))
    with pytest.raises(UnsupportedError, match="2 graphs"):
        quantize(Model([model.main, Graph("other")]), Statistics())


def test_statistics_of_another_model_are_refused(tmp_path: Path) -> None:
    net = Net(1, 4, 4, 3)
    model = net.model(net.conv(net.x, 2, name="mine"))
    other = Net(1, 4, 4, 3, name="y")
    statistics = statistics_of(other.model(other.conv(other.x, 2, name="theirs")), tmp_path)
    with pytest.raises(DataError, match="the first is 'x'"):
        quantize(model, statistics)


def test_infinity_is_named_with_tensor_and_sample(tmp_path: Path) -> None:
    net = Net(1, 4)
    logs = net.add(ops.Log(), net.x, name="log")
    model = net.model(net.add(ops.Mul(), logs, logs, name="square"))
    arrays = [{"x": np.ones((1, 4), np.float32)}, {"x": np.zeros((1, 4), np.float32)}]
    with pytest.raises(ModelError, match=r"tensor 'log_log' holds NaN or infinity, and in 1 tensors") as caught:
        statistics_of(model, tmp_path, arrays=arrays)
    assert "001.npz" in str(caught.value)


@pytest.mark.parametrize("output", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("given", ["int8", "uint8", "float32"])
def test_types_of_inputs_and_outputs(given: str, output: str, tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(net.add(ops.HardSwish(), net.conv(net.x, 4)))
    recipe = parse_recipe(f'input_type = "{given}"\noutput_type = "{output}"')
    result = quantize(model, statistics_of(model, tmp_path, recipe), recipe)
    graph = result.model.main
    assert graph.inputs[0].dtype is DType[given.upper()]
    assert graph.outputs[0].dtype is DType[output.upper()]
    assert graph.inputs[0].name == "x"
    assert kinds(result.model).count("QUANTIZE") == (given != "int8") + (output == "uint8")
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert sqnr(wanted, found) > 30
    plain = quantize(model, statistics_of(model, tmp_path)).model
    (same,) = run(plain, sample).values()
    assert np.array_equal(same, found)


RECIPE = Recipe(calibrator="percentile", percentile=99.9, output_type="float32", outputs="keep", bias_correction=False,
                overrides=(Override(name="head/*", operator="CONV_2D", weights="per-tensor"),
                           Override(name='odd "name"', calibrator="minmax")))


@pytest.mark.parametrize("recipe", [Recipe(), RECIPE], ids=["default", "everything"])
def test_recipes_read_back(recipe: Recipe, tmp_path: Path) -> None:
    save_recipe(recipe, tmp_path / "recipe.toml")
    assert load_recipe(tmp_path / "recipe.toml") == recipe
    assert parse_recipe(format_recipe(recipe)) == recipe


@pytest.mark.parametrize(("text", "message"), [
    ("calibrater = 'minmax'", "unknown field `calibrater`"),
    ("calibrator = 'best'", "Invalid enum value 'best'"),
    ("percentile = 30", "percentile must be above 50 and at most 100, got 30"),
    ("split_levels = 0", "split_levels must be in 1..256, got 0"),
    ("= 3", "the recipe is not TOML"),
    ("[[overrides]]\nnames = 'x'", "unknown field `names`"),
    ("[[overrides]]\npercentile = 101.5", "got 101.5"),
], ids=lambda value: str(value)[:20])
def test_wrong_recipes_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_recipe(text)


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.toml"):
        load_recipe(tmp_path / "no.toml")
