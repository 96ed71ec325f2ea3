"""Tails that int8 cannot hold are computed behind the file, exactly where the float model would."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import QuantizeResult, Recipe, quantize
from vitrify.tflite import read_bytes, to_bytes

ANCHORS = np.linspace(20, 620, 64).reshape(1, 64, 1)


def heads(net: Net, *sizes: int, gain: float = 2.0) -> list[Tensor]:
    """A convolution over 64 places, cut into heads [1, 64, n]."""
    made = net.conv(net.x, sum(sizes), gain=gain, name="heads")
    flat = net.add(ops.Reshape(new_shape=(1, 64, sum(sizes))), made, net.constant([1, 64, sum(sizes)]))
    return list(net.graph.add(ops.SplitV(num_splits=len(sizes)), [flat, net.constant(list(sizes)), net.constant(2)],
                              name="cut").outputs)


def strides(net: Net, x: Tensor) -> Tensor:
    """Places: what a head says times a stride of 8, around anchors over 640 pixels."""
    return net.add(ops.Add(), net.add(ops.Mul(), x, net.constant(np.float32(8))), net.constant(ANCHORS))


def rotated(net: Net) -> list[Tensor]:
    """Boxes turned by an angle, beside scores and the angle: as oriented detectors give them."""
    side, angle, score = heads(net, 1, 1, 2)
    turn = net.add(ops.Logistic(), angle, name="angle")
    x = strides(net, net.add(ops.Mul(), side, net.add(ops.Cos(), turn)))
    y = strides(net, net.add(ops.Mul(), side, net.add(ops.Sin(), turn)))
    return [net.add(ops.Concatenation(axis=2), x, y, net.add(ops.Logistic(), score, name="scores"), turn)]


def best(net: Net) -> list[Tensor]:
    """The 8 best of 64 boxes, their scores and class numbers, as detectors without suppression give them."""
    side, score = heads(net, 4, 3)
    boxes, scores = strides(net, side), net.add(ops.Logistic(), score, name="scores")
    most = net.add(ops.ReduceMax(keep_dims=False), scores, net.constant([2]))
    kinds = net.add(ops.ArgMax(output_type=DType.INT32.value), scores, net.constant(2))
    values, chosen = net.graph.add(ops.TopKV2(), [most, net.constant(8)], name="best").outputs
    flat = net.add(ops.Reshape(new_shape=(8,)), chosen, net.constant([8]))
    numbers = net.add(ops.Cast(in_data_type=DType.INT32.value, out_data_type=DType.FLOAT32.value),
                      net.add(ops.Gather(axis=1), kinds, flat))
    columns = [net.add(ops.Reshape(new_shape=(1, 8, 1)), c, net.constant([1, 8, 1])) for c in (values, numbers)]
    return [net.add(ops.Concatenation(axis=2), net.add(ops.Gather(axis=1), boxes, flat), *columns)]


def distances(net: Net) -> list[Tensor]:
    """The mean of a distribution over 16 distances, times a stride, from an anchor; beside one score."""
    shares, score = heads(net, 16, 1)
    spread = net.add(ops.Softmax(), net.add(ops.Reshape(new_shape=(1, 64, 1, 16)), shares,
                                            net.constant([1, 64, 1, 16])))
    weights = net.constant(np.arange(16.0).reshape(1, 1, 1, 16))
    mean = net.add(ops.Conv2D(), spread, weights, net.constant(np.zeros(1)), name="mean")
    flat = net.add(ops.Reshape(new_shape=(1, 64, 1)), mean, net.constant([1, 64, 1]))
    return [net.add(ops.Concatenation(axis=2), strides(net, flat), net.add(ops.Logistic(), score, name="scores"))]


def numbers(net: Net) -> list[Tensor]:
    """The class of each place as a real number, among 300, beside the largest score."""
    scores = net.conv(net.x, 300, name="logits")
    kinds = net.add(ops.ArgMax(output_type=DType.INT32.value), scores, net.constant(3))
    return [net.add(ops.Cast(in_data_type=DType.INT32.value, out_data_type=DType.FLOAT32.value), kinds, name="class"),
            net.add(ops.ReduceMax(keep_dims=False), scores, net.constant([3]), name="most")]


def constants(net: Net) -> list[Tensor]:
    """Boxes beside the one class number that there is."""
    side, = heads(net, 4)
    return [net.add(ops.Concatenation(axis=2), net.add(ops.Logistic(), side, name="boxes"),
                    net.constant(np.full((1, 64, 1), 700.0)))]


@dataclass(frozen=True)
class Tail:
    """A model, what its host program must and the file must not hold, and what of its outputs must be kept."""

    make: Callable[[Net], list[Tensor]]
    hosted: set[str]
    check: Callable[[list[np.ndarray], list[np.ndarray]], bool]


def within(limit: float, columns: slice) -> Callable[[list[np.ndarray], list[np.ndarray]], bool]:
    return lambda wanted, got: float(np.abs(wanted[0][..., columns] - got[0][..., columns]).max()) < limit


TAILS = {
    "rotated boxes": Tail(rotated, {"SIN", "COS", "ADD"}, within(1.0, slice(0, 2))),
    "best boxes": Tail(best, {"TOPK_V2", "GATHER", "CAST"},
                       lambda w, g: bool(np.isin(g[0][0, :, 5], [0, 1, 2]).all()) and
                       float(np.abs(np.sort(w[0][0, :, 4]) - np.sort(g[0][0, :, 4])).max()) < 0.02),
    "mean distances": Tail(distances, {"SOFTMAX", "CONV_2D", "ADD"}, within(0.5, slice(0, 1))),
    "class numbers": Tail(numbers, {"CAST"}, lambda w, g: float((w[0] == g[0]).mean()) > 0.7 and
                          bool((g[0] == np.rint(g[0])).all()) and float(g[0].max()) > 255),
    "a constant class": Tail(constants, {"CONCATENATION"}, lambda w, g: bool((g[0][..., 4] == 700).all()) and
                             sqnr(w[0][..., :4], g[0][..., :4]) > 30),
}


def quantized(make: Callable[[Net], list[Tensor]], folder: Path, recipe: Recipe = Recipe()
              ) -> tuple[Model, QuantizeResult]:
    net = Net(1, 8, 8, 3)
    model = net.model(*make(net))
    return model, quantize(model, statistics_of(model, folder), recipe)


@pytest.mark.parametrize("name", TAILS)
def test_tails_are_computed_behind_the_file(name: str, tmp_path: Path) -> None:
    tail = TAILS[name]
    model, result = quantized(tail.make, tmp_path)
    assert result.model.interface is not None
    assert result.model.interface.host is not None
    steps = {s.operator for s in result.model.interface.host.steps}
    assert tail.hosted <= steps
    left = {n.op.kind for n in result.model.main}
    assert not (tail.hosted - {"CONV_2D", "CONCATENATION"}) & left
    again = read_bytes(bytes(to_bytes(result.model)))
    for sample in noise(model)[:2]:
        wanted, got = run(model, sample, "fast"), run(again, sample)
        assert tail.check(list(wanted.values()), list(got.values()))


def test_layers_before_places_are_finer(tmp_path: Path) -> None:
    types = {}
    for bits in (8, 16):
        _, result = quantized(distances, tmp_path, Recipe(host_bits=bits))
        types[bits] = {t.dtype for t in result.model.main.outputs}
    assert DType.INT16 not in types[8]
    assert DType.INT16 in types[16]


def two_tasks(net: Net) -> list[Tensor]:
    """Depth in metres and its confidence, in one tensor."""
    depth = net.add(ops.Relu(), net.conv(net.x, 1, gain=40, name="depth"))
    return [net.add(ops.Concatenation(axis=3), depth,
                    net.add(ops.Logistic(), net.conv(net.x, 1, name="sure"), name="confidence"))]


@pytest.mark.parametrize(("outputs", "resolved", "levels"), [
    ("split", "separate outputs", 30), ("normalize", "parts scaled to -1..1", 30), ("keep", "", 0)])
def test_conflicts_name_the_part_and_what_was_done(outputs: str, resolved: str, levels: int, tmp_path: Path) -> None:
    model, result = quantized(two_tasks, tmp_path, Recipe(outputs=outputs))      # type: ignore[arg-type]
    conflict = result.conflicts[0]
    assert (conflict.part, conflict.operator, conflict.resolved) == ("confidence_logistic", "CONCATENATION", resolved)
    assert conflict.levels < 8
    (got,) = run(result.model, noise(model)[0]).values()
    told_apart = len(np.unique(got[..., 1]))        # of 64 values
    assert told_apart > levels if levels else told_apart < 10


def cut_apart(net: Net) -> list[Tensor]:
    """One layer whose channels mean different things to their readers."""
    scale = np.repeat([100.0, 0.5], 4)
    made = net.add(ops.Mul(), net.conv(net.x, 8, name="both"), net.constant(scale))
    large, small = net.graph.add(ops.Split(num_splits=2), [net.constant(3), made], name="cut").outputs
    return [net.conv(large, 2, name="one"), net.conv(small, 2, name="two")]


def test_slices_used_apart_are_conflicts(tmp_path: Path) -> None:
    _, result = quantized(cut_apart, tmp_path)
    conflict = result.conflicts[0]
    assert conflict.operator == "SPLIT"
    assert conflict.levels < 8
    assert conflict.high < 5 < conflict.whole_high
    (finding,) = [f for f in result.findings if f.code == "range.parts"]
    assert "of 256" in finding.headline


def padded(net: Net) -> list[Tensor]:
    """A pooling behind a padding of the lowest float."""
    made = net.add(ops.Relu6(), net.conv(net.x, 4, gain=6, name="made"))
    lowest = net.constant(np.float32(np.finfo(np.float32).min))
    wide = net.add(ops.PadV2(), made, net.constant([[0, 0], [1, 1], [1, 1], [0, 0]]), lowest, name="pad")
    return [net.add(ops.MaxPool2D(padding=ops.Padding.VALID, stride_w=2, stride_h=2, filter_width=3, filter_height=3),
                    wide, name="pool")]


def test_a_constant_for_infinity_is_left_out_and_told_of(tmp_path: Path) -> None:
    model, result = quantized(padded, tmp_path)
    assert "range.outlier_constant" in [f.code for f in result.findings]
    sample = noise(model)[0]
    (wanted,), (got,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert sqnr(wanted, got) > 35
    (output,) = result.model.main.outputs
    assert output.quantization is not None
    assert 6 / float(output.quantization.scale[0]) > 200
