"""What the compiler gets wrong without a word: it is told, gone round, and the way round is exact."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vitrify import ops, tflite
from vitrify.backends.vela import check_model
from vitrify.ir import Tensor
from vitrify.passes.targets import catalogue
from vitrify.pipeline.checking.fixes.applying import apply_fixes
from vitrify.pipeline.compiling.compile import compile_file
from vitrify.pipeline.compiling.simulated import verify_simulated
from vitrify.runtimes.litert import LiteRT
from vitrify.targets.base import load

sys.path.append(str(Path(__file__).parents[1] / "backends"))
from vela_networks import Network

Draw = Callable[[Network], list[Tensor]]


def sliced(net: Network) -> Tensor:
    return net.add(ops.Slice(), [net.x, net.ints(0, 0, 0), net.ints(1, 16, 32)], (1, 16, 32))


def product(net: Network, first: Tensor) -> list[Tensor]:
    second = net.input(*(1,) * (len(first.shape) - 3), 1, 16, 32)
    return [net.add(ops.BatchMatMul(adj_y=True), [first, second], (*first.shape[:-2], 16, 16))]


def of_slice(net: Network) -> list[Tensor]:
    return product(net, sliced(net))


def of_strided_slice(net: Network) -> list[Tensor]:
    part = net.add(ops.StridedSlice(), [net.x, net.ints(0, 0, 0), net.ints(1, 16, 32), net.ints(1, 1, 1)], (1, 16, 32))
    return product(net, part)


def of_split(net: Network) -> list[Tensor]:
    parts = [net.tensor(f"part{i}", (1, 16, 32)) for i in range(2)]
    axis = Tensor("axis", net.ints(2).dtype, (), data=np.array(2, np.int32))
    net.graph.add(ops.Split(num_splits=2), [axis, net.x], parts, name="split")
    return [net.add(ops.BatchMatMul(adj_y=True), parts, (1, 16, 16))]


def behind_reshape(net: Network) -> list[Tensor]:
    shaped = net.add(ops.Reshape(new_shape=(1, 1, 16, 32)), [sliced(net), net.ints(1, 1, 16, 32)], (1, 1, 16, 32))
    return product(net, shaped)


def of_five_axes(net: Network) -> list[Tensor]:
    """As Swin splits its queries, keys and values: the compiler dies where these are read through fewer axes."""
    parts = [net.tensor(f"part{i}", (1, 2, 4, 16, 32)) for i in range(3)]
    axis = Tensor("axis", net.ints(0).dtype, (), data=np.array(0, np.int32))
    net.graph.add(ops.Split(num_splits=3), [axis, net.input(3, 2, 4, 16, 32)], parts, name="split")
    first, second = (net.add(ops.Reshape(new_shape=(2, 4, 16, 32)), [part, net.ints(2, 4, 16, 32)], (2, 4, 16, 32))
                     for part in parts[:2])
    return [net.add(ops.BatchMatMul(adj_y=True), [first, second], (2, 4, 16, 16)), net.add(
        ops.Add(), [parts[2], net.input(1, 2, 4, 16, 32)], (1, 2, 4, 16, 32))]


def largest(net: Network) -> list[Tensor]:
    return [net.add(ops.ReduceMax(keep_dims=True), [sliced(net), net.ints(2)], (1, 16, 1))]


def summed(net: Network) -> list[Tensor]:
    return [net.add(ops.Sum(keep_dims=True), [sliced(net), net.ints(2)], (1, 16, 1))]


def without_axis(net: Network) -> list[Tensor]:
    return [net.add(ops.ReduceMax(keep_dims=False), [net.x, net.ints(2)], (1, 16))]


def without_columns(net: Network) -> list[Tensor]:
    x = net.input(1, 6, 5, 20)
    return [net.add(ops.ReduceMin(keep_dims=False), [x, net.ints(2)], (1, 6, 20))]


def padded(net: Network) -> list[Tensor]:
    x = net.input(1, 1, 64, 8)
    amounts = Tensor("amounts", net.ints(0).dtype, (4, 2), data=np.array([[0, 0], [0, 0], [128, 0], [0, 0]], np.int32))
    wide = net.add(ops.Pad(), [x, amounts], (1, 1, 192, 8))
    convolved = ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID, dilation_w_factor=64)
    return [net.add(convolved, [wide, *net.weights(8, 1, 3, 8)], (1, 1, 64, 8))]


def doubled(net: Network) -> Tensor:
    """A 3-D input as an image, twice as large."""
    image = net.input(1, 8, 8, 16)
    return net.add(ops.ResizeBilinear(half_pixel_centers=True), [image, net.ints(16, 16)], (1, 16, 16, 16))


def joined(net: Network) -> list[Tensor]:
    """The decoder of a U-Net."""
    larger = doubled(net)
    return [net.add(ops.Concatenation(axis=3), [net.input(1, 16, 16, 16), larger], (1, 16, 16, 32))]


def surrounded(net: Network) -> list[Tensor]:
    larger = doubled(net)
    amounts = Tensor("amounts", net.ints(0).dtype, (4, 2), data=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    return [net.add(ops.Pad(), [larger, amounts], (1, 18, 18, 16))]


def largest_joined(net: Network) -> list[Tensor]:
    """The largest of each place's channels, as spatial attention joins it with their mean."""
    most = net.add(ops.ReduceMax(keep_dims=True), [net.input(1, 8, 8, 16), net.ints(3)], (1, 8, 8, 1))
    return [net.add(ops.Concatenation(axis=3), [net.input(1, 8, 8, 1), most], (1, 8, 8, 2))]


FAULTS: dict[str, tuple[str, str, Draw]] = {
    "a slice multiplied": ("ethos-u.folded-slice", "BATCH_MATMUL", of_slice),
    "a strided slice multiplied": ("ethos-u.folded-slice", "BATCH_MATMUL", of_strided_slice),
    "a part multiplied": ("ethos-u.folded-slice", "BATCH_MATMUL", of_split),
    "a slice in another shape": ("ethos-u.folded-slice", "BATCH_MATMUL", behind_reshape),
    "a part of five axes in four": ("ethos-u.folded-slice", "BATCH_MATMUL", of_five_axes),
    "the largest of a slice": ("ethos-u.folded-slice", "REDUCE_MAX", largest),
    "the sum of a slice": ("ethos-u.folded-slice", "SUM", summed),
    "an axis that is dropped": ("ethos-u.dropped-axis", "REDUCE_MAX", without_axis),
    "columns that are dropped": ("ethos-u.dropped-axis", "REDUCE_MIN", without_columns),
    "an image made larger and joined": ("ethos-u.placed-part", "RESIZE_BILINEAR", joined),
    "the largest, joined": ("ethos-u.placed-part", "REDUCE_MAX", largest_joined),
    "an image made larger and padded": ("ethos-u.placed-part", "RESIZE_BILINEAR", surrounded),
    "columns beyond the register": ("ethos-u.wide-padding", "CONV_2D", padded),
}


@pytest.mark.parametrize(("code", "kind", "draw"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_and_gone_round(code: str, kind: str, draw: Draw, tmp_path: Path) -> None:
    net = Network(1, 16, 64)
    path = net.save(tmp_path / "m.tflite", *draw(net))
    told = [finding for finding in check_model(path, "imx93").findings if finding.code == code]
    assert [finding.headline.split(" '")[0] for finding in told] == [kind]
    found = compile_file(path, "imx93", tmp_path / "out.tflite")
    assert (tmp_path / "out.tflite").exists()
    assert [finding.code for finding in found.findings if finding.code in (code, "compile.avoided")] == [
        "compile.avoided"]


@pytest.mark.parametrize(("code", "kind", "draw"), FAULTS.values(), ids=FAULTS)
def test_the_way_round_is_exact(code: str, kind: str, draw: Draw, tmp_path: Path) -> None:
    net = Network(1, 16, 64)
    path = net.save(tmp_path / "m.tflite", *draw(net))
    model = tflite.read(path)
    assert [place.operator for place in apply_fixes(model, load("imx93"), [
        one for one in catalogue() if one.avoids == code])] == [kind]
    tflite.write(model, tmp_path / "round.tflite")
    random = np.random.default_rng(0)
    values = [random.integers(-128, 128, tensor.shape).astype(np.int8) for tensor in model.main.inputs]
    with LiteRT(path, kernels="optimized") as before, LiteRT(tmp_path / "round.tflite", kernels="optimized") as after:
        for one, other in zip(before.invoke_raw(values), after.invoke_raw(values), strict=True):
            assert (one == other).all()


def mirrored(net: Network) -> list[Tensor]:
    amounts = Tensor("amounts", net.ints(0).dtype, (4, 2), data=np.array([[0, 0], [0, 0], [0, 0], [2, 2]], np.int32))
    x = net.input(1, 4, 4, 8)
    return [net.add(ops.MirrorPad(), [x, amounts], (1, 4, 4, 12))]


def test_a_form_without_rewrite_is_left_to_the_cpu(tmp_path: Path) -> None:
    net = Network(1, 16, 64)
    path = net.save(tmp_path / "m.tflite", *mirrored(net), net.add(ops.Relu(), [net.x], (1, 16, 64)))
    told = [finding for finding in check_model(path, "imx93").findings if finding.code == "ethos-u.wrong-form"]
    assert [finding.headline.split(" '")[0] for finding in told] == ["MIRROR_PAD"]
    found = compile_file(path, "imx93", tmp_path / "out.tflite")
    codes = [finding.code for finding in found.findings]
    assert "compile.avoided" in codes
    assert "ethos-u.wrong-form" not in codes
    verified = verify_simulated(path, tmp_path / "out.tflite")
    assert verified.row is not None
    assert verified.row.ok


SOUND: dict[str, Draw] = {
    "the second operand": lambda net: [net.add(ops.BatchMatMul(adj_y=True), [net.input(1, 16, 32), sliced(net)],
                                               (1, 16, 16))],
    "whole tensors": lambda net: [net.add(ops.BatchMatMul(adj_y=True), [net.x, net.input(1, 16, 64)], (1, 16, 16))],
    "a slice that is added": lambda net: [net.add(ops.Add(), [sliced(net), net.input(1, 16, 32)], (1, 16, 32))],
}


@pytest.mark.parametrize("draw", SOUND.values(), ids=SOUND)
def test_what_is_right_is_left_alone(draw: Draw, tmp_path: Path) -> None:
    net = Network(1, 16, 64)
    found = compile_file(net.save(tmp_path / "m.tflite", *draw(net)), "imx93", tmp_path / "out.tflite")
    assert [finding.code for finding in found.findings if finding.code.startswith(("compile.avoided",
                                                                                   "ethos-u.folded"))] == []
