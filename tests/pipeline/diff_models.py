"""A network of equal blocks, and edits of it that a comparison must find, and nothing beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Node, Operator, Origin, Quantization, Tensor
from vitrify.ops.attributes import Activation

FILES = Path(__file__).parent / "diff_files"
CHANNELS = 8
BLOCKS = 4


class Maker:
    """Builds a float graph; with ``alike`` all blocks have the same weights."""

    def __init__(self, alike: bool = False, seed: int = 0) -> None:
        self.graph = Graph()
        self.random = np.random.default_rng(seed)
        self.alike = alike

    def weights(self, name: str, *shape: int) -> Tensor:
        random = np.random.default_rng(len(shape) + sum(shape)) if self.alike else self.random
        return Tensor(name, DType.FLOAT32, shape, data=random.normal(0, 0.3, shape).astype(np.float32))

    def op(self, name: str, op: Operator, *inputs: Tensor) -> Tensor:
        return self.graph.add(op, inputs, name=name, output_names=[name], origin=Origin.of(name, op.kind)).output

    def ints(self, name: str, *values: int) -> Tensor:
        return Tensor(name, DType.INT32, (len(values),), data=np.array(values, np.int32))

    def block(self, n: int, x: Tensor) -> Tensor:
        conv = self.op(f"conv{n}", ops.Conv2D(), x, self.weights(f"w{n}", CHANNELS, 3, 3, CHANNELS),
                       self.weights(f"b{n}", CHANNELS))
        relu = self.op(f"relu{n}", ops.Relu(), conv)
        gate = self.op(f"gate{n}", ops.Logistic(), relu)
        product = self.op(f"mul{n}", ops.Mul(), relu, gate)
        return self.op(f"add{n}", ops.Add(), product, x)


def network(blocks: int = BLOCKS, *, alike: bool = False) -> Model:
    """Equal blocks with a gate and a short cut each, then a classifier."""
    make = Maker(alike)
    x = Tensor("image", DType.FLOAT32, (1, 12, 12, 3))
    make.graph.inputs = [x]
    stem = make.op("stem", ops.Conv2D(), x, make.weights("ws", CHANNELS, 3, 3, 3), make.weights("bs", CHANNELS))
    for n in range(blocks):
        stem = make.block(n, stem)
    less = make.op("less", ops.Sub(), stem, make.op("peak", ops.MaxPool2D(filter_height=3, filter_width=3, stride_h=1,
                                                                          stride_w=1), stem))
    mean = make.op("mean", ops.Mean(), less, make.ints("axes", 1, 2))
    out = make.op("fc", ops.FullyConnected(), mean, make.weights("wf", 5, CHANNELS), make.weights("bf", 5))
    make.graph.set_outputs([make.op("scores", ops.Softmax(), out)])
    return Model([make.graph])


def node(model: Model, name: str) -> Node:
    return next(n for n in model.main if n.name == name)


def erase_names(model: Model) -> None:
    """Take every name and origin away."""
    for number, tensor in enumerate(model.main.tensors()):
        tensor.name, tensor.origin = f"t{number}", Origin()
    for number, one in enumerate(model.main):
        one.name, one.origin = f"n{number}", Origin()


def number_names(model: Model) -> None:
    """Call nodes by their kind and a running number, as some exporters do: one more shifts all behind it."""
    for number, one in enumerate(model.main):
        one.name = one.output.name = f"node_{number}"
        one.origin = Origin.of(one.name, one.op.kind)


def keep_names(model: Model) -> None:
    """Leave names as they are."""


NAMINGS = {"named": keep_names, "nameless": erase_names, "numbered": number_names}

# edits


def _change_constant(model: Model, name: str, slot: int, data: Any, quantization: Any = None) -> None:
    one = node(model, name)
    old = one.input(slot)
    made = Tensor(old.name, old.dtype, data.shape, data=data, quantization=quantization or old.quantization,
                  origin=old.origin)
    model.main.set_input(one, slot, made)


def one_weight(model: Model) -> None:
    data = np.array(node(model, "conv2").input(1).data)
    data[3, 1, 1, 2] += 1
    _change_constant(model, "conv2", 1, data)


def bias(model: Model) -> None:
    data = np.array(node(model, "fc").input(2).data)
    data[1] += 3
    _change_constant(model, "fc", 2, data)


def attribute(model: Model) -> None:
    one = node(model, "peak")
    assert isinstance(one.op, ops.MaxPool2D)
    model.main.replace_node(one, replace(one.op, filter_height=5), one.inputs)


def _behind(model: Model, name: str, op: Operator, inputs: Sequence[Tensor], made: str) -> Node:
    """Put a node behind another one, in the way of all that read it."""
    one = node(model, name)
    readers = one.output.uses
    added = model.main.add(op, [one.output, *inputs], name=made, output_names=[made], after=one)
    for reader, slot in readers:
        model.main.set_input(reader, slot, added.output)
    return added


def transposes(model: Model) -> None:
    make = Maker()
    _behind(model, "relu1", ops.Transpose(), [make.ints("p", 0, 3, 1, 2)], "turn")
    _behind(model, "turn", ops.Transpose(), [make.ints("q", 0, 2, 3, 1)], "back")


def no_gate(model: Model) -> None:
    _bypass(model, "gate1")


def _bypass(model: Model, name: str) -> None:
    one = node(model, name)
    for reader, slot in one.output.uses:
        model.main.set_input(reader, slot, one.input(0))
    model.main.remove(one)


def no_block(model: Model) -> None:
    for reader, slot in node(model, "add1").output.uses:
        model.main.set_input(reader, slot, node(model, "add0").output)
    for name in ("add1", "mul1", "gate1", "relu1", "conv1"):
        model.main.remove(node(model, name))


def other_operator(model: Model) -> None:
    one = node(model, "gate2")
    model.main.replace_node(one, ops.Tanh(), one.inputs)


def swapped_inputs(model: Model) -> None:
    one = node(model, "less")
    model.main.set_inputs(one, (one.inputs[1], one.inputs[0]))


def other_reading(model: Model) -> None:
    one = node(model, "add2")
    model.main.set_input(one, 1, node(model, "add0").output)


def moved(model: Model) -> None:
    """The RELU of a block stands before its convolution."""
    relu, conv = node(model, "relu2"), node(model, "conv2")
    for reader, slot in relu.output.uses:
        model.main.set_input(reader, slot, conv.output)
    model.main.set_input(relu, 0, conv.input(0))
    model.main.set_input(conv, 0, relu.output)
    model.main.sort()


def fused(model: Model) -> None:
    conv, relu = node(model, "conv1"), node(model, "relu1")
    assert isinstance(conv.op, ops.Conv2D)
    made = model.main.replace_node(conv, replace(conv.op, fused_activation_function=Activation.RELU), conv.inputs)
    for reader, slot in relu.output.uses:
        model.main.set_input(reader, slot, made.output)
    model.main.remove(relu)


def one_more(model: Model) -> None:
    _behind(model, "add3", ops.Relu6(), [], "more")


def more_outputs(model: Model) -> None:
    model.main.set_outputs([*model.main.outputs, node(model, "add3").output])


def other_order(model: Model) -> None:
    """The same graph, sums and products written the other way round."""
    for name in ("mul0", "add2"):                       # sums and products are the same either way
        one = node(model, name)
        model.main.set_inputs(one, (one.inputs[1], one.inputs[0]))


def other_scale(model: Model) -> None:
    tensor = node(model, "gate1").output
    assert tensor.quantization is not None
    tensor.quantization = Quantization.per_tensor(float(tensor.quantization.scale[0]) * 1.5,
                                                  int(tensor.quantization.zero_point[0]))


def other_zero(model: Model) -> None:
    tensor = node(model, "mul2").output
    assert tensor.quantization is not None
    tensor.quantization = Quantization.per_tensor(float(tensor.quantization.scale[0]), 17)


def one_scale(model: Model) -> None:
    weights = node(model, "conv3").input(1)
    assert weights.quantization is not None
    assert weights.data is not None
    real = weights.quantization.dequantize(weights.data)
    whole = Quantization.per_tensor(float(np.abs(real).max()) / 127)
    _change_constant(model, "conv3", 1, whole.quantize(real, np.int8), whole)


def island(model: Model) -> None:
    """One operator computes in float."""
    one = node(model, "gate2")
    graph, old = model.main, one.input(0)
    wide = graph.add(ops.Dequantize(), [old], [Tensor("wide", DType.FLOAT32, old.shape)], name="wide", before=one)
    made = graph.add(one.op, [wide.output], [Tensor("real", DType.FLOAT32, old.shape)], name=one.name,
                     origin=one.origin, before=one)
    narrow = graph.add(ops.Quantize(), [made.output], [Tensor("narrow", DType.INT8, old.shape, quantization=(
        one.output.quantization))], name="narrow", before=one)
    graph.replace_uses(one.output, narrow.output)
    graph.remove(one)


class Edit(NamedTuple):
    """An edit, and what has to be told: the relation, the kinds of nodes in A and in B, the kinds of changes."""

    make: Callable[[Model], None]
    told: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]


C, R, G = "CONV_2D", "RELU", "LOGISTIC"
EDITS = {
    "nothing": Edit(lambda model: None, ()),
    "one-weight": Edit(one_weight, (("changed", (C,), (C,), ("constant",)),)),
    "bias": Edit(bias, (("changed", ("FULLY_CONNECTED",), ("FULLY_CONNECTED",), ("constant",)),)),
    "attribute": Edit(attribute, (("changed", ("MAX_POOL_2D",), ("MAX_POOL_2D",), ("attribute",)),)),
    "transposes": Edit(transposes, (("added", (), ("TRANSPOSE",), ()), ("added", (), ("TRANSPOSE",), ()))),
    "no-gate": Edit(no_gate, (("removed", (G,), (), ()),)),
    "no-block": Edit(no_block, tuple(("removed", (k,), (), ()) for k in ("ADD", C, G, "MUL", R))),
    "other-operator": Edit(other_operator, (("changed", (G,), ("TANH",), ("operator",)),)),
    "swapped-inputs": Edit(swapped_inputs, (("changed", ("SUB",), ("SUB",), ("inputs",)),)),
    "other-reading": Edit(other_reading, (("changed", ("ADD",), ("ADD",), ("inputs",)),)),
    "moved": Edit(moved, (("moved", (R,), (R,), ("place",)),)),
    "fused": Edit(fused, (("fused", (C, R), (C,), ("attribute",)),)),
    "one-more": Edit(one_more, (("added", (), ("RELU6",), ()),)),
    "more-outputs": Edit(more_outputs, ()),
    "other-order": Edit(other_order, ()),
}
INTEGER_EDITS = {
    "nothing": EDITS["nothing"],
    "scale": Edit(other_scale, (("changed", (G,), (G,), ("scale",)),)),
    "zero-point": Edit(other_zero, (("changed", ("MUL",), ("MUL",), ("zero-point",)),)),
    "one-scale": Edit(one_scale, (("changed", (C,), (C,), ("granularity",)),)),
    "island": Edit(island, (("added", (), ("DEQUANTIZE",), ()), ("added", (), ("QUANTIZE",), ()),
                            ("changed", (G,), (G,), ("type",)))),
    "transposes": EDITS["transposes"],
    "no-gate": EDITS["no-gate"],
}
