"""Every layout rule under every permutation, spread forwards from the input and backwards from the output."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import DType, Operator, Tensor
from vitrify.passes import Runner
from vitrify.passes.layout.perms import Perm, inverse, moves_only_ones
from vitrify.passes.layout.region import permutation
from vitrify.passes.layout.rule import RULES
from vitrify.passes.layout.turning import TurnLayout

SHAPE = (2, 3, 4, 5)
Build = Callable[[Maker, Tensor], Tensor | tuple[Tensor, ...]]


def everything(perm: Perm) -> bool:
    return True


def last_stays(perm: Perm) -> bool:
    return perm[-1] == len(perm) - 1


def turned(perm: Perm) -> bool:
    return perm == (0, 2, 1, 3)


def swapped(perm: Perm) -> bool:
    return perm == (1, 0, 2)


def one(op: Operator) -> Build:
    return lambda m, x: m.op(op, x)


def against(op: Operator, *shape: int) -> Build:
    """``op`` with a constant of positive values."""
    return lambda m, x: m.op(op, x, m.const(np.abs(m.random.normal(size=shape)) + 0.5))


def axes(op: Operator, *axis: int) -> Build:
    return lambda m, x: m.op(op, x, m.ints(*axis))


def table(op: Operator, *extra: float) -> Build:
    return lambda m, x: m.op(op, x, m.const([[0, 1], [1, 0], [2, 1], [0, 2]], np.int32), *map(m.const, extra))


def strided(m: Maker, x: Tensor) -> Tensor:
    op = ops.StridedSlice(begin_mask=0b0001, end_mask=0b0110, shrink_axis_mask=0b1000)
    return m.op(op, x, m.ints(1, 2, 0, 3), m.ints(2, 0, 0, 4), m.ints(1, -1, 2, 1))


def kernel(op: Operator, shape: tuple[int, ...], biases: int) -> Build:
    return lambda m, x: m.op(op, x, m.weights(*shape), m.weights(biases))


def select(op: Operator) -> Build:
    return lambda m, x: m.op(op, m.op(ops.Greater(), x, m.const(0.1)), x, m.const(m.random.normal(size=SHAPE)))


def joined(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Concatenation(axis=-2), m.op(ops.Exp(), x), x, m.weights(2, 3, 1, 5))


def recurrent(op: ops.UnidirectionalSequenceRNN | ops.UnidirectionalSequenceLSTM, gates: int) -> Build:
    """A layer of 5 units that starts from zeros, over float32[2,3,4]."""
    def build(m: Maker, x: Tensor) -> Tensor:
        own, back = ([m.weights(5, depth) for _ in range(gates)] for depth in (4, 5))
        biases = [m.weights(5) for _ in range(gates)]
        states = [Tensor(f"state{i}", DType.FLOAT32, (SHAPE[op.time_major], 5), is_variable=True) for i in range(2)]
        if gates == 1:
            return m.op(op, x, *own, *back, *biases, states[0])
        return m.op(op, x, *own, *back, None, None, None, *biases, None, None, *states, None, None, None, None)

    return build


POOL = {"stride_h": 1, "stride_w": 2, "filter_height": 3, "filter_width": 2}
UNARY = [ops.Relu(), ops.LeakyRelu(alpha=0.2), ops.Exp(), ops.Cast(in_data_type=0, out_data_type=0)]
BINARY = [ops.Add(), ops.Sub(), ops.Div(), ops.SquaredDifference(), ops.Pow()]
REDUCED = [ops.Mean, ops.Sum, ops.ReduceMax, ops.ReduceProd]

# name: (what the node is, whether the TRANSPOSE before it goes, whether the one behind it goes)
CASES: dict[str, tuple[Build, Callable[[Perm], bool], Callable[[Perm], bool]]] = {
    **{op.kind: (one(op), everything, everything) for op in UNARY},
    **{f"{op.kind} {shape}": (against(op, *shape), everything, everything)
       for op, shape in zip(BINARY, [(), (5,), (3, 1, 1), (1, 4, 1), SHAPE], strict=True)},
    "prelu": (against(ops.Prelu(), 3, 1, 5), everything, everything),
    "constant minus": (lambda m, x: m.op(ops.Sub(), m.weights(3, 1, 5), x), everything, everything),
    "select": (select(ops.Select()), everything, everything),
    "select_v2": (select(ops.SelectV2()), everything, everything),
    "concatenation": (joined, everything, everything),
    "split": (lambda m, x: m.outs(ops.Split(num_splits=3), m.const(1, np.int32), x), everything, everything),
    "split_v": (lambda m, x: m.outs(ops.SplitV(num_splits=2), x, m.ints(1, 3), m.const(-2, np.int32)), everything,
                everything),
    **{f"{kind.name} {keep}": (axes(kind(keep_dims=keep), 2, -4), everything, everything)
       for kind, keep in itertools.product(REDUCED, (True, False))},
    "arg_max": (lambda m, x: m.op(ops.Cast(in_data_type=2), m.op(ops.ArgMax(output_type=2), x, m.const(
        2, np.int32))), everything, everything),
    "cumsum": (lambda m, x: m.op(ops.Cumsum(exclusive=True), x, m.const(-3, np.int32)), everything, everything),
    "reverse": (axes(ops.ReverseV2(), 1), everything, everything),
    "gather one": (lambda m, x: m.op(ops.Gather(axis=-2), x, m.const(2, np.int32)), everything, everything),
    "gather some": (lambda m, x: m.op(ops.Gather(axis=1), x, m.ints(2, 0)), everything, everything),
    "pack": (lambda m, x: m.op(ops.Pack(values_count=2, axis=-2), x, m.op(ops.Exp(), x)), everything, everything),
    "unpack": (lambda m, x: m.outs(ops.Unpack(num=3, axis=1), x), everything, everything),
    "pad": (table(ops.Pad()), everything, everything),
    "padv2": (table(ops.PadV2(), 1.5), everything, everything),
    "mirror_pad": (lambda m, x: m.op(ops.MirrorPad(), x, m.const([[0, 1], [1, 0], [2, 1], [0, 2]], np.int32)),
                   everything, everything),
    "tile": (axes(ops.Tile(), 1, 2, 1, 3), everything, everything),
    "broadcast_to": (lambda m, x: m.op(ops.BroadcastTo(), m.op(ops.Mean(keep_dims=True), x, m.ints(2)), m.ints(*SHAPE)),
                     everything, everything),
    "slice": (lambda m, x: m.op(ops.Slice(), x, m.ints(1, 0, 1, 2), m.ints(1, 3, 2, -1)), everything, everything),
    "strided_slice": (strided, everything, everything),
    "softmax": (one(ops.Softmax(beta=1.0)), last_stays, last_stays),
    "dense rows": (kernel(ops.FullyConnected(keep_num_dims=True), (6, 5), 6), last_stays, last_stays),
    "conv 1x1": (kernel(ops.Conv2D(), (6, 1, 1, 5), 6), last_stays, last_stays),
    "conv": (kernel(ops.Conv2D(stride_h=2, dilation_w_factor=1), (6, 3, 2, 5), 6), turned, turned),
    "dilated conv": (kernel(ops.Conv2D(dilation_w_factor=2), (6, 1, 2, 5), 6), turned, turned),
    "depthwise": (kernel(ops.DepthwiseConv2D(stride_h=1, stride_w=1), (1, 3, 2, 5), 5), turned, turned),
    "max pool": (one(ops.MaxPool2D(**POOL)), turned, turned),
    "average pool": (one(ops.AveragePool2D(**POOL)), turned, turned),
    "resize": (axes(ops.ResizeBilinear(), 6, 11), turned, turned),
    "matmul": (lambda m, x: m.op(ops.BatchMatMul(), x, m.weights(2, 3, 5, 6)), lambda p: p == (0, 1, 3, 2),
               lambda p: p == (0, 1, 3, 2)),
}


# name: (a recurrent layer over three dimensions, whether the TRANSPOSE goes: batch and time may change places)
CASES |= {
    f"{name} {'time' if major else 'batch'} first": (build, swapped, swapped)
    for major in (False, True)
    for name, build in (("rnn", recurrent(ops.UnidirectionalSequenceRNN(time_major=major), 1)),
                        ("lstm", recurrent(ops.UnidirectionalSequenceLSTM(time_major=major), 4)))
}
SHAPES = {name: SHAPE[:3] for name in CASES if name.endswith(" first")}


def all_perms(rank: int) -> list[Perm]:
    return [perm for perm in itertools.permutations(range(rank)) if perm != tuple(range(rank))]


def turn(maker: Maker, outputs: Tensor | tuple[Tensor, ...], forwards: bool) -> list[Tensor]:
    """Run the layout pass with the graph's other side fixed.

    Returns the outputs of the TRANSPOSEs that are left, without those that a reshape can do.
    """
    model = maker.model(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    check_kept(model, lambda m: Runner(m).apply(TurnLayout(m, turn_inputs=not forwards, turn_outputs=forwards)))
    return [node.output for node in model.main.nodes_of(ops.Transpose)
            if not moves_only_ones(node.input(0).shape, permutation(node) or ())]


@pytest.mark.parametrize("case", CASES)
def test_forwards(case: str) -> None:
    build, goes, _ = CASES[case]
    shape = SHAPES.get(case, SHAPE)
    for perm in all_perms(len(shape)):
        maker = Maker()
        x = maker.input(*(shape[i] for i in inverse(perm)))
        left = turn(maker, build(maker, maker.transpose(x, *perm)), forwards=True)
        assert bool(left) != goes(inverse(perm)), perm


@pytest.mark.parametrize("case", CASES)
def test_backwards(case: str) -> None:
    build, _, goes = CASES[case]
    shape = SHAPES.get(case, SHAPE)
    for perm in all_perms(_rank(build, shape)):
        maker = Maker()
        given = build(maker, maker.input(*shape))
        outputs = given if isinstance(given, tuple) else (given,)
        left = turn(maker, tuple(maker.transpose(t, *perm) for t in outputs), forwards=False)
        assert bool(left) != goes(perm), perm


def _rank(build: Build, shape: tuple[int, ...]) -> int:
    maker = Maker()
    given = build(maker, maker.input(*shape))
    return len((given if isinstance(given, tuple) else (given,))[0].shape)


def test_every_family_has_a_case() -> None:
    used = set()
    for case, (build, _, _) in CASES.items():
        maker = Maker()
        build(maker, maker.input(*SHAPES.get(case, SHAPE)))
        used |= {type(RULES[type(node.op)]) for node in maker.graph if type(node.op) in RULES}
    assert {type(rule) for rule in RULES.values()} - used <= {type(RULES[ops.Reshape])}
