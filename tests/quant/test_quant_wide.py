"""16-bit activations: every operator that may have them, where they begin and end, and how a recipe asks for them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.core.errors import UsageError
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import Override, Recipe, Statistics, quantize
from vitrify.quant.rules import SIXTEEN

Make = Callable[[Net, Tensor], Tensor]
WIDE = Recipe(activations="int16", outputs="keep")

CASES: dict[str, Make] = {
    "conv": lambda n, x: n.conv(x, 6),
    "depthwise": lambda n, x: n.add(ops.DepthwiseConv2D(), x, n.weights(1, 3, 3, 4, gain=3),
                                    n.constant(np.linspace(-1, 1, 4))),
    "transposed_conv": lambda n, x: n.add(ops.TransposeConv(stride_h=2, stride_w=2), n.constant([1, 16, 16, 5]),
                                          n.weights(5, 2, 2, 4), x, n.constant(np.linspace(-1, 1, 5))),
    "dense": lambda n, x: n.add(ops.FullyConnected(), n.add(ops.Reshape(new_shape=(1, 256)), x, n.constant([1, 256])),
                                n.weights(7, 256), n.constant(np.ones(7))),
    "add": lambda n, x: n.add(ops.Add(), x, n.conv(x, 4)),
    "add_scalar": lambda n, x: n.add(ops.Add(), x, n.constant(np.float32(0.3))),
    "sub": lambda n, x: n.add(ops.Sub(), x, n.conv(x, 4)),
    "mul": lambda n, x: n.add(ops.Mul(), x, n.conv(x, 4)),
    "mul_scalar": lambda n, x: n.add(ops.Mul(), x, n.constant(np.float32(0.3))),
    "hard_swish": lambda n, x: n.add(ops.HardSwish(), x),
    "relu": lambda n, x: n.add(ops.Relu(), x),
    "relu6": lambda n, x: n.add(ops.Relu6(), x),
    "pad": lambda n, x: n.add(ops.Pad(), x, n.constant([[0, 0], [1, 1], [1, 1], [0, 0]])),
    "concat": lambda n, x: n.add(ops.Concatenation(axis=3), x, n.conv(x, 3, gain=9)),
    "mean": lambda n, x: n.add(ops.Mean(keep_dims=True), x, n.constant([1, 2])),
    "max_pool": lambda n, x: n.add(ops.MaxPool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2), x),
    "average_pool": lambda n, x: n.add(ops.AveragePool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2), x),
    "resize_nearest": lambda n, x: n.add(ops.ResizeNearestNeighbor(), x, n.constant([16, 16])),
    "resize_bilinear": lambda n, x: n.add(ops.ResizeBilinear(), x, n.constant([16, 16])),
    "transpose": lambda n, x: n.add(ops.Transpose(), x, n.constant([0, 3, 1, 2])),
    "slice": lambda n, x: n.add(ops.Slice(), x, n.constant([0, 0, 0, 0]), n.constant([1, 4, 8, 4])),
    "logistic": lambda n, x: n.add(ops.Logistic(), x),
    "tanh": lambda n, x: n.add(ops.Tanh(), x),
    "softmax": lambda n, x: n.add(ops.Softmax(beta=1.0), x),
    "leaky_relu": lambda n, x: n.add(ops.LeakyRelu(alpha=0.1), x),
    "gelu": lambda n, x: n.add(ops.Gelu(), x),
    "exp": lambda n, x: n.add(ops.Exp(), n.add(ops.Minimum(), x, n.constant(np.float32(2)))),
    "abs": lambda n, x: n.add(ops.Abs(), x),
    "sqrt": lambda n, x: n.add(ops.Sqrt(), n.add(ops.Abs(), x)),
    "rsqrt": lambda n, x: n.add(ops.Rsqrt(), n.add(ops.Maximum(), x, n.constant(np.float32(0.5)))),
    "log": lambda n, x: n.add(ops.Log(), n.add(ops.Maximum(), x, n.constant(np.float32(0.1)))),
    "elu": lambda n, x: n.add(ops.Elu(), x),
    "relu_0_to_1": lambda n, x: n.add(ops.Relu0To1(), x),
    "relu_n1_to_1": lambda n, x: n.add(ops.ReluN1To1(), x),
    "maximum": lambda n, x: n.add(ops.Maximum(), x, n.conv(x, 4)),
    "minimum": lambda n, x: n.add(ops.Minimum(), x, n.constant(np.float32(0.3))),
    "divide": lambda n, x: n.add(ops.Div(), x, n.add(ops.Maximum(), n.conv(x, 4), n.constant(np.float32(0.5)))),
    "select": lambda n, x: n.add(ops.SelectV2(), Tensor("mask", DType.BOOL, (4,), data=np.arange(4) % 2 > 0), x,
                                 n.constant(np.float32(0.3))),
    "batch_matmul": lambda n, x: n.add(ops.BatchMatMul(adj_y=True), x, x),
    "gather": lambda n, x: n.add(ops.Gather(axis=3), x, n.constant([3, 1])),
    "pack": lambda n, x: n.add(ops.Pack(values_count=2, axis=0), x, x),
    "unpack": lambda n, x: n.add(ops.Add(), *n.graph.add(ops.Unpack(num=8, axis=1), [x], name="u").outputs[:2]),
    "split_v": lambda n, x: n.graph.add(ops.SplitV(num_splits=2), [x, n.constant([1, 3]), n.constant(3)],
                                        name="v").outputs[1],
    "squeeze": lambda n, x: n.add(ops.Squeeze(squeeze_dims=(0,)), x),
    "expand": lambda n, x: n.add(ops.ExpandDims(), x, n.constant(0)),
    "tile": lambda n, x: n.add(ops.Tile(), x, n.constant([1, 2, 1, 1])),
    "reverse": lambda n, x: n.add(ops.ReverseV2(), x, n.constant([1])),
    "mirror_pad": lambda n, x: n.add(ops.MirrorPad(), x, n.constant([[0, 0], [1, 1], [1, 1], [0, 0]])),
    "pad_v2": lambda n, x: n.add(ops.PadV2(), x, n.constant([[0, 0], [1, 1], [1, 1], [0, 0]]),
                                 n.constant(np.float32(0.5))),
    "reduce_max": lambda n, x: n.add(ops.ReduceMax(keep_dims=True), x, n.constant([1, 2])),
    "reduce_min": lambda n, x: n.add(ops.ReduceMin(keep_dims=True), x, n.constant([3])),
    "top_k": lambda n, x: n.graph.add(ops.TopKV2(), [x, n.constant(2)], name="top").outputs[0],
    "sin": lambda n, x: n.add(ops.Sin(), x),
    "space_to_batch": lambda n, x: n.add(ops.SpaceToBatchND(), x, n.constant([2, 2]), n.constant([[0, 0], [0, 0]])),
    "batch_to_space": lambda n, x: n.add(ops.BatchToSpaceND(), n.add(ops.Concatenation(axis=0), *[x] * 4),
                                         n.constant([2, 2]), n.constant([[0, 0], [0, 0]])),
    "broadcast": lambda n, x: n.add(ops.BroadcastTo(), x, n.constant([2, 8, 8, 4])),
    "update": lambda n, x: n.add(ops.DynamicUpdateSlice(), x, n.add(
        ops.Slice(), x, n.constant([0, 0, 0, 0]), n.constant([1, 2, 2, 4])), n.constant([0, 1, 1, 0])),
    "gather_nd": lambda n, x: n.add(ops.GatherND(), x, n.constant([[0, 1], [0, 3], [0, 4]])),
    "choose": lambda n, x: n.add(ops.Select(), Tensor("mask", DType.BOOL, (1, 8, 8, 4), data=
        np.arange(256).reshape(1, 8, 8, 4) % 3 > 0), x, n.conv(x, 4)),
    "strided_slice": lambda n, x: n.add(ops.StridedSlice(), x, n.constant([0, 1, 0, 0]), n.constant([1, 8, 8, 4]),
                                        n.constant([1, 2, 1, 1])),
    "split": lambda n, x: n.graph.add(ops.Split(num_splits=2), [n.constant(3), x], name="s").outputs[1],
    "reshape": lambda n, x: n.add(ops.Reshape(new_shape=(1, 64, 4)), x, n.constant([1, 64, 4])),
    "power": lambda n, x: n.add(ops.Pow(), n.add(ops.Abs(), x), n.constant(np.float32(0.4))),
}

def chain(net: Net, make: Make) -> Model:
    """The operator between two products that tell 16 bits from 8: small values beside a large one."""
    x = net.conv(net.x, 4, gain=3)
    y = make(net, x)
    return net.model(net.add(ops.Mul(), y, net.constant(np.float32(1.5)), name="last"))


@pytest.mark.parametrize("name", CASES)
def test_every_kind_runs_in_16_bits(name: str, tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = chain(net, CASES[name])
    statistics = statistics_of(model, tmp_path)
    made = quantize(model, statistics, WIDE)
    inner = [t for n in made.model.main if n.op.kind != "QUANTIZE" for t in n.outputs if not t.is_output]
    assert all(t.dtype in (DType.INT16, DType.INT32, DType.BOOL) for t in inner)
    assert made.model.main.outputs[0].dtype is DType.INT8
    assert made.model.main.inputs[0].dtype is DType.INT8
    assert "HARD_SWISH" not in kinds(made.model)
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample, "fast").values(), run(made.model, sample).values()
    assert sqnr(wanted, found) > 34


def deep(net: Net) -> Model:
    x = net.x
    for number in range(4):
        x = net.add(ops.HardSwish(), net.conv(x, 6, gain=4, name=f"conv_{number}"), name=f"act_{number}")
    return net.model(net.conv(x, 3, gain=4, name="last"))


def wide_convolutions(model: Model, statistics: Statistics, recipe: Recipe) -> list[str]:
    made = quantize(model, statistics, recipe)
    return [n.name for n in made.model.main.nodes_of(ops.Conv2D) if n.output.dtype is DType.INT16]


RECIPES = {
    "none": (Recipe(), []),
    "by_name": (Recipe(overrides=(Override(name="conv_[12]", activations="int16"),)), ["conv_1", "conv_2"]),
    "by_operator": (Recipe(overrides=(Override(operator="CONV_2D", activations="int16"),)),
                    ["conv_0", "conv_1", "conv_2", "conv_3", "last"]),
    "until": (Recipe(wide_until="act_1"), ["conv_0", "conv_1"]),
    "until_but": (Recipe(wide_until="act_2", overrides=(Override(name="conv_1", activations="int8"),)),
                  ["conv_0", "conv_2"]),
    "all": (WIDE, ["conv_0", "conv_1", "conv_2", "conv_3", "last"]),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_says_where(name: str, tmp_path: Path) -> None:
    recipe, expected = RECIPES[name]
    model = deep(Net(1, 8, 8, 3))
    statistics = statistics_of(model, tmp_path)
    assert wide_convolutions(model, statistics, recipe) == expected
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample).values(), run(quantize(model, statistics, recipe).model, sample).values()
    assert sqnr(wanted, found) > 25


def test_16_bits_keep_more(tmp_path: Path) -> None:
    model = deep(Net(1, 8, 8, 3))
    statistics, sample = statistics_of(model, tmp_path), noise(model)[0]
    wanted, = run(model, sample).values()
    kept = [sqnr(wanted, next(iter(run(quantize(model, statistics, recipe).model, sample).values())))
            for recipe in (Recipe(), Recipe(wide_until="act_3"))]
    assert kept[1] > kept[0] + 3


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    model = deep(Net(1, 8, 8, 3))
    with pytest.raises(UsageError, match="no operator has that name"):
        quantize(model, statistics_of(model, tmp_path), Recipe(wide_until="nowhere"))


def test_every_kind_has_a_case() -> None:
    found = {type(node.op) for make in CASES.values() for node in chain(Net(1, 8, 8, 3), make).main}
    assert set(SIXTEEN) <= found, {kind.name for kind in set(SIXTEEN) - found}


def test_inputs_and_outputs_may_have_16_bits(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(net.conv(net.conv(net.x, 4), 3))
    recipe = Recipe(activations="int16", input_type="int16", output_type="int16")
    made = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model
    assert kinds(made) == ["CONV_2D", "CONV_2D"]
    assert [t.dtype for t in (*made.main.inputs, *made.main.outputs)] == [DType.INT16, DType.INT16]
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, made))
    assert sqnr(wanted, found) > 40


@pytest.mark.parametrize(("kind", "last"), [("int8", DType.INT8), ("uint8", DType.UINT8), ("float32", DType.FLOAT32)])
def test_a_wide_output_leaves_in_the_type_asked_for(kind: str, last: DType, tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(net.conv(net.conv(net.x, 4), 3))
    recipe = Recipe(activations="int16", input_type=kind, output_type=kind)     # type: ignore[arg-type]
    made = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model
    assert made.main.outputs[0].dtype is last
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, made))
    assert sqnr(wanted, found) > 33


def test_16_bits_outside_and_8_inside(tmp_path: Path) -> None:
    net = Net(1, 6, 6, 3)
    model = net.model(net.conv(net.x, 4))
    recipe = Recipe(input_type="int16", output_type="int16")
    made = quantize(model, statistics_of(model, tmp_path, recipe), recipe).model
    assert [t.dtype for t in (*made.main.inputs, *made.main.outputs)] == [DType.INT16, DType.INT16]
    (conv,) = [n for n in made.main if n.op.kind == "CONV_2D"]
    assert conv.input(0).dtype is DType.INT8
    (wanted,), (found,) = (run(m, noise(model)[0]).values() for m in (model, made))
    assert sqnr(wanted, found) > 35
