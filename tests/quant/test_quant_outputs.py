"""Outputs of mixed range are taken apart, and come back together as the source model gives them."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from quant_graphs import Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.core.findings import Severity
from vitrify.data.binding import identity_interface
from vitrify.ir import Model, Tensor
from vitrify.quant import Recipe, quantize
from vitrify.tflite import read_bytes, to_bytes


def boxes_and_scores(net: Net, axis: int = 2) -> Tensor:
    """[1, 64, 4] boxes of 0..640 beside [1, 64, 2] scores of 0..1, as detectors give them."""
    heads = net.conv(net.x, 6, gain=3, name="head")
    flat = net.add(ops.Reshape(new_shape=(1, 64, 6)), heads, net.constant([1, 64, 6]))
    parts = net.graph.add(ops.SplitV(num_splits=2), [flat, net.constant([4, 2]), net.constant(2)], name="split").outputs
    boxes = net.add(ops.Relu(), parts[0], name="boxes")
    scaled = net.add(ops.HardSwish(), net.add(ops.Mul(), boxes, net.constant(np.float32(100))), name="pixels")
    return net.add(ops.Concatenation(axis=axis), scaled, net.add(ops.Logistic(), parts[1], name="scores"), name="join")


def plain(net: Net) -> Tensor:
    return boxes_and_scores(net)


def transposed(net: Net) -> Tensor:
    return net.add(ops.Transpose(), boxes_and_scores(net), net.constant([0, 2, 1]))


def reshaped(net: Net) -> Tensor:
    return net.add(ops.Reshape(new_shape=(1, 8, 8, 6)), boxes_and_scores(net), net.constant([1, 8, 8, 6]))


@pytest.mark.parametrize("make", [plain, transposed, reshaped], ids=lambda f: f.__name__)
def test_parts_get_their_own_scale_and_join_again(make: Callable[[Net], Tensor], tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(make(net))
    result = quantize(model, statistics_of(model, tmp_path))
    (finding,) = [f for f in result.findings if f.code == "range.collision"]
    assert finding.severity is Severity.INFO
    assert "1 of 256 levels" in finding.headline
    assert len(result.model.main.outputs) == 2
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    axis = wanted.shape.index(6)
    pick = [np.take(wanted, range(4, 6), axis), np.take(found, range(4, 6), axis)]
    assert sqnr(*pick) > 30
    assert len(np.unique(pick[1])) > 60
    scores = result.model.main.outputs[1].quantization
    assert scores is not None
    assert 1 / float(scores.scale[0]) > 200      # levels for 0..1


def test_the_joining_survives_the_file(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(transposed(net))
    result = quantize(model, statistics_of(model, tmp_path))
    again = read_bytes(bytes(to_bytes(result.model)))
    assert again.interface == result.model.interface
    sample = noise(model)[0]
    (one,), (two,) = run(result.model, sample).values(), run(again, sample).values()
    assert np.array_equal(one, two)


def test_layout_of_the_source_is_kept(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(plain(net))
    interface = identity_interface(model)
    (old,) = interface.outputs
    part = msgspec.structs.replace(old.parts[0], perm=(0, 2, 1))
    model.interface = msgspec.structs.replace(
        interface, outputs=(msgspec.structs.replace(old, shape=(1, 6, 64), parts=(part,)),))
    result = quantize(model, statistics_of(model, tmp_path))
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert found.shape == (1, 6, 64)
    assert sqnr(wanted[:, 4:], found[:, 4:]) > 30


def test_keep_leaves_the_output_and_warns(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(plain(net))
    result = quantize(model, statistics_of(model, tmp_path), Recipe(outputs="keep"))
    (finding,) = [f for f in result.findings if f.code == "range.collision"]
    assert finding.severity is Severity.WARNING
    assert len(result.model.main.outputs) == 1
    sample = noise(model)[0]
    assert len(np.unique(run(result.model, sample)[model.main.outputs[0].name][:, :, 4:])) <= 2


def test_similar_parts_stay_together(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(net.add(ops.Concatenation(axis=3), net.conv(net.x, 3), net.conv(net.x, 3, gain=2)))
    result = quantize(model, statistics_of(model, tmp_path))
    assert len(result.model.main.outputs) == 1
    assert not result.findings


def decoded(net: Net) -> Tensor:
    """Boxes decoded from distances to anchors over 80 cells, times the stride, beside scores."""
    heads = net.add(ops.Reshape(new_shape=(1, 64, 6)), net.conv(net.x, 6, gain=2), net.constant([1, 64, 6]))
    near, scores = net.graph.add(ops.SplitV(num_splits=2), [heads, net.constant([4, 2]), net.constant(2)],
                                 name="split").outputs
    distance = net.add(ops.HardSwish(), near, name="distance")
    first, second = net.graph.add(ops.Split(num_splits=2), [net.constant(2), distance], name="halves").outputs
    anchors = net.constant(np.linspace(0.5, 79.5, 128).reshape(1, 64, 2))
    low, high = net.add(ops.Sub(), anchors, first), net.add(ops.Add(), anchors, second)
    boxes = net.add(ops.Mul(), net.add(ops.Concatenation(axis=2), low, high), net.constant(np.float32(8)))
    return net.add(ops.Concatenation(axis=2), boxes, net.add(ops.Logistic(), scores, name="scores"))


def test_arithmetic_that_int8_cannot_hold_moves_to_the_host(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model: Model = net.model(decoded(net))
    result = quantize(model, statistics_of(model, tmp_path))
    assert result.model.interface is not None
    assert result.model.interface.host is not None
    assert [s.operator for s in result.model.interface.host.steps] == [
        "SPLIT", "SUB", "ADD", "CONCATENATION", "MUL", "CONCATENATION"]
    assert "LOGISTIC" in [n.op.kind for n in result.model.main]
    assert not {"SUB", "MUL"} & {n.op.kind for n in result.model.main}
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert np.abs(wanted[:, :, :4] - found[:, :, :4]).max() < 0.5          # pixels; one int8 scale has steps of 2.5
    assert sqnr(wanted[:, :, 4:], found[:, :, 4:]) > 30
    again = read_bytes(bytes(to_bytes(result.model)))
    assert np.array_equal(next(iter(run(again, sample).values())), found)


def test_parts_are_scaled_to_one_range_where_one_output_is_wanted(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(transposed(net))
    result = quantize(model, statistics_of(model, tmp_path), Recipe(outputs="normalize"))
    assert len(result.model.main.outputs) == 1
    assert result.model.interface is not None
    assert result.model.interface.host is not None
    assert [s.operator for s in result.model.interface.host.steps] == ["MUL"]
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(result.model, sample).values()
    assert sqnr(wanted[:, 4:], found[:, 4:]) > 25
    assert sqnr(wanted[:, :4], found[:, :4]) > 25
    again = read_bytes(bytes(to_bytes(result.model)))
    assert np.array_equal(next(iter(run(again, sample).values())), found)
