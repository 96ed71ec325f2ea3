"""What becomes of TRANSPOSEs in the situations that importers of NCHW graphs make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes import Runner, optimize
from vitrify.passes.layout.cut import Network
from vitrify.passes.layout.perms import drop, groups, insert, inverse, then, through_reshape
from vitrify.passes.layout.turning import TurnLayout

Build = Callable[[Maker, Tensor], Tensor | tuple[Tensor, ...]]


def transposes(model: Model) -> int:
    return len(model.main.nodes_of(ops.Transpose))


def silu(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Mul(), x, m.op(ops.Logistic(), x))


def squeeze_excite(m: Maker, x: Tensor) -> Tensor:
    y = m.op(ops.Mean(keep_dims=True), x, m.ints(2, 3))
    y = m.op(ops.Logistic(), m.nchw_conv(m.op(ops.Relu(), m.nchw_conv(y, 2, 1)), x.shape[1], 1))
    return m.op(ops.Mul(), x, y)


def batch_norm(m: Maker, x: Tensor) -> Tensor:
    x = m.op(ops.Mul(), x, m.weights(x.shape[1], 1, 1))
    return m.op(ops.Add(), m.weights(1, x.shape[1], 1, 1), x)


def classifier(m: Maker, x: Tensor) -> Tensor:
    x = m.nchw_conv(x, 6)
    return m.op(ops.FullyConnected(), m.reshape(x, 1, x.size), m.weights(10, x.size), m.weights(10))


def pooled_classifier(m: Maker, x: Tensor) -> Tensor:
    x = m.op(ops.Mean(keep_dims=False), m.nchw_conv(x, 6), m.ints(2, 3))
    return m.op(ops.FullyConnected(), x, m.weights(10, 6), m.weights(10))


def channel_softmax(m: Maker, x: Tensor) -> Tensor:
    x = m.transpose(m.nchw_conv(x, 5), 0, 3, 2, 1)
    return m.transpose(m.op(ops.Softmax(beta=1.0), x), 0, 3, 2, 1)


def split_concat(m: Maker, x: Tensor) -> Tensor:
    a, b = m.outs(ops.Split(num_splits=2), m.const(1, np.int32), m.nchw_conv(x, 8))
    return m.nchw_conv(m.op(ops.Concatenation(axis=-3), b, m.nchw_conv(a, 4), a), 3)


def detection_head(m: Maker, x: Tensor) -> Tensor:
    """The head of YOLOv8: scales joined, boxes by a distribution over 16 distances, scores beside them."""
    maps = [m.nchw_conv(x, 68), m.nchw_conv(x, 68, 3, 2)]
    flat = [m.reshape(t, 1, 68, t.shape[2] * t.shape[3]) for t in maps]
    joined = m.op(ops.Concatenation(axis=2), *flat)
    count = joined.shape[2]
    sizes = m.ints(64, 4)
    box, scores = m.outs(ops.SplitV(num_splits=2), joined, sizes, m.const(1, np.int32))
    spread = m.transpose(m.reshape(box, 1, 4, 16, count), 0, 2, 1, 3)
    spread = m.transpose(m.op(ops.Softmax(beta=1.0), m.transpose(spread, 0, 3, 2, 1)), 0, 3, 2, 1)
    box = m.reshape(m.nchw_conv(spread, 1, 1), 1, 4, count)
    near, far = m.outs(ops.Split(num_splits=2), m.const(1, np.int32), box)
    anchors = m.weights(1, 2, count)
    near, far = m.op(ops.Sub(), anchors, near), m.op(ops.Add(), anchors, far)
    centre = m.op(ops.Mul(), m.op(ops.Add(), near, far), m.const(0.5))
    box = m.op(ops.Concatenation(axis=1), centre, m.op(ops.Sub(), far, near))
    box = m.op(ops.Mul(), box, m.weights(1, count))
    return m.op(ops.Concatenation(axis=1), box, m.op(ops.Logistic(), scores))


def attention(m: Maker, x: Tensor) -> Tensor:
    x = m.reshape(x, 1, 24, 8)
    query, key = m.reshape(x, 1, 24, 2, 4), m.reshape(m.op(ops.Neg(), x), 1, 24, 2, 4)
    key = m.transpose(m.transpose(key, 0, 2, 1, 3), 0, 1, 3, 2)
    scores = m.op(ops.BatchMatMul(), m.transpose(query, 0, 2, 1, 3), key)
    return m.op(ops.Softmax(beta=1.0), scores)


# name: (builder on x float32[1,4,8,6], TRANSPOSEs left with I/O in NHWC, and in NCHW)
CASES: dict[str, tuple[Build, int, int]] = {
    "conv": (lambda m, x: m.nchw_conv(x, 3), 0, 2),
    "convs, silu": (lambda m, x: m.nchw_conv(silu(m, m.nchw_conv(x, 5)), 3), 0, 2),
    "batch norm": (lambda m, x: m.nchw_conv(batch_norm(m, m.nchw_conv(x, 5)), 3), 0, 2),
    "squeeze and excite": (lambda m, x: m.nchw_conv(squeeze_excite(m, m.nchw_conv(x, 6)), 3), 0, 2),
    "residual": (lambda m, x: m.nchw_conv(m.op(ops.Add(), m.nchw_conv(x, 4), x), 3), 0, 2),
    "split, concat": (split_concat, 0, 2),
    "classifier": (classifier, 0, 1),
    "pooled classifier": (pooled_classifier, 0, 1),
    "softmax over channels": (channel_softmax, 0, 2),
    "detection head": (detection_head, 0, 2),
    "prelu": (lambda m, x: m.nchw_conv(m.op(ops.Prelu(), m.nchw_conv(x, 5), m.weights(5, 1, 1)), 3), 0, 2),
    "pad": (lambda m, x: m.nchw_conv(m.op(ops.Pad(), m.nchw_conv(x, 5), m.const(
        [[0, 0], [1, 0], [0, 2], [3, 0]], np.int32)), 3), 0, 2),
    "slice": (lambda m, x: m.nchw_conv(m.op(ops.Slice(), m.nchw_conv(x, 5), m.ints(0, 1, 2, 3),
                                            m.ints(1, 4, -1, 3)), 3), 0, 2),
    "both layouts given out": (lambda m, x: (m.nchw_conv(x, 3), m.op(ops.Relu(), x)), 0, 2),
    "there and back": (lambda m, x: m.transpose(m.op(ops.Neg(), m.transpose(x, 3, 1, 0, 2)), 2, 1, 3, 0), 0, 0),
    "attention": (attention, 2, 2),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_transposes_left(case: str, layout: str) -> None:
    build, nhwc, nchw = CASES[case]
    maker = Maker()
    given = build(maker, maker.input(1, 4, 8, 6))
    model = maker.model(*(given if isinstance(given, tuple) else (given,)))
    check_kept(model, lambda m: optimize(m, input_layout=layout, output_layout=layout))
    assert transposes(model) == (nhwc if layout == "nhwc" else nchw)
    if layout == "nchw":
        assert model.main.inputs[0].shape == (1, 4, 8, 6)


def test_one_side_keeps_its_layout() -> None:
    maker = Maker()
    model = maker.model(maker.nchw_conv(maker.input(1, 4, 8, 6), 3))
    check_kept(model, lambda m: optimize(m, input_layout="nchw", output_layout="nhwc"))
    assert model.main.inputs[0].shape == (1, 4, 8, 6)
    assert model.main.outputs[0].shape == (1, 8, 6, 3)
    assert transposes(model) == 1


def test_interface_stays_where_no_transpose_is_saved() -> None:
    maker = Maker()
    x = maker.input(1, 4, 8, 6)
    model = maker.model(maker.op(ops.Relu(), maker.reshape(x, 4, 48)))
    check_kept(model, optimize)
    assert model.interface is not None
    assert model.interface.inputs[0].perm == ()
    assert model.main.inputs[0].shape == (1, 4, 8, 6)


def test_interface_stays_for_axes_of_extent_one() -> None:
    maker = Maker()
    model = maker.model(maker.op(ops.Relu(), maker.transpose(maker.input(1, 16, 4), 1, 0, 2)))
    check_kept(model, optimize)
    assert model.main.inputs[0].shape == (1, 16, 4)
    assert kinds(model) == ["RELU", "RESHAPE"] or kinds(model) == ["RESHAPE", "RELU"]


def test_cheaper_side_of_a_sum_is_turned() -> None:
    """The large operand stays as it is, the small one is transposed instead."""
    maker = Maker()
    large = maker.op(ops.Softmax(beta=1.0), maker.input(1, 8, 8, 16, name="large"))
    small = maker.op(ops.Softmax(beta=1.0), maker.input(1, 1, 8, 16, name="small"))
    total = maker.op(ops.Add(), maker.transpose(large, 0, 1, 3, 2), maker.transpose(small, 0, 1, 3, 2))
    back = maker.op(ops.Softmax(beta=1.0), maker.transpose(total, 0, 1, 3, 2))
    turned = maker.op(ops.Softmax(beta=1.0), maker.transpose(maker.op(ops.Neg(), small), 0, 1, 3, 2))
    model = maker.model(back, turned)
    check_kept(model, optimize)
    assert [node.input(0).size for node in model.main.nodes_of(ops.Transpose)] == [128]


def test_names_and_origins_stay() -> None:
    maker = Maker()
    x = maker.input(1, 4, 8, 6)
    model = maker.model(maker.op(ops.Relu(), maker.nchw_conv(silu(maker, maker.nchw_conv(x, 5)), 3), name="last"))
    check_kept(model, lambda m: Runner(m).apply(TurnLayout(m)))
    assert all(node.origin.sources for node in model.main)
    assert [node.op.kind for node in model.main if "layout" in node.origin.passes] == ["LOGISTIC", "MUL", "RELU"]
    assert all(t.origin.sources for node in model.main for t in node.outputs)


@pytest.mark.parametrize(("before", "perm", "after", "expected"), [
    ((1, 8, 4, 6), (0, 2, 3, 1), (1, 8, 24), (0, 2, 1)),
    ((1, 8, 24), (0, 2, 1), (1, 2, 4, 24), (0, 3, 1, 2)),
    ((1, 8, 4, 6), (0, 2, 3, 1), (1, 192), None),
    ((1, 8, 1, 1), (0, 2, 3, 1), (1, 8), (0, 1)),
    ((1, 1, 4, 9), (0, 3, 2, 1), (1, 4, 9), (0, 2, 1)),
    ((2, 3, 4), (2, 0, 1), (6, 4), (1, 0)),
    ((2, 3, 4), (1, 0, 2), (6, 4), None),
    ((0, 3), (1, 0), (3, 0), None),
    ((), (), (1, 1), (0, 1)),
], ids=str)
def test_permutation_through_reshape(before: tuple[int, ...], perm: tuple[int, ...], after: tuple[int, ...],
                                     expected: tuple[int, ...] | None) -> None:
    assert through_reshape(before, perm, after) == expected
    if expected is not None:
        values = np.arange(np.prod(before)).reshape(before)
        turned = values.transpose(perm).reshape([after[i] for i in expected])
        np.testing.assert_array_equal(turned, values.reshape(after).transpose(expected))


def test_permutation_algebra() -> None:
    perm = (2, 0, 3, 1)
    assert then(perm, inverse(perm)) == (0, 1, 2, 3)
    assert drop(perm, [3]) == (2, 0, 1)
    for axes in ([0], [2], [0, 3]):
        assert drop(insert(perm, axes), axes) == perm
    assert groups((2, 3, 4), (6, 4)) == [([0, 1], [0]), ([2], [1])]


def test_minimum_cut() -> None:
    network = Network()
    a, b, c = network.node(), network.node(), network.node()
    for start, end, capacity in ((0, a, 10), (0, b, 4), (a, b, 3), (a, c, 2), (b, 1, 9), (c, 1, 5)):
        network.edge(start, end, capacity)
    cost, side = network.cut()
    assert cost == 9          # 4 + 3 + 2
    assert side == {0, a}
