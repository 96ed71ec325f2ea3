"""Who shares a scale, where a requantization stands, and which values get no levels."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import Model, Tensor
from vitrify.quant import Override, Recipe, Statistics, quantize
from vitrify.quant.calibration.statistics import TensorStatistics
from vitrify.quant.planning import plan


def seen(**ranges: tuple[float, float]) -> Statistics:
    """Statistics that say these ranges."""
    made = Statistics()
    for name, (low, high) in ranges.items():
        made.tensors[name] = TensorStatistics()
        made.tensors[name].low, made.tensors[name].high = low, high
    return made


def joined(net: Net, readers: bool) -> Model:
    """Two relus of the input, joined; with ``readers`` the first is read by another node as well."""
    one = net.add(ops.Relu(), net.x, name="one")
    two = net.add(ops.Relu(), net.x, name="two")
    one.name, two.name = "one", "two"
    out = net.add(ops.Concatenation(axis=3), one, two, name="join")
    out.name = "join"
    extra = [net.add(ops.Tanh(), one, name="reader")] if readers else []
    return net.model(out, *extra)


@pytest.mark.parametrize(("narrow", "readers", "requantized"), [
    (1.0, True, 0), (0.5, True, 0), (0.1, True, 1), (0.1, False, 0)],
    ids=["same range", "half the range", "poor with another reader", "poor without"])
def test_members_of_a_join_share_a_scale_unless_it_costs(narrow: float, readers: bool, requantized: int) -> None:
    model = joined(Net(1, 4, 4, 3), readers)
    made = plan(model.main, seen(x=(-1, 1), one=(0, narrow), two=(0, 1), join=(0, 1)), Recipe(outputs="keep"))
    assert len(made.requantize) == requantized
    by_name = {t.name: q for t, q in made.activations.items()}
    assert (by_name["one"] == by_name["join"]) == (requantized == 0)
    assert by_name["two"] == by_name["join"]


def logistic_join(net: Net, other: Callable[[Tensor], Tensor]) -> Model:
    return net.model(net.add(ops.Concatenation(axis=3), net.add(ops.Logistic(), net.x, name="sigmoid"), other(net.x)))


@pytest.mark.parametrize(("other", "requantized", "scale"), [
    (ops.Logistic(), 0, 1 / 256), (ops.Tanh(), 1, None), (ops.Relu(), 0, 1 / 256)],
    ids=["both fixed alike", "fixed apart", "free beside fixed"])
def test_fixed_scales_in_a_join(other: ops.Operator, requantized: int, scale: float | None, tmp_path: Path) -> None:
    net = Net(1, 4, 4, 3)
    model = logistic_join(net, lambda x: net.add(other, x, name="other"))
    arrays = noise(model, low=-0.9, high=0.9)
    result = quantize(model, statistics_of(model, tmp_path, arrays=arrays))
    assert kinds(result.model).count("QUANTIZE") == requantized
    if scale is not None:
        quantization = result.model.main.outputs[0].quantization
        assert quantization is not None
        assert quantization.scale[0] == pytest.approx(scale)
    (wanted,), (found,) = run(model, arrays[0], "fast").values(), run(result.model, arrays[0]).values()
    assert sqnr(wanted, found) > 30


def test_a_sum_far_below_its_terms_is_widened(tmp_path: Path) -> None:
    net = Net(1, 4)
    big = net.add(ops.Mul(), net.x, net.constant(np.float32(1e6)), name="big")
    model = net.model(net.add(ops.Sub(), big, net.add(ops.Mul(), big, net.constant(np.float32(1)))))
    result = quantize(model, statistics_of(model, tmp_path))
    (node,) = result.model.main.nodes_of(ops.Sub)
    scales = [float(t.quantization.scale[0]) for t in (*node.inputs, node.output) if t is not None and t.quantization]
    assert scales[2] > 2 * max(scales[:2]) / 2 ** 20
    assert np.all(run(result.model, noise(model)[0])[model.main.outputs[0].name] == 0)


def test_padding_with_minus_infinity_leaves_the_levels_to_the_values(tmp_path: Path) -> None:
    net = Net(1, 4, 4, 3)
    padded = net.add(ops.PadV2(), net.conv(net.x, 3, name="conv"), net.constant([[0, 0], [1, 1], [1, 1], [0, 0]]),
                     net.constant(np.float32(-3.4e38)))
    model = net.model(net.add(ops.MaxPool2D(filter_height=3, filter_width=3, padding=ops.Padding.VALID), padded))
    result = quantize(model, statistics_of(model, tmp_path))
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert sqnr(wanted, found) > 30


SATURATION = {
    "hard_swish": (lambda n, t: n.add(ops.HardSwish(), t), (-100, 10), -3.0, 10),
    "logistic": (lambda n, t: n.add(ops.Logistic(), t), (-200, 100), -6.93, 5.32),
    "tanh": (lambda n, t: n.add(ops.Tanh(), t), (-50, 50), -3.47, 2.66),
    "silu": (lambda n, t: n.add(ops.Mul(), t, n.add(ops.Logistic(), t)), (-100, 10), -5.65, 10),
    "hard_swish_and_conv": (lambda n, t: n.add(ops.Add(), n.add(ops.HardSwish(), t), n.conv(t, 3)),
                            (-100, 10), -100, 10),
    "nothing_flat": (lambda n, t: n.conv(t, 3), (-100, 10), -100, 10),
}


@pytest.mark.parametrize("case", SATURATION)
def test_flat_ends_of_activations_get_no_levels(case: str) -> None:
    reader, (low, high), wanted_low, wanted_high = SATURATION[case]
    net = Net(1, 4, 4, 3)
    before = net.add(ops.Add(), net.x, net.x, name="before")
    before.name = "before"
    model = net.model(reader(net, before))
    statistics = seen(x=(-1, 1), before=(low, high))
    for tensor in model.main.tensors():
        if tensor.name not in statistics:
            statistics.merge(seen(**{tensor.name: (-0.3, 10)}))
    quantization = plan(model.main, statistics, Recipe()).activations[before]
    step, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    assert step * (-128 - zero) == pytest.approx(wanted_low, abs=step)
    assert step * (127 - zero) == pytest.approx(wanted_high, abs=step)


def test_overrides_choose_per_node() -> None:
    net = Net(1, 8, 8, 3)
    first = net.conv(net.x, 4, name="backbone/conv")
    model = net.model(net.conv(first, 4, name="head/conv"))
    recipe = Recipe(overrides=(Override(name="head/*", weights="per-tensor"),))
    statistics = seen(**{t.name: (-1, 1) for t in model.main.tensors() if not t.is_constant})
    sizes = {n.name: w.quantization.scale.size for n, w in plan(model.main, statistics, recipe).weights.items()}
    assert sizes == {"backbone/conv": 4, "head/conv": 1}


def test_biases_take_up_what_rounding_shifts(tmp_path: Path) -> None:
    net = Net(1, 16, 16, 32)
    weights = net.constant(np.full((4, 1, 1, 32), 0.4983) + np.eye(4, 32)[:, None, None, :] * 126.5)
    model = net.model(net.add(ops.Conv2D(), net.x, weights, net.constant(np.zeros(4))))
    arrays = noise(model, low=0.5, high=1.0)
    errors = {}
    for corrected in (True, False):
        recipe = Recipe(bias_correction=corrected)
        result = quantize(model, statistics_of(model, tmp_path, recipe, arrays), recipe)
        (wanted,), (found,) = run(model, arrays[0], "fast").values(), run(result.model, arrays[0]).values()
        errors[corrected] = float(np.abs((found - wanted).mean()))
    assert errors[True] < errors[False] / 4
