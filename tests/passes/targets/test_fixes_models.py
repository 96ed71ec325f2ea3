"""Whole models through ``fix_model``: what a sweep mends, what the compiler says, and what is put back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quantized_maker import ZERO, Maker, given, largest_difference, on_cpu, run

from vitrify import ops, tflite
from vitrify.core.errors import UsageError
from vitrify.ir import DType, Exactness, Graph, Model, Quantization, Tensor
from vitrify.passes.targets import catalogue, find
from vitrify.pipeline.checking.fixes import fix_model
from vitrify.runtimes.litert import LiteRT
from vitrify.targets import base as targets
from vitrify.targets.rules import rules_of
from vitrify.targets.rules.rule import Rule

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID


def patches() -> Model:
    """The patch embedding of a vision transformer."""
    m = Maker()
    x = m.input(1, 224, 224, 3)
    op = ops.Conv2D(padding=VALID, stride_h=16, stride_w=16)
    return m.model(m.op(op, x, *m.weights(192, 16, 16, 3, x=x), scale=0.04))


def transposed_layers() -> Model:
    """Channels first outside of each convolution, and a constant added in between."""
    m = Maker()
    x = m.op(ops.Transpose(), m.input(1, 3, 16, 16), m.ints(0, 2, 3, 1))
    x = m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, *m.weights(8, 3, 3, 3, x=x))
    x = m.op(ops.Transpose(), x, m.ints(0, 3, 1, 2))
    added = m.const(m.random.integers(-128, 128, (1, 8, 1, 1)), np.int8, Quantization.per_tensor(0.02, 3))
    x = m.op(ops.Transpose(), m.op(ops.Add(), x, added), m.ints(0, 2, 3, 1))
    return m.model(m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, *m.weights(4, 3, 3, 8, x=x)))


def float_ends() -> Model:
    m = Maker()
    real = Tensor("real", DType.FLOAT32, (1, 8, 8, 3))
    m.graph.inputs.append(real)
    x = m.op(ops.Quantize(), real, dtype=DType.INT8)
    y = m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, *m.weights(4, 3, 3, 3, x=x))
    return m.model(m.op(ops.Dequantize(), y, dtype=DType.FLOAT32))


def computed_shape() -> Model:
    """The batch of a Flatten, computed from the input's shape; the file calls it free."""
    m = Maker()
    x = m.input(1, 4, 4, 3)
    x.shape_signature = (-1, 4, 4, 3)
    x = m.op(ops.Relu(), x)
    x.shape_signature = (-1, 4, 4, 3)
    shape = m.op(ops.Shape(out_type=2), x)
    batch = m.op(ops.StridedSlice(shrink_axis_mask=1), shape, m.ints(0), m.ints(1), m.ints(1))
    wanted = m.op(ops.Pack(values_count=2), batch, m.const(np.int32(48)))
    flat = Tensor("flat", DType.INT8, (1, 48), quantization=m.steps())
    m.graph.add(ops.Reshape(), [x, wanted], [flat], name="flat")
    return m.model(m.op(ops.Relu(), flat))


def free_dimension() -> Model:
    m = Maker()
    x = m.input(1, 8, 8, 3)
    y = m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, *m.weights(4, 3, 3, 3, x=x))
    x.shape_signature, y.shape_signature = (-1, -1, 8, 3), (-1, -1, 8, 4)
    return m.model(y)


def test_patches_win_five_times_and_lose_nothing() -> None:
    model = patches()
    outcome = fix_model(model, "imx93")
    (row,) = outcome.rows
    assert (row.name, row.places, row.largest_error_lsb, outcome.largest_error_lsb) == ("long-strides", 1, 0, 0)
    assert outcome.ms_before is not None
    assert outcome.ms_after is not None
    assert outcome.ms_before > 5 * outcome.ms_after
    assert "reference kernels" in outcome.proof


def test_a_fixed_file_keeps_no_weights_twice(tmp_path: Path) -> None:
    path = tmp_path / "patches.tflite"
    tflite.write(patches(), path)
    model = tflite.read(path)
    assert fix_model(model, "imx93", compiler=False).changed
    assert len(tflite.to_bytes(model)) < 1.1 * path.stat().st_size


def test_transposes_between_layers_vanish(tmp_path: Path) -> None:
    model = transposed_layers()
    batches = given(model)
    before = run(model, tmp_path / "before.tflite", batches)
    outcome = fix_model(model, "imx93", compiler=False)
    assert outcome.changed
    assert model.main.count(ops.Transpose) == 1
    assert largest_difference(before, run(model, tmp_path / "after.tflite", batches)) == 0


ENDS: dict[str, tuple[Callable[[], Model], str]] = {
    "float_ends": (float_ends, "integer-ends"),
    "computed_shape": (computed_shape, "constant-shapes"),
    "free_dimension": (free_dimension, "static-shapes"),
}


@pytest.mark.parametrize("name", ENDS)
def test_models_leave_the_cpu(name: str) -> None:
    build, fix = ENDS[name]
    model = build()
    outcome = fix_model(model, "imx93", compiler=False)
    assert not on_cpu(model), [row.name for row in outcome.rows]
    assert fix in [row.name for row in outcome.rows]
    assert outcome.largest_error_lsb == 0
    assert outcome.cpu_after == 0
    assert outcome.nodes_after == 1.0


def unequal_scales(kind: type[ops.Maximum | ops.MaxPool2D]) -> Model:
    m = Maker()
    x = m.input(1, 6, 6, 4, scale=0.03)
    if kind is ops.Maximum:
        return m.model(m.op(kind(), x, m.input(1, 6, 6, 4, scale=0.07), scale=0.05))
    return m.model(m.op(ops.MaxPool2D(filter_height=2, filter_width=2, stride_h=2, stride_w=2), x, scale=0.04))


def wide(kind: type[ops.HardSwish | ops.SquaredDifference]) -> Model:
    m = Maker(DType.INT16)
    x = m.input(1, 4, 4, 8, scale=0.0004)
    if kind is ops.HardSwish:
        return m.model(m.op(ops.HardSwish(), x, scale=0.0004))
    return m.model(m.op(kind(), x, m.input(1, 1, 1, 8, scale=0.0002), scale=0.012))


REPAIRS: dict[str, tuple[Callable[[], Model], str]] = {
    "maximum": (lambda: unequal_scales(ops.Maximum), "equal-scales"),
    "pool": (lambda: unequal_scales(ops.MaxPool2D), "equal-scales"),
    "hard_swish_int16": (lambda: wide(ops.HardSwish), "hard-swish"),
    "squared_difference_int16": (lambda: wide(ops.SquaredDifference), "squared-differences"),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_what_litert_cannot_run_is_written_in_what_it_can(name: str, tmp_path: Path) -> None:
    build, fix = REPAIRS[name]
    model = build()
    outcome = fix_model(model, "imx93", compiler=False)
    (row,) = outcome.rows
    assert row.name == fix
    assert row.largest_error_lsb is not None
    assert row.largest_error_lsb <= 3
    assert not on_cpu(model)
    run(model, tmp_path / "after.tflite", given(model))


def decoded_in_float() -> Model:
    """Scores and boxes of a detector whose file decodes the boxes."""
    m = Maker()
    x = m.input(1, 8, 8, 3)
    y = m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, *m.weights(6, 3, 3, 3, x=x))
    real = m.op(ops.Dequantize(), y, dtype=DType.FLOAT32)
    boxes = m.op(ops.Slice(), real, m.ints(0, 0, 0, 0), m.ints(1, 8, 8, 4))
    scores = m.op(ops.Logistic(), m.op(ops.Slice(), real, m.ints(0, 0, 0, 4), m.ints(1, 8, 8, 2)))
    grid = m.const(m.random.uniform(0, 600, (1, 8, 8, 4)), np.float32)
    return m.model(m.op(ops.Add(), m.op(ops.Mul(), boxes, m.const(16.0, np.float32)), grid), scores)


def test_a_float_tail_becomes_a_host_program() -> None:
    model = decoded_in_float()
    outcome = fix_model(model, "imx93", names=["host-tails"], compiler=False)
    assert (outcome.cpu_before, outcome.cpu_after, outcome.largest_error_lsb) == (6, 0, 0)
    assert [node.op.kind for node in model.main] == ["CONV_2D"]
    assert model.interface is not None
    assert model.interface.host is not None
    assert [step.operator for step in model.interface.host.steps] == ["SLICE", "SLICE", "LOGISTIC", "MUL", "ADD"]
    assert len(model.interface.outputs) == 2


def suppressing(custom: bool) -> Model:
    """Boxes and scores of a detector with its own suppression behind them."""
    m = Maker()
    x = m.input(1, 4, 4, 3)
    x = m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, *m.weights(6, 3, 3, 3, x=x))
    x = m.op(ops.Reshape(new_shape=(1, 16, 6)), x, m.ints(1, 16, 6))
    boxes = m.op(ops.Dequantize(), m.op(ops.Slice(), x, m.ints(0, 0, 0), m.ints(1, 16, 4)), dtype=DType.FLOAT32)
    scores = m.op(ops.Dequantize(), m.op(ops.Slice(), x, m.ints(0, 0, 4), m.ints(1, 16, 2)), dtype=DType.FLOAT32)
    if custom:
        from flatbuffers import flexbuffers

        said = {"max_detections": 5, "max_classes_per_detection": 1, "num_classes": 1, "nms_score_threshold": 0.25,
                "nms_iou_threshold": 0.6, "x_scale": 10.0, "y_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
        op = ops.Custom(custom_code="TFLite_Detection_PostProcess", custom_options=bytes(flexbuffers.Dumps(said)))
        anchors = m.const(m.random.uniform(0.1, 0.9, (16, 4)), np.float32)
        shapes = {"boxes": (1, 5, 4), "classes": (1, 5), "scores": (1, 5), "count": (1,)}
        outputs = [Tensor(name, DType.FLOAT32, shape) for name, shape in shapes.items()]
        m.graph.add(op, [boxes, scores, anchors], outputs, name="head")
        return m.model(*outputs)
    flat = m.op(ops.Reshape(new_shape=(16, 4)), boxes, m.ints(16, 4), dtype=DType.FLOAT32)
    one = m.op(ops.Slice(), scores, m.ints(0, 0, 0), m.ints(1, 16, 1), dtype=DType.FLOAT32)
    one = m.op(ops.Reshape(new_shape=(16,)), one, m.ints(16), dtype=DType.FLOAT32)
    return m.model(*m.outs(ops.NonMaxSuppressionV4(), flat, one, m.const(np.int32(5)), m.const(0.6, np.float32),
                           m.const(0.25, np.float32)))


@pytest.mark.parametrize("custom", [True, False], ids=["custom", "suppression"])
def test_the_choice_among_boxes_is_left_to_the_application(custom: bool) -> None:
    model = suppressing(custom)
    outcome = fix_model(model, "imx93", compiler=False)
    assert "detection-heads" not in [row.name for row in outcome.rows]
    outcome = fix_model(model, "imx93", names=["detection-heads"], compiler=False)
    assert "detection-heads" in [row.name for row in outcome.rows]
    assert (outcome.largest_error_lsb, len(model.graphs[0].outputs)) == (0, 2)
    assert not model.main.count(ops.Custom, ops.NonMaxSuppressionV4)
    if custom:
        assert outcome.cpu_after == 0
    *_, head = json.loads(model.metadata["vitrify.application"])
    if custom:
        assert head["operator"] == "TFLite_Detection_PostProcess"
        assert head["options"]["nms_iou_threshold"] == pytest.approx(0.6)
        assert len(head["inputs"][2]["values"]) == 16
    else:
        assert head["inputs"][3]["values"] == pytest.approx(0.6)


def unsigned(low: int, high: int) -> Model:
    """A convolution, a pool and a softmax of uint8, with weights of these steps."""
    m = Maker(DType.UINT8)
    x = m.input(1, 8, 8, 3)
    weights = m.const(m.random.integers(low, high + 1, (5, 3, 3, 3)), np.uint8, Quantization.per_tensor(0.004, 120))
    bias = m.const(m.random.integers(-900, 900, 5), np.int32, Quantization.per_tensor(0.004 * 0.05))
    x = m.op(ops.Conv2D(padding=SAME, stride_h=1, stride_w=1), x, weights, bias)
    x = m.op(ops.MaxPool2D(filter_height=2, filter_width=2, stride_h=2, stride_w=2), x)
    return m.model(m.op(ops.Softmax(beta=1.0), x, scale=1 / 256, zero=0))


@pytest.mark.parametrize(("low", "high", "most"), [(0, 240, 1), (0, 255, 8)], ids=["centred", "rounded_anew"])
def test_unsigned_models_become_signed(low: int, high: int, most: int) -> None:
    model = unsigned(low, high)
    outcome = fix_model(model, "imx93", names=["signed-values"], compiler=False)
    assert [row.name for row in outcome.rows] == ["signed-values"]
    assert not any(t.dtype is DType.UINT8 for t in model.main.tensors())
    assert outcome.largest_error_lsb is not None
    assert outcome.largest_error_lsb <= most


def streaming() -> Model:
    """Two frames of the past in a variable, which a graph of its own sets to zeros."""
    m = Maker()
    x = m.input(1, 1, 8)
    start = Graph("start")
    for graph in (start, m.graph):
        if graph is m.graph:
            graph.add(ops.CallOnce(init_subgraph_index=1), [], [])
        handle = Tensor(f"handle of {graph.name}", DType.RESOURCE, ())
        graph.add(ops.VarHandle(container="", shared_name="past"), [], [handle])
        if graph is start:
            zeros = m.const(np.full((1, 2, 8), ZERO), np.int8, m.steps())
            graph.add(ops.AssignVariable(), [handle, zeros], [])
    past = Tensor("past", DType.INT8, (1, 2, 8), quantization=m.steps())
    m.graph.add(ops.ReadVariable(), [handle], [past])
    joined = m.op(ops.Concatenation(axis=1), past, x)
    m.graph.add(ops.AssignVariable(), [handle, m.op(ops.Slice(), joined, m.ints(0, 1, 0), m.ints(1, 2, 8))], [])
    model = m.model(m.op(ops.Mean(keep_dims=True), joined, m.ints(1)))
    model.graphs.append(start)
    return model


def test_variables_become_inputs_and_outputs(tmp_path: Path) -> None:
    model = streaming()
    frames = [given(model, 1, seed)[0][0] for seed in range(4)]
    tflite.write(model, tmp_path / "before.tflite")
    with LiteRT(tmp_path / "before.tflite", keep_state=True) as runtime:
        before = [runtime.invoke_raw([frame])[0] for frame in frames]
    assert not fix_model(model, "imx93", compiler=False).changed
    outcome = fix_model(model, "imx93", names=["state-ports"], compiler=False)
    assert (outcome.cpu_after, outcome.largest_error_lsb) == (0, 0)
    assert len(model.graphs) == 1
    tflite.write(model, tmp_path / "after.tflite")
    state = np.full((1, 2, 8), ZERO, np.int8)
    with LiteRT(tmp_path / "after.tflite") as runtime:
        for frame, wanted in zip(frames, before, strict=True):
            found, state = runtime.invoke_raw([frame, state])
            np.testing.assert_array_equal(found, wanted)


def test_inexact_fixes_wait_to_be_named() -> None:
    def build() -> Model:
        m = Maker()
        return m.model(m.op(ops.ResizeBilinear(align_corners=True), m.input(1, 6, 6, 4), m.ints(12, 12)))

    plain = fix_model(build(), "imx93", compiler=False)
    assert not plain.changed
    assert [left.operator for left in plain.left] == ["RESIZE_BILINEAR"]
    named = fix_model(build(), "imx93", names=["bilinear-products"], compiler=False)
    assert named.cpu_after == 0
    assert named.largest_error_lsb is not None
    assert 0 < named.largest_error_lsb <= 2


def test_what_fails_its_class_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fix that says it is exact and is not."""
    import msgspec

    from vitrify.pipeline.checking.fixes import driving

    liar = msgspec.structs.replace(find(["bilinear-products"])[0], exactness=Exactness.EXACT, largest_lsb=0)
    monkeypatch.setattr(driving, "find", lambda names: (liar,))
    m = Maker()
    model = m.model(m.op(ops.ResizeBilinear(align_corners=True), m.input(1, 6, 6, 4), m.ints(12, 12)))
    before = tflite.to_bytes(model)
    outcome = fix_model(model, "imx93", only=["x"], compiler=False)
    assert not outcome.changed
    assert outcome.rows[0].undone
    assert tflite.to_bytes(model) == before


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="there is no fix 'faster'"):
        find(["faster"])


def all_rules() -> list[Rule]:
    return [rule for family in {targets.load(name).family for name in targets.names()} for rule in rules_of(family)]


def test_every_name_in_a_rule_is_a_fix_of_it() -> None:
    known = {one.name: one for one in catalogue()}
    for rule in all_rules():
        if rule.fix:
            assert rule.code in known[rule.fix].mends, f"{rule.code} names '{rule.fix}'"


def test_every_code_that_a_fix_mends_is_a_rule() -> None:
    codes = {rule.code for rule in all_rules()}
    families = {code.partition(".")[0] for code in codes}
    for one in catalogue():
        assert one.says, one.name
        assert one.wins, one.name
        assert one.mends or one.cheaper or one.avoids, one.name
        assert {code for code in one.mends if code.partition(".")[0] in families} <= codes, one.name
