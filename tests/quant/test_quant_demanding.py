"""Places that 8 bits do not do for and that are found by themselves: faint layers, states, and joints to 8 bits."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from quant_graphs import Net, run, sqnr, statistics_of

import vitrify as vt
import vitrify.ops as ops
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import Override, Recipe, quantize
from vitrify.quant.forms.faint import LEAST_DB, kept_db
from vitrify.quant.forms.states import state_nodes
from vitrify.quant.planning import natural_ranges

Array = np.ndarray[Any, np.dtype[Any]]
SIZE, CHANNELS = 24, 8


def offsets(spread: float) -> Model:
    """Channels at offsets ``spread`` times as far apart as they vary; a depthwise layer takes differences of them."""
    net = Net(1, SIZE, SIZE, 3)
    made = net.conv(net.x, CHANNELS, 1, name="first")
    moved = net.add(ops.Add(), made, net.constant(np.linspace(-spread, spread, CHANNELS)), name="moved")
    taps = np.zeros((1, 3, 3, CHANNELS), np.float32)
    taps[0, 1, 0], taps[0, 1, 2] = -1, 1
    edges = net.add(ops.DepthwiseConv2D(padding=ops.Padding.VALID), moved, net.constant(taps),
                    net.constant(np.zeros(CHANNELS)), name="edges")
    net.conv(net.x, 1, 1)
    heavy = net.conv(edges, 64, 5, name="heavy")
    return net.model(net.conv(net.add(ops.Relu(), heavy), 4, 1, name="last"))


def small_noise(count: int = 8) -> list[dict[str, Array]]:
    random = np.random.default_rng(1)
    return [{"x": random.uniform(-1, 1, (1, SIZE, SIZE, 3)).astype(np.float32)} for _ in range(count)]


def wide_names(model: Model) -> set[str]:
    return {node.name for node in model.main if node.outputs[0].dtype is DType.INT16}


@pytest.mark.parametrize(("spread", "faint"), [(0.5, False), (100.0, True)], ids=["near", "far"])
def test_a_layer_that_looks_for_little_gets_16_bits(tmp_path: Path, spread: float, faint: bool) -> None:
    model = offsets(spread)
    statistics = statistics_of(model, tmp_path, Recipe(), small_noise())
    ranges = natural_ranges(model.main, statistics, Recipe())
    (edges,) = model.main.nodes_of(ops.DepthwiseConv2D)
    kept = kept_db(edges, statistics, ranges)
    assert kept is not None
    assert (kept < LEAST_DB) == faint
    made = quantize(model, statistics).model
    assert {"edges", "first"} <= wide_names(made) if faint else not wide_names(made)
    assert "heavy" not in wide_names(made)
    if faint:
        held = small_noise(9)[-1]
        (wanted,) = run(model, held).values()
        narrow = quantize(model, statistics, Recipe(faint="int8")).model
        (fine,), (coarse,) = run(made, held).values(), run(narrow, held).values()
        assert sqnr(wanted, fine) > sqnr(wanted, coarse) + 6


def test_what_the_recipe_says_of_a_node_comes_before(tmp_path: Path) -> None:
    model = offsets(100.0)
    statistics = statistics_of(model, tmp_path, Recipe(), small_noise())
    chosen = Recipe(overrides=(Override(operator="DEPTHWISE_CONV_2D", activations="int8"),))
    assert "edges" not in wide_names(quantize(model, statistics, chosen).model)


def gated(streams: bool) -> Model:
    """A state, half of it kept and half of it new in each run; without ``streams`` it is computed from the input."""
    net = Net(1, 16)
    state = Tensor("state", DType.FLOAT32, (1, 16))
    if streams:
        net.graph.inputs.append(state)
    else:
        state = net.add(ops.FullyConnected(), net.x, net.weights(16, 16), net.constant(np.zeros(16)), name="made")

    def dense(name: str) -> Tensor:
        return net.add(ops.FullyConnected(), net.x, net.weights(16, 16), net.constant(np.zeros(16)), name=name)

    kept = net.add(ops.Mul(), net.add(ops.Logistic(), dense("gate_in"), name="gate"), state, name="kept")
    fresh = net.add(ops.Add(), kept, net.add(ops.Tanh(), dense("new_in"), name="new"), name="fresh")
    return net.model(fresh)


@pytest.mark.parametrize("streams", [True, False])
def test_states_are_carried_in_16_bits(streams: bool) -> None:
    found = {node.name for node in state_nodes(gated(streams).main)}
    assert found == ({"gate", "kept", "new", "fresh"} if streams else set())


def test_a_product_with_the_input_itself_is_no_state() -> None:
    net = Net(1, 8, 8, 4)
    plain = net.add(ops.Add(), net.conv(net.x, 4), net.x, name="skip")
    assert not state_nodes(net.model(plain).main)


def max_pool_file(path: Path, sided: int) -> Path:
    """A convolution, a padding with the lowest float, and a pooling without padding of its own."""
    weights = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype(np.float32)
    lowest = np.array(np.finfo(np.float32).min)
    pads = np.array([0, 0, sided, sided, 0, 0, 1, 1], np.int64)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"),
             helper.make_node("Pad", ["c", "pads", "lowest"], ["p"], name="pad"),
             helper.make_node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3], strides=[2, 2], name="pool")]
    graph = helper.make_graph(
        nodes, "padded", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(pads, "pads"),
         numpy_helper.from_array(lowest, "lowest")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.parametrize("sided", [1, 0], ids=["both sides", "one side"])
def test_a_padding_with_the_lowest_float_is_told_of_and_keeps_its_levels(tmp_path: Path, sided: int) -> None:
    import onnxruntime

    path = max_pool_file(tmp_path / "padded.onnx", sided)
    random = np.random.default_rng(2)
    given = [{"x": random.uniform(-1, 1, (1, 3, 16, 16)).astype(np.float32)} for _ in range(6)]
    model = vt.load(path)
    whole = onnx.load(path)
    whole.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(whole.SerializeToString())
    source = session.run(["y"], given[0])[0]
    convolved = np.stack([session.run(["c"], one)[0] for one in given])
    exact = vt.run(model, given[0])["y"]
    assert np.abs(exact - source).max() < 1e-5
    made = vt.quantize(model, data=given)
    told = [f for f in made.result.findings if f.code == "range.outlier_constant"]
    assert told
    assert "pad" in told[0].where
    (output,) = made.main.outputs
    assert output.quantization is not None
    assert np.ptp(convolved) / float(output.quantization.scale[0]) > 200
    assert sqnr(exact, vt.run(made, given[0])["y"]) > 30
