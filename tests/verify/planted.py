"""A small model with many kinds of operators, its forms, and faults to plant into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (1, 3, 16, 16)


def network(path: Path) -> Path:
    """Normalized pictures, convolutions of several kinds, a branch, a resize, a split, a subtraction, classes."""
    random = np.random.default_rng(7)
    constants: dict[str, np.ndarray] = {}
    nodes = []

    def add(kind: str, inputs: list[str], name: str, outputs: list[str] | None = None, **more: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, outputs or [name], name=f"node_of_{name}", **more))
        return (outputs or [name])[0]

    def constant(name: str, value: np.ndarray) -> str:
        constants[name] = value
        return name

    def conv(given: str, name: str, inside: int, out: int, size: int = 3, group: int = 1, stride: int = 1) -> str:
        fan = inside // group * size * size
        weights = constant(f"{name}.weight", random.normal(0, fan ** -0.5, (out, inside // group, size, size)))
        bias = constant(f"{name}.bias", random.normal(0, 0.2, out))
        return add("Conv", [given, weights, bias], name, kernel_shape=[size] * 2, group=group, strides=[stride] * 2,
                   pads=[size // 2] * 4)

    moved = add("Sub", ["image", constant("mean", np.array([0.5, 0.4, 0.3]).reshape(1, 3, 1, 1))], "moved")
    scaled = add("Div", [moved, constant("std", np.array([0.2, 0.25, 0.3]).reshape(1, 3, 1, 1))], "scaled")
    stem = add("Relu", [conv(scaled, "stem_conv", 3, 8)], "stem")
    deep = add("Relu", [conv(stem, "deep_conv", 8, 8, group=8)], "deep")
    point = conv(deep, "point", 8, 8, size=1)
    total = add("Add", [point, stem], "total")
    small = add("MaxPool", [total], "small", kernel_shape=[2, 2], strides=[2, 2])
    strided = add("Clip", [conv(small, "strided_conv", 8, 8), constant("low", np.array(0.0)),
                           constant("high", np.array(6.0))], "strided")
    large = add("Resize", [strided, "", constant("sizes", np.array([1, 1, 2, 2]))], "large", mode="linear",
                coordinate_transformation_mode="half_pixel")
    add("Split", [large], "", ["left", "right"], axis=1, num_outputs=2)
    left = conv("left", "left_conv", 4, 4)
    right = conv("right", "right_conv", 4, 4, size=1)
    apart = add("Sub", [left, right], "apart")
    joined = add("Concat", [apart, total], "joined", axis=1)
    gate = add("Sigmoid", [conv(joined, "gate_conv", 12, 12, size=1)], "gate")
    gated = add("Mul", [joined, gate], "gated")
    square = conv(gated, "square", 12, 16)
    mean = add("ReduceMean", [square, constant("axes", np.array([2]))], "rows", keepdims=0)
    flat = add("Flatten", [mean], "flat")
    add("Gemm", [flat, constant("fc.weight", random.normal(0, 0.06, (256, 10))),
                 constant("fc.bias", random.normal(0, 0.2, 10))], "classes")
    whole = {"axes": np.int64}
    graph = helper.make_graph(
        nodes, "planted", [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("classes", TensorProto.FLOAT, [1, 10]),
         helper.make_tensor_value_info("square", TensorProto.FLOAT, [1, 16, 16, 16])],
        [numpy_helper.from_array(v.astype(whole.get(n, np.float32)), n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def pictures(folder: Path, count: int = 6) -> Path:
    """Smooth random pictures."""
    folder.mkdir()
    random = np.random.default_rng(3)
    for number in range(count):
        coarse = random.uniform(0, 1, (1, 3, 4, 4))
        np.save(folder / f"{number}.npy", np.clip(coarse.repeat(4, 2).repeat(4, 3)
                                                  + random.normal(0, 0.1, SHAPE), 0, 1).astype(np.float32))
    return folder


Fault = Callable[[Any], str]
FAULTS: dict[str, tuple[Fault, frozenset[str]]] = {}
"""By name: what plants it and returns the tensor that becomes wrong, and the forms that it can be planted into."""

BOTH, FLOAT, INT8 = frozenset({"float", "int8"}), frozenset({"float"}), frozenset({"int8"})


def fault(forms: frozenset[str] = BOTH) -> Callable[[Fault], Fault]:
    """Enter a fault into the table."""
    def enter(plant: Fault) -> Fault:
        FAULTS[plant.__name__] = plant, forms
        return plant
    return enter


def _node(graph: Any, tensor: str) -> Any:
    return next(node for node in graph for t in node.outputs if t.name == tensor)


def _own(graph: Any, tensor: str, place: int) -> np.ndarray:
    """A copy of a constant of the operator that makes ``tensor``, set in its place."""
    constant = _node(graph, tensor).inputs[place]
    constant.data = constant.data.copy()
    return constant.data


def _behind(graph: Any, tensor: str, *stages: Any) -> str:
    """Put operators behind the one that makes ``tensor``; what they give takes its name. A stage: the operator, its
    further inputs, the shape it gives."""
    from vitrify.ir import Tensor

    node = _node(graph, tensor)
    made = next(t for t in node.outputs if t.name == tensor)
    users, is_output, outputs = made.uses, made.is_output, list(graph.outputs)
    quantization = made.quantization
    made.name = f"{tensor}_before"
    last, after = made, node
    for number, (op, more, shape) in enumerate(stages):
        name = tensor if number == len(stages) - 1 else f"{tensor}_on_its_way_{number}"
        fresh = Tensor(name, made.dtype, shape, quantization=quantization, origin=made.origin)
        after = graph.add(op, [last, *more], [fresh], name=name, after=after)
        last = fresh
    for user, place in users:
        graph.set_input(user, place, last)
    if is_output:
        graph.set_outputs([last if t is made else t for t in outputs])
    return tensor


def _ints(*values: Any) -> Any:
    from vitrify.ir import DType, Tensor

    data = np.array(values, np.int32)
    return Tensor(f"ints_{abs(hash(values))}", DType.INT32, data.shape, data=data)


def _replace(graph: Any, tensor: str, **attributes: Any) -> str:
    from dataclasses import is_dataclass, replace

    import msgspec

    node = _node(graph, tensor)
    change = replace if is_dataclass(node.op) else msgspec.structs.replace
    node.op = change(node.op, **attributes)
    return tensor


@fault()
def wrong_weight(graph: Any) -> str:
    data = _own(graph, "point", 1)
    data[3, 0, 0, 2] = 127 if data.dtype == np.int8 and data[3, 0, 0, 2] < 0 else -127 if data.dtype == np.int8 else 1.5
    return "point"


@fault()
def wrong_bias(graph: Any) -> str:
    data = _own(graph, "stem", 2)
    data[2] = -data[2] * 2
    return "stem"


@fault()
def swapped_channels(graph: Any) -> str:
    data = _own(graph, "point", 1)
    data[[1, 5]] = data[[5, 1]]
    return "point"


@fault()
def swapped_input_channels(graph: Any) -> str:
    data = _own(graph, "left_conv", 1)
    data[..., [0, 3]] = data[..., [3, 0]]
    return "left_conv"


@fault()
def depthwise_channels_shifted(graph: Any) -> str:
    data = _own(graph, "deep", 1)
    data[:] = np.roll(data, 1, -1)
    return "deep"


@fault()
def kernel_flipped(graph: Any) -> str:
    data = _own(graph, "square", 1)
    data[:] = data[:, ::-1, ::-1]
    return "square"


@fault()
def kernel_transposed(graph: Any) -> str:
    data = _own(graph, "strided", 1)
    data[:] = data.transpose(0, 2, 1, 3)
    return "strided"


@fault()
def transposed_output(graph: Any) -> str:
    from vitrify import ops

    return _behind(graph, "total", (ops.Transpose(), [_ints(0, 2, 1, 3)], (1, 16, 16, 8)))


@fault()
def transposed_output_of_the_model(graph: Any) -> str:
    from vitrify import ops

    return _behind(graph, "square", (ops.Transpose(), [_ints(0, 2, 1, 3)], (1, 16, 16, 16)))


@fault()
def channels_and_width_mixed_up(graph: Any) -> str:
    from vitrify import ops

    return _behind(graph, "square", (ops.Transpose(), [_ints(0, 3, 1, 2)], (1, 16, 16, 16)))


@fault()
def nchw_read_as_nhwc(graph: Any) -> str:
    from vitrify import ops

    return _behind(graph, "gated", (ops.Transpose(), [_ints(0, 3, 1, 2)], (1, 12, 16, 16)),
                   (ops.Reshape(), [_ints(1, 16, 16, 12)], (1, 16, 16, 12)))


@fault(FLOAT)
def wrong_mean(graph: Any) -> str:
    _own(graph, "moved", 1)[:] = -0.45
    return "moved"


@fault(INT8)
def wrong_mean_in_integers(graph: Any) -> str:
    data = _own(graph, "moved", 1)
    data[..., 0] = data[..., 2]
    return "moved"


@fault(FLOAT)
def wrong_std(graph: Any) -> str:
    _own(graph, "stem", 1)[..., 1] *= 0.25 / 0.3
    return "stem"


@fault()
def means_of_other_channels(graph: Any) -> str:
    data = _own(graph, "moved", 1)
    data[:] = data[..., ::-1]
    return "moved"


@fault(FLOAT)
def lost_activation(graph: Any) -> str:
    from vitrify.ops import Activation

    return _replace(graph, "stem", fused_activation_function=Activation.NONE)


@fault()
def another_activation(graph: Any) -> str:
    from vitrify.ops import Activation

    return _replace(graph, "point", fused_activation_function=Activation.RELU)


@fault()
def narrow_activation(graph: Any) -> str:
    from vitrify.ops import Activation

    return _replace(graph, "deep", fused_activation_function=Activation.RELU_N1_TO_1)


@fault()
def padded_on_one_side(graph: Any) -> str:
    from vitrify import ops
    from vitrify.ir import Tensor

    node = _node(graph, "left_conv")
    given = node.inputs[0]
    padded = Tensor("left_padded", given.dtype, (1, 18, 18, 4), quantization=given.quantization)
    graph.add(ops.Pad(), [given, _ints((0, 0), (2, 0), (2, 0), (0, 0))], [padded], name="left_padded", before=node)
    graph.set_input(node, 0, padded)
    return _replace(graph, "left_conv", padding=ops.Padding.VALID)


@fault()
def pool_of_another_size(graph: Any) -> str:
    return _replace(graph, "small", filter_height=1)


@fault()
def average_for_the_largest(graph: Any) -> str:
    from vitrify import ops

    node = _node(graph, "small")
    node.op = ops.AveragePool2D(padding=node.op.padding, stride_w=2, stride_h=2, filter_width=2, filter_height=2,
                                fused_activation_function=ops.Activation.NONE)
    return "small"


@fault()
def swapped_operands(graph: Any) -> str:
    return _swap(graph, "apart")


@fault()
def sum_for_difference(graph: Any) -> str:
    from vitrify import ops

    node = _node(graph, "apart")
    node.op = ops.Add(fused_activation_function=ops.Activation.NONE, pot_scale_int16=False)
    return "apart"


@fault()
def wrong_axis(graph: Any) -> str:
    data = _own(graph, "rows", 1)
    data[:] = 3 - data
    return "rows"


@fault(FLOAT)
def not_a_number(graph: Any) -> str:
    _own(graph, "square", 1)[4, 1, 1, 0] = np.nan
    return "square"


@fault()
def wrong_resize_mode(graph: Any) -> str:
    return _replace(graph, "large", half_pixel_centers=False)


@fault()
def corners_aligned(graph: Any) -> str:
    return _replace(graph, "large", half_pixel_centers=False, align_corners=True)


@fault()
def nearest_for_linear(graph: Any) -> str:
    from vitrify import ops

    node = _node(graph, "large")
    node.op = ops.ResizeNearestNeighbor(align_corners=False, half_pixel_centers=False)
    return "large"


@fault()
def permuted_split(graph: Any) -> str:
    node = _node(graph, "left")
    first, second = node.outputs
    first.name, second.name = "right", "left"
    ours, theirs = first.uses, second.uses
    for user, place in ours:
        graph.set_input(user, place, second)
    for user, place in theirs:
        graph.set_input(user, place, first)
    return "right"


@fault()
def joined_in_another_order(graph: Any) -> str:
    return _swap(graph, "joined")


def _swap(graph: Any, tensor: str) -> str:
    node = _node(graph, tensor)
    first, second = node.inputs
    graph.set_input(node, 0, second)
    graph.set_input(node, 1, first)
    return tensor


@fault()
def dilated(graph: Any) -> str:
    return _replace(graph, "square", dilation_h_factor=2)


@fault()
def read_in_another_order(graph: Any) -> str:
    from vitrify import ops
    from vitrify.ir import Tensor

    node = _node(graph, "flat")
    given = node.inputs[0]
    turned = Tensor("turned", given.dtype, (1, 16, 16), quantization=given.quantization)
    graph.add(ops.Transpose(), [given, _ints(0, 2, 1)], [turned], name="turned", before=node)
    graph.set_input(node, 0, turned)
    return "flat"


@fault()
def swapped_classes(graph: Any) -> str:
    data = _own(graph, "classes", 1)
    data[[2, 7]] = data[[7, 2]]
    return "classes"


@fault()
def half_of_the_weights_lost(graph: Any) -> str:
    _own(graph, "classes", 1)[:, :128] = 0
    return "classes"


@fault()
def one_channel_scaled(graph: Any) -> str:
    data = _own(graph, "gate_conv", 1)
    data[5] = (data[5] * 0.5).astype(data.dtype)
    return "gate_conv"


@fault(FLOAT)
def cut_off(graph: Any) -> str:
    from vitrify import ops
    from vitrify.ir import DType, Tensor

    most = Tensor("most", DType.FLOAT32, (), data=np.float32(0.4))
    return _behind(graph, "gated", (ops.Minimum(), [most], (1, 16, 16, 12)))


@fault()
def moved_by_a_pixel(graph: Any) -> str:
    from vitrify import ops

    return _behind(graph, "large", (ops.Slice(), [_ints(0, 1, 0, 0), _ints(1, 15, 16, 8)], (1, 15, 16, 8)),
                   (ops.Pad(), [_ints((0, 0), (0, 1), (0, 0), (0, 0))], (1, 16, 16, 8)))


def _with_scale(graph: Any, tensor: str, factor: float, moved: int = 0) -> str:
    from vitrify.ir.quantization import Quantization

    made = next(t for t in _node(graph, tensor).outputs if t.name == tensor)
    made.quantization = Quantization.per_tensor(float(made.quantization.scale[0]) * factor,
                                                int(np.clip(made.quantization.zero_point[0] + moved, -128, 127)))
    return tensor


@fault(INT8)
def narrow_scale(graph: Any) -> str:
    return _with_scale(graph, "gated", 0.5)


@fault(INT8)
def wrong_zero_point(graph: Any) -> str:
    return _with_scale(graph, "gated", 1.0, 70)


def _read_otherwise(graph: Any, tensor: str, factor: float, moved: int = 0) -> str:
    """The same integers under another scale: a requantization that was left out."""
    from vitrify import ops

    shape = next(t for t in _node(graph, tensor).outputs if t.name == tensor).shape
    _behind(graph, tensor, (ops.Reshape(), [_ints(*shape)], shape))
    return _with_scale(graph, tensor, factor, moved)


@fault(INT8)
def dropped_requantization(graph: Any) -> str:
    return _read_otherwise(graph, "point", 1.2)


@fault(INT8)
def wrong_shift(graph: Any) -> str:
    return _read_otherwise(graph, "gated", 2.0)


@fault(INT8)
def zero_point_off_by_four(graph: Any) -> str:
    return _read_otherwise(graph, "point", 1.0, 4)


@fault(INT8)
def weight_scale_doubled(graph: Any) -> str:
    from dataclasses import replace

    weights = _node(graph, "point").inputs[1]
    scale = weights.quantization.scale.copy()
    scale[6] *= 2
    weights.quantization = replace(weights.quantization, scale=scale)
    return "point"


@fault(INT8)
def rounded_down(graph: Any) -> str:
    node = _node(graph, "left_conv")
    given, weights, _ = node.inputs
    step = given.quantization.scale[0] * weights.quantization.scale / node.output.quantization.scale[0]
    _own(graph, "left_conv", 2)[:] -= np.rint(0.5 / step).astype(np.int32)
    return "left_conv"
