"""Random graphs keep their values, and end with no more bytes transposed than before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graph_maker import Maker, activation_names, check_kept
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scale import examples
from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes import optimize

UNARY = [ops.Relu(), ops.Logistic(), ops.LeakyRelu(alpha=0.1), ops.Abs(), ops.Neg(), ops.HardSwish()]
STEPS = ["unary", "binary", "constant", "turn", "turn", "turn", "reshape", "reduce", "concat", "slice", "pad", "conv",
         "split", "softmax", "stride", "pack", "gather", "dense", "cumsum", "matmul", "argmax", "tile", "spread",
         "select", "resize", "pool", "mirror", "prelu", "rows", "depthwise", "unpack", "reverse"]
BINARY = [ops.Add(), ops.Sub(), ops.Mul(), ops.Maximum()]


def _grow(draw: st.DrawFn, maker: Maker, values: list[Tensor]) -> None:
    """Add one random node to the graph."""
    x = draw(st.sampled_from(values))
    rank = len(x.shape)
    step = draw(st.sampled_from(STEPS))
    axis = draw(st.integers(0, max(0, rank - 1)))
    if step == "unary":
        values.append(maker.op(draw(st.sampled_from(UNARY)), x))
    elif step == "binary":
        others = [t for t in values if _broadcasts(t.shape, x.shape)]
        values.append(maker.op(draw(st.sampled_from(BINARY)), x, draw(st.sampled_from(others))))
    elif step == "constant" and rank:
        shape = [n if draw(st.booleans()) else 1 for n in x.shape[draw(st.integers(0, rank - 1)):]]
        pair = [x, maker.weights(*shape)]
        values.append(maker.op(draw(st.sampled_from(BINARY)), *(pair if draw(st.booleans()) else pair[::-1])))
    elif step == "turn" and rank > 1:
        values.append(maker.transpose(x, *draw(st.permutations(range(rank)))))
    elif step == "reshape":
        values.append(maker.reshape(x, *draw(st.sampled_from(_shapes(x.size)))))
    elif step == "reduce" and rank > 1:
        axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank - 1, unique=True))
        values.append(maker.op(ops.Mean(keep_dims=draw(st.booleans())), x, maker.ints(*axes)))
    elif step == "concat" and rank and x.size < 400:
        values.append(maker.op(ops.Concatenation(axis=axis - rank * draw(st.integers(0, 1))), x, x))
    elif step == "slice" and rank and x.shape[axis] > 1:
        size = list(x.shape)
        size[axis] -= 1
        values.append(maker.op(ops.Slice(), x, maker.ints(*(int(i == axis) for i in range(rank))), maker.ints(*size)))
    elif step == "pad" and rank and x.size < 300:
        table = np.zeros((rank, 2), np.int32)
        table[axis] = [1, 2]
        values.append(maker.op(ops.Pad(), x, maker.const(table, np.int32)))
    elif step == "conv" and rank == 4:
        values.append(maker.conv(x, 3, draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2]))))
    elif step == "split" and rank and x.shape[axis] % 2 == 0:
        values.extend(maker.outs(ops.Split(num_splits=2), maker.const(axis, np.int32), x))
    elif step == "softmax" and rank:
        values.append(maker.op(ops.Softmax(beta=1.0), x))
    elif step == "stride" and rank > 1:
        begin, end = [0] * rank, list(x.shape)
        begin[axis] = x.shape[axis] - 1
        mask = draw(st.integers(0, 1)) << axis
        values.append(maker.op(ops.StridedSlice(shrink_axis_mask=mask, end_mask=1 << axis), x, maker.ints(*begin),
                               maker.ints(*end), maker.ints(*([1] * rank))))
    elif step == "pack" and rank and rank < 5 and x.size < 200:
        values.append(maker.op(ops.Pack(values_count=2, axis=axis), x, x))
    elif step == "gather" and rank > 1:
        index = maker.const(0, np.int32) if draw(st.booleans()) else maker.ints(*range(x.shape[axis] - 1, -1, -1))
        values.append(maker.op(ops.Gather(axis=axis), x, index))
    elif step == "dense" and rank == 2:
        values.append(maker.op(ops.FullyConnected(), x, maker.weights(5, x.shape[1]), maker.weights(5)))
    elif step == "cumsum" and rank:
        values.append(maker.op(ops.Cumsum(), x, maker.const(axis, np.int32)))
    elif step == "matmul" and rank > 2:
        adjoint = draw(st.booleans())
        order = (*range(rank - 2), rank - 1, rank - 2)
        other = x if adjoint else maker.transpose(x, *order)
        values.append(maker.op(ops.BatchMatMul(adj_y=adjoint), x, other))
    elif step == "argmax" and rank > 1:
        index = maker.op(ops.ArgMax(output_type=2), x, maker.const(axis, np.int32))
        values.append(maker.op(ops.Cast(in_data_type=2, out_data_type=0), index))
    elif step == "tile" and rank and x.size < 200:
        values.append(maker.op(ops.Tile(), x, maker.ints(*(1 + int(i == axis) for i in range(rank)))))
    elif step == "spread" and 1 in x.shape and x.size < 200:
        values.append(maker.op(ops.BroadcastTo(), x, maker.ints(*(2 if n == 1 else n for n in x.shape))))
    elif step == "select":
        values.append(maker.op(draw(st.sampled_from([ops.Select(), ops.SelectV2()])), maker.op(
            ops.Greater(), x, maker.op(ops.Neg(), x)), x, maker.op(ops.Exp(), maker.op(ops.Relu6(), x))))
    elif step == "resize" and rank == 4 and x.size < 300:
        values.append(maker.op(ops.ResizeNearestNeighbor(), x, maker.ints(x.shape[1] * 2, x.shape[2])))
    elif step == "pool" and rank == 4:
        window = {"stride_h": 1, "stride_w": 2, "filter_height": 2, "filter_width": 3}
        values.append(maker.op(draw(st.sampled_from([ops.MaxPool2D, ops.AveragePool2D]))(**window), x))
    elif step == "mirror" and rank and x.shape[axis] > 2 and x.size < 300:
        table = np.zeros((rank, 2), np.int32)
        table[axis] = [2, 1]
        values.append(maker.op(ops.MirrorPad(), x, maker.const(table, np.int32)))
    elif step == "prelu" and rank > 1:
        shape = [n if draw(st.booleans()) else 1 for n in x.shape[1:]]
        values.append(maker.op(ops.Prelu(), x, maker.weights(*shape)))
    elif step == "rows" and rank > 2:
        values.append(maker.op(ops.FullyConnected(keep_num_dims=True), x, maker.weights(3, x.shape[-1])))
    elif step == "depthwise" and rank == 4:
        kernel = maker.weights(1, 2, 3, x.shape[3])
        values.append(maker.op(ops.DepthwiseConv2D(stride_h=2, stride_w=2), x, kernel, maker.weights(x.shape[3])))
    elif step == "unpack" and rank > 1 and x.shape[axis] < 5:
        values.extend(maker.outs(ops.Unpack(num=x.shape[axis], axis=axis), x))
    elif step == "reverse" and rank:
        values.append(maker.op(ops.ReverseV2(), x, maker.ints(axis)))


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False)) and max(len(a), len(b)) < 6


def _shapes(size: int) -> list[tuple[int, ...]]:
    """Some shapes of up to four axes with ``size`` elements."""
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    found = [(size,), (1, size)]
    for a, b in itertools.product(divisors, repeat=2):
        if size % (a * b) == 0:
            found += [(a, b, size // (a * b)), (1, a, b, size // (a * b)), (a, 1, b, size // (a * b))]
    return found[:60]


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A random graph over one or two inputs."""
    maker = Maker(draw(st.integers(0, 100)))
    values = [maker.input(*draw(st.sampled_from([(1, 4, 6, 2), (1, 2, 3, 4), (2, 3, 4), (1, 8, 1, 1), (4, 6)])))]
    for _ in range(draw(st.integers(2, 14))):
        _grow(draw, maker, values)
    made = [t for t in values if t.producer is not None] or [maker.op(ops.Relu(), values[0])]
    unused = [t for t in made if not t.uses]
    chosen = dict.fromkeys([*unused[:2], draw(st.sampled_from(made))])
    return maker.model(*chosen)


def moved(model: Model) -> int:
    return sum(node.output.nbytes for node in model.main.nodes_of(ops.Transpose))


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(model=models())
def test_random_graph(model: Model, layout: str) -> None:
    before = moved(model)
    check_kept(model, lambda m: optimize(m, input_layout=layout, output_layout=layout), tolerance=1e-4)
    assert moved(model) <= before
    names = activation_names(model)
    assert len(set(names)) == len(names)
    again = optimize(model, input_layout=layout, output_layout=layout)
    assert [entry.name for entry in again.entries] == []
