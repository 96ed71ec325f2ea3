"""Fixes for chips whose compilers are closed, by rules made up for the test: exact ones to the bit, in LiteRT."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from doubles import Refuses, double
from quantized_maker import Maker, check_fix, given, largest_difference, on_cpu, run

from schema_models import post_process
from vitrify import ops, tflite
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Severity
from vitrify.ir import DType, Model, Node, Quantization, Tensor
from vitrify.passes.targets import find
from vitrify.pipeline.checking.fixes import fix_model
from vitrify.pipeline.checking.fixes.applying import apply_fixes
from vitrify.targets import base
from vitrify.targets.rules import place
from vitrify.targets.telling import cpu_nodes


def nearest(size: tuple[int, int], centres: bool = True, before: tuple[int, int] = (8, 8)) -> Model:
    m = Maker()
    op = ops.ResizeNearestNeighbor(half_pixel_centers=centres)
    return m.model(m.op(op, m.input(1, *before, 3), m.ints(*size)))


def pack(axis: int, *shape: int, dtype: DType = DType.INT8) -> Model:
    m = Maker(dtype)
    x, y = (m.op(ops.Relu(), m.input(*shape)) for _ in range(2))
    return m.model(m.op(ops.Relu(), m.op(ops.Pack(values_count=2, axis=axis), x, y)))


def unpack(axis: int, *shape: int) -> Model:
    m = Maker()
    return m.model(*m.outs(ops.Unpack(num=shape[axis], axis=axis), m.input(*shape)))


def softmax(*shape: int) -> Model:
    m = Maker()
    return m.model(m.op(ops.Softmax(beta=1.0), m.input(*shape), scale=1 / 256, zero=-128))


def conv(channels: int, out: int, kernel: int = 3) -> Model:
    m = Maker()
    x = m.input(1, 6, 6, channels)
    op = ops.Conv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1)
    return m.model(m.op(op, x, *m.weights(out, kernel, kernel, channels, x=x)))


def depthwise(channels: int) -> Model:
    m = Maker()
    x = m.input(1, 6, 6, channels)
    op = ops.DepthwiseConv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    return m.model(m.op(op, x, *m.weights(1, 3, 3, channels, axis=3, x=x)))


def half(node: Node) -> bool:
    return bool(getattr(node.op, "half_pixel_centers", False))


def of(*kinds: str) -> Refuses:
    return lambda node: node.op.kind in kinds


def odd_channels(node: Node) -> bool:
    return node.op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and any(
        t.shape[-1] % 16 for t in (node.input(0), node.output))


def many_rows(node: Node) -> bool:
    return node.op.kind == "SOFTMAX" and node.output.size // node.output.shape[-1] > 4096


def unequal(node: Node) -> bool:
    scales = [t.quantization for t in (*node.inputs, *node.outputs) if t is not None and t.quantization is not None
              and t.data is None]
    return node.op.kind != "QUANTIZE" and any(scale != scales[0] for scale in scales)


def unequal_values(node: Node) -> bool:
    return node.op.kind in ("MEAN", "AVERAGE_POOL_2D") and unequal(node)


EXACT: dict[str, tuple[str, str, Refuses, Callable[[], Model]]] = {
    "half_pixels_2": ("half-pixels", "vip8000.half-pixel", half, lambda: nearest((16, 16))),
    "half_pixels_3_by_5": ("half-pixels", "vip8000.half-pixel", half, lambda: nearest((24, 40))),
    "half_pixels_same": ("half-pixels", "vip8000.half-pixel", half, lambda: nearest((8, 8))),
    "pack_first": ("packs", "vip8000.no-pack", of("PACK"), lambda: pack(0, 1, 4, 6)),
    "pack_last": ("packs", "vip8000.no-pack", of("PACK"), lambda: pack(-1, 1, 4, 6)),
    "pack_middle": ("packs", "vip8000.no-pack", of("PACK"), lambda: pack(1, 1, 4, 6)),
    "pack_uint8": ("packs", "vip8000.no-pack", of("PACK"), lambda: pack(2, 1, 4, 6, dtype=DType.UINT8)),
    "unpack": ("unpacks", "vip8000.no-pack", of("UNPACK"), lambda: unpack(1, 1, 3, 6)),
    "softmax_rows": ("softmax-tiles", "neutron.softmax-size", many_rows, lambda: softmax(1, 75, 80, 7)),
    "conv_out": ("padded-channels", "neutron.channels-multiple", odd_channels, lambda: conv(16, 10)),
    "conv_in": ("padded-channels", "neutron.channels-multiple", odd_channels, lambda: conv(3, 32)),
    "conv_both": ("padded-channels", "neutron.channels-multiple", odd_channels, lambda: conv(5, 7, 1)),
    "depthwise": ("padded-channels", "neutron.channels-multiple", odd_channels, lambda: depthwise(10)),
}
LIMITS = {"num_macs": 16}


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fix, code, refuses, build = EXACT[name]
    chip = double(monkeypatch, f"exact_{name}", {code: refuses}, LIMITS)
    assert place(build().main, chip).coverage.nodes < 1
    check_fix(build, fix, tmp_path, target=chip.name)


def chain() -> Model:
    """A convolution, a pool, a resize and a mean of ten channels, read by two convolutions."""
    m = Maker()
    x = m.input(1, 8, 8, 16)
    op = ops.Conv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1)
    y = m.op(op, x, *m.weights(10, 3, 3, 16, x=x))
    pooled = m.op(ops.MaxPool2D(padding=ops.Padding.VALID, stride_h=2, stride_w=2, filter_height=2, filter_width=2), y)
    large = m.op(ops.ResizeNearestNeighbor(), pooled, m.ints(8, 8))
    small = m.op(ops.Mean(keep_dims=True), m.op(ops.Relu(), pooled), m.ints(1, 2))
    return m.model(m.op(op, large, *m.weights(16, 1, 1, 10, x=large)),
                   m.op(op, small, *m.weights(8, 1, 1, 10, x=small)))


def odd_maps(node: Node) -> bool:
    return node.op.kind in ("MAX_POOL_2D", "MEAN", "RESIZE_NEAREST_NEIGHBOR") and bool(node.input(0).shape[-1] % 8)


def test_channels_are_filled_between_convolutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = double(monkeypatch, "filled", {"neutron.channels-multiple": odd_maps})
    assert place(chain().main, chip).coverage.nodes < 1
    model, places = check_fix(chain, "filled-channels", tmp_path, target=chip.name)
    assert places[0].places == 1
    assert {node.output.shape[3] for node in model.main} == {16, 8}
    assert len(model.main) == len(chain().main)


def test_both_flags_give_the_same_bytes_for_whole_factors_only(tmp_path: Path) -> None:
    """What the fix says of the kernel: it does not matter for 8 to 16, and it does for 8 to 20."""
    same = {}
    for size in (16, 20):
        batches = given(nearest((size, size)))
        with_flag, without = (run(nearest((size, size), centres), tmp_path / "m.tflite", batches)
                              for centres in (True, False))
        same[size] = largest_difference(with_flag, without) == 0
    assert same == {16: True, 20: False}


def test_another_factor_is_left_and_the_reason_told(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = double(monkeypatch, "declined", {"vip8000.half-pixel": half})
    model, declined = nearest((20, 20)), dict[tuple[str, str], str]()
    assert apply_fixes(model, chip, find(["half-pixels"]), declined=declined) == []
    (why,) = declined.values()
    assert "8 rows become 20, 2.5 times as many" in why
    assert half(model.main.nodes[0])


def test_one_partition_instead_of_three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chip = double(monkeypatch, "no_pack", {"vip8000.no-pack": of("PACK")})
    model = pack(1, 1, 4, 6)
    assert len(place(model.main, chip).partitions) == 3
    model, _ = check_fix(lambda: pack(1, 1, 4, 6), "packs", tmp_path, target=chip.name)
    assert len(place(model.main, chip).partitions) == 1


def concat() -> Model:
    m = Maker(DType.UINT8)
    return m.model(m.op(ops.Concatenation(axis=3), m.input(1, 4, 4, 3, scale=0.04, zero=120), m.input(1, 4, 4, 5)))


def mean() -> Model:
    m = Maker()
    return m.model(m.op(ops.Mean(keep_dims=True), m.input(1, 6, 6, 8, scale=0.08, zero=3), m.ints(1, 2)))


def finer_mean() -> Model:
    """The usual one at the end of a classifier: its result has a quarter of the step."""
    m = Maker()
    x = m.input(1, 7, 7, 16, scale=0.0235, zero=-128)
    return m.model(m.op(ops.Mean(), x, m.ints(1, 2), scale=0.0057, zero=-128))


def finer_pool() -> Model:
    m = Maker()
    op = ops.AveragePool2D(padding=ops.Padding.VALID, stride_h=2, stride_w=2, filter_height=3, filter_width=2)
    return m.model(m.op(op, m.input(1, 9, 8, 16, scale=0.05), scale=0.05 + 5e-7))


def matmul() -> Model:
    m = Maker()
    return m.model(m.op(ops.BatchMatMul(), m.input(1, 6, 8), m.input(1, 8, 5, scale=0.03, zero=20), scale=0.3, zero=4))


def zero_points(node: Node) -> bool:
    return node.op.kind == "BATCH_MATMUL" and any(
        t.quantization is not None and int(t.quantization.zero_point[0]) for t in (node.input(0), node.input(1)))


CLOSE: dict[str, tuple[str, str, Refuses, Callable[[], Model], int]] = {
    "concat": ("joined-scales", "neutron.unequal-scales", unequal, concat, 1),
    "mean": ("rescaled-results", "neutron.unequal-scales", unequal_values, mean, 1),
    "finer_mean": ("rescaled-results", "neutron.unequal-scales", unequal_values, finer_mean, 1),
    "finer_pool": ("rescaled-results", "neutron.unequal-scales", unequal_values, finer_pool, 1),
    "matmul": ("symmetric-matmuls", "neutron.matmul-zero-point", zero_points, matmul, 4),
}


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fix, code, refuses, build, most = CLOSE[name]
    chip = double(monkeypatch, f"close_{name}", {code: refuses})
    model, _ = check_fix(build, fix, tmp_path, target=chip.name, most=most)
    assert model.main.count(ops.Quantize, ops.DepthwiseConv2D)


def test_a_move_between_scales_means_what_the_scales_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteRT copies the stored integers; the fix gives the real values in the other scale."""
    chip = double(monkeypatch, "moves", {"neutron.unequal-scales": unequal})
    m = Maker()
    model = m.model(m.op(ops.Reshape(new_shape=(1, 24)), m.input(1, 4, 6, scale=0.1, zero=3), m.ints(1, 24), scale=0.2))
    batches = given(model)
    assert apply_fixes(model, chip, find(["rescaled-moves"]))
    (found,) = run(model, tmp_path / "after.tflite", batches[:1])
    x = model.main.inputs[0].quantization
    y = model.main.outputs[0].quantization
    assert isinstance(x, Quantization)
    assert isinstance(y, Quantization)
    wanted = np.clip(x.dequantize(batches[0][0]).reshape(1, 24), *y.dequantize(np.array([-128, 127], np.int8)))
    assert np.abs(y.dequantize(found[0]) - wanted).max() <= 0.51 * 0.2


def test_nothing_is_rewritten_for_its_cost_where_no_compiler_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Maker()
    x = m.input(1, 32, 32, 3)
    model = m.model(m.op(ops.Conv2D(padding=ops.Padding.VALID, stride_h=8, stride_w=8), x, *m.weights(8, 8, 8, 3, x=x)))
    chip = double(monkeypatch, "no_costs", {"neutron.resize-factor": of()})
    assert apply_fixes(model, chip, find(["long-strides"])) == []


def detector() -> Model:
    """PACK of 8-bit values in the middle, and the custom operator that chooses among boxes at the end."""
    m = Maker()
    x = m.op(ops.Relu(), m.input(1, 4, 6))
    boxes = m.op(ops.Relu(), m.op(ops.Pack(values_count=2, axis=1), x, m.op(ops.Relu(), m.input(1, 4, 6))))
    chosen = Tensor("chosen", DType.FLOAT32, (1, 4, 4))
    m.graph.add(ops.Custom(custom_code="TFLite_Detection_PostProcess"), [boxes], [chosen], name="head")
    return m.model(chosen)


def test_an_operator_at_the_end_is_no_warning_and_one_in_the_middle_is(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"vip8000.no-pack": of("PACK"), "vip8000.custom-operator": of("TFLite_Detection_PostProcess")}
    chip = double(monkeypatch, "detector", kinds)
    found = {finding.code: finding for finding in cpu_nodes(place(detector().main, chip))}
    tail, middle = found["vip8000.custom-operator"], found["vip8000.no-pack"]
    assert (tail.severity, middle.severity) == (Severity.INFO, Severity.WARNING)
    assert "TFLite_Detection_PostProcess" in tail.headline
    assert re.search(r"about 0\.0\d+ ms there", tail.why)
    assert "they cut the graph: 4 parts" in middle.why


def test_what_is_left_has_its_reason_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    double(monkeypatch, "told", {"vip8000.half-pixel": half})
    outcome = fix_model(nearest((20, 20)), "told")
    assert not outcome.changed
    assert [row.name for row in outcome.rows] == ["half-pixels"]
    assert "2.5 times as many" in outcome.rows[0].undone[0]
    fixed = fix_model(nearest((16, 16)), "told")
    assert (fixed.cpu_before, fixed.cpu_after, fixed.largest_error_lsb) == (1, 0, 0)
    (useless,) = fix_model(nearest((16, 16)), "told", only=["long-strides"]).rows
    assert "it mends no rule of told" in useless.undone[0]


def grouped(batch: int = 1) -> Model:
    m = Maker()
    x = m.input(batch, 6, 6, 16)
    op = ops.Conv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1)
    return m.model(m.op(op, x, *m.weights(24, 3, 3, 4, x=x)))


def average() -> Model:
    m = Maker()
    op = ops.AveragePool2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1, filter_height=3, filter_width=3)
    return m.model(m.op(op, m.input(1, 8, 8, 16)))


def batched() -> Model:
    m = Maker()
    x = m.input(3, 6, 6, 16)
    op = ops.Conv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1)
    return m.model(m.op(op, x, *m.weights(16, 3, 3, 16, x=x)))


def tripled() -> Model:
    m = Maker()
    return m.model(m.op(ops.ResizeNearestNeighbor(), m.input(1, 4, 4, 16), m.ints(12, 12)))


def free() -> Model:
    m = Maker()
    x = m.input(1, 6, 6, 16)
    x.shape_signature = (1, -1, -1, 16)
    return m.model(m.op(ops.Relu(), x))


REAL: dict[str, tuple[str, str, Callable[[], Model]]] = {
    "imx95_groups": ("separate-groups", "imx95", grouped),
    "imxrt700_groups": ("separate-groups", "imxrt700", grouped),
    "imx8mp_grouped_batch": ("separate-groups", "imx8mp", lambda: grouped(2)),
    "imx95_padded_average": ("large-pools", "imx95", average),
    "mcxn947_batch": ("batches", "mcxn947", batched),
    "imx95_three_times": ("resizes", "imx95", tripled),
    "mcxn947_chain": ("filled-channels", "mcxn947", chain),
    "imxrt700_softmax": ("softmax-tiles", "imxrt700", lambda: softmax(1, 75, 80, 8)),
    "imx8mp_half_pixels": ("half-pixels", "imx8mp", lambda: nearest((16, 16))),
    "imx8mp_pack": ("packs", "imx8mp", lambda: pack(1, 1, 4, 6)),
    "imx95_free_shape": ("static-shapes", "imx95", free),
}


@pytest.mark.parametrize("name", REAL)
def test_on_real_chips(name: str, tmp_path: Path) -> None:
    fix, target, build = REAL[name]
    assert on_cpu(build(), target)
    check_fix(build, fix, tmp_path, target=target)


@pytest.mark.parametrize(("fix", "target", "build", "most"), [
    ("joined-scales", "imx95", concat, 1), ("rescaled-results", "imx95", mean, 1),
    ("symmetric-matmuls", "imxrt700", matmul, 4),
], ids=["concat", "mean", "matmul"])
def test_close_on_real_chips(fix: str, target: str, build: Callable[[], Model], most: int, tmp_path: Path) -> None:
    assert on_cpu(build(), target)
    check_fix(build, fix, tmp_path, target=target, most=most)


def float_ends() -> Model:
    m = Maker()
    real = Tensor("real", DType.FLOAT32, (1, 8, 8, 16))
    m.graph.inputs.append(real)
    x = m.op(ops.Quantize(), real, dtype=DType.INT8)
    op = ops.Conv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1)
    return m.model(m.op(ops.Dequantize(), m.op(op, x, *m.weights(16, 3, 3, 16, x=x)), dtype=DType.FLOAT32))


def test_float_ends_are_left_to_the_application() -> None:
    model = float_ends()
    outcome = fix_model(model, "imx95")
    assert (outcome.cpu_before, outcome.cpu_after, outcome.largest_error_lsb) == (2, 0, 0)
    assert [node.op.kind for node in model.main] == ["CONV_2D"]


def test_a_custom_operator_at_the_end_is_told_and_a_pack_mended() -> None:
    """On the i.MX 8M Plus."""
    with temporary_folder() as folder:
        post_process(folder / "head.tflite")
        head = tflite.read(folder / "head.tflite")
    assert on_cpu(head, "imx8mp") == ["TFLite_Detection_PostProcess"]
    (tail,) = cpu_nodes(place(head.main, base.load("imx8mp")))
    assert (tail.code, tail.severity) == ("vip8000.custom-operator", Severity.INFO)
    outcome = fix_model(pack(1, 1, 4, 6), "imx8mp")
    assert (outcome.cpu_before, outcome.cpu_after, outcome.largest_error_lsb) == (1, 0, 0)
