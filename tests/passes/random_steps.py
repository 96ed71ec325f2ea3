"""Random nodes for random graphs: each kind is a function that adds one to the values, where it fits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from graph_maker import Maker
from hypothesis import strategies as st

from vitrify import ops
from vitrify.ir import Tensor

UNARY = [ops.Relu(), ops.Logistic(), ops.LeakyRelu(alpha=0.1), ops.Abs(), ops.Neg(), ops.HardSwish()]
BINARY = [ops.Add(), ops.Sub(), ops.Mul(), ops.Maximum()]


@dataclass
class Step:
    """A node to be added: what may be drawn for it, the tensor ``x`` that it reads, and one of its axes."""

    draw: st.DrawFn
    maker: Maker
    values: list[Tensor]
    x: Tensor
    axis: int

    @property
    def rank(self) -> int:
        return len(self.x.shape)

    def one_of(self, choices: list[ops.Operator]) -> ops.Operator:
        return self.draw(st.sampled_from(choices))

    def is_so(self) -> bool:
        return self.draw(st.booleans())

    def at_axis(self, inside: int, outside: int) -> Tensor:
        """Whole numbers for all axes, another for the chosen one."""
        return self.maker.ints(*(inside if i == self.axis else outside for i in range(self.rank)))

    def borders(self, before: int, after: int) -> Tensor:
        """A table of borders, at the chosen axis alone."""
        table = np.zeros((self.rank, 2), np.int32)
        table[self.axis] = [before, after]
        return self.maker.const(table, np.int32)


Add = Callable[[Step], Tensor | list[Tensor]]
KINDS: list[tuple[Add, Callable[[Step], bool]]] = []


def kind(fits: Callable[[Step], bool] = lambda s: True, weight: int = 1) -> Callable[[Add], Add]:
    """Register what adds a node where it fits, so many times as likely as others."""
    def register(add: Add) -> Add:
        KINDS.extend([(add, fits)] * weight)
        return add
    return register


def grow(draw: st.DrawFn, maker: Maker, values: list[Tensor]) -> None:
    """Add one random node to the graph, or none where the kind that was drawn does not fit."""
    x = draw(st.sampled_from(values))
    add, fits = draw(st.sampled_from(KINDS))
    step = Step(draw, maker, values, x, draw(st.integers(0, max(0, len(x.shape) - 1))))
    if fits(step):
        made = add(step)
        values.extend(made if isinstance(made, list) else [made])


def small(most: int) -> Callable[[Step], bool]:
    """True for tensors with an axis and fewer elements than so many."""
    return lambda s: s.rank > 0 and s.x.size < most


def ranked(least: int, most: int = 9) -> Callable[[Step], bool]:
    """True for tensors of so many axes."""
    return lambda s: least <= s.rank <= most


@kind()
def unary(s: Step) -> Tensor:
    return s.maker.op(s.one_of(UNARY), s.x)


@kind()
def binary(s: Step) -> Tensor:
    others = [t for t in s.values if _broadcasts(t.shape, s.x.shape)]
    return s.maker.op(s.one_of(BINARY), s.x, s.draw(st.sampled_from(others)))


@kind(ranked(1))
def with_constant(s: Step) -> Tensor:
    shape = [n if s.is_so() else 1 for n in s.x.shape[s.draw(st.integers(0, s.rank - 1)):]]
    pair = [s.x, s.maker.weights(*shape)]
    return s.maker.op(s.one_of(BINARY), *(pair if s.is_so() else pair[::-1]))


@kind(ranked(2), weight=3)
def turn(s: Step) -> Tensor:
    return s.maker.transpose(s.x, *s.draw(st.permutations(range(s.rank))))


@kind()
def reshape(s: Step) -> Tensor:
    return s.maker.reshape(s.x, *s.draw(st.sampled_from(_shapes(s.x.size))))


@kind(ranked(2))
def reduce(s: Step) -> Tensor:
    axes = s.draw(st.lists(st.integers(0, s.rank - 1), min_size=1, max_size=s.rank - 1, unique=True))
    return s.maker.op(ops.Mean(keep_dims=s.is_so()), s.x, s.maker.ints(*axes))


@kind(small(400))
def concat(s: Step) -> Tensor:
    return s.maker.op(ops.Concatenation(axis=s.axis - s.rank * s.draw(st.integers(0, 1))), s.x, s.x)


@kind(lambda s: s.rank > 0 and s.x.shape[s.axis] > 1)
def slice_(s: Step) -> Tensor:
    size = list(s.x.shape)
    size[s.axis] -= 1
    return s.maker.op(ops.Slice(), s.x, s.at_axis(1, 0), s.maker.ints(*size))


@kind(small(300))
def pad(s: Step) -> Tensor:
    return s.maker.op(ops.Pad(), s.x, s.borders(1, 2))


@kind(lambda s: s.rank > 0 and s.x.shape[s.axis] > 2 and s.x.size < 300)
def mirror(s: Step) -> Tensor:
    return s.maker.op(ops.MirrorPad(), s.x, s.borders(2, 1))


@kind(ranked(4, 4))
def conv(s: Step) -> Tensor:
    return s.maker.conv(s.x, 3, s.draw(st.sampled_from([1, 2, 3])), s.draw(st.sampled_from([1, 2])))


@kind(ranked(4, 4))
def depthwise(s: Step) -> Tensor:
    channels = s.x.shape[3]
    return s.maker.op(ops.DepthwiseConv2D(stride_h=2, stride_w=2), s.x, s.maker.weights(1, 2, 3, channels),
                      s.maker.weights(channels))


@kind(ranked(4, 4))
def pool(s: Step) -> Tensor:
    window = {"stride_h": 1, "stride_w": 2, "filter_height": 2, "filter_width": 3}
    return s.maker.op(s.one_of([ops.MaxPool2D(**window), ops.AveragePool2D(**window)]), s.x)


@kind(lambda s: s.rank == 4 and s.x.size < 300)
def resize(s: Step) -> Tensor:
    return s.maker.op(ops.ResizeNearestNeighbor(), s.x, s.maker.ints(s.x.shape[1] * 2, s.x.shape[2]))


@kind(ranked(2, 2))
def dense(s: Step) -> Tensor:
    return s.maker.op(ops.FullyConnected(), s.x, s.maker.weights(5, s.x.shape[1]), s.maker.weights(5))


@kind(ranked(3))
def rows(s: Step) -> Tensor:
    return s.maker.op(ops.FullyConnected(keep_num_dims=True), s.x, s.maker.weights(3, s.x.shape[-1]))


@kind(ranked(3))
def matmul(s: Step) -> Tensor:
    adjoint = s.is_so()
    order = (*range(s.rank - 2), s.rank - 1, s.rank - 2)
    return s.maker.op(ops.BatchMatMul(adj_y=adjoint), s.x, s.x if adjoint else s.maker.transpose(s.x, *order))


@kind(lambda s: s.rank > 0 and s.x.shape[s.axis] % 2 == 0)
def split(s: Step) -> list[Tensor]:
    return list(s.maker.outs(ops.Split(num_splits=2), s.maker.const(s.axis, np.int32), s.x))


@kind(lambda s: s.rank > 1 and s.x.shape[s.axis] < 5)
def unpack(s: Step) -> list[Tensor]:
    return list(s.maker.outs(ops.Unpack(num=s.x.shape[s.axis], axis=s.axis), s.x))


@kind(lambda s: 0 < s.rank < 5 and s.x.size < 200)
def pack(s: Step) -> Tensor:
    return s.maker.op(ops.Pack(values_count=2, axis=s.axis), s.x, s.x)


@kind(ranked(2))
def stride(s: Step) -> Tensor:
    begin, end = [0] * s.rank, list(s.x.shape)
    begin[s.axis] = s.x.shape[s.axis] - 1
    mask = s.draw(st.integers(0, 1)) << s.axis
    return s.maker.op(ops.StridedSlice(shrink_axis_mask=mask, end_mask=1 << s.axis), s.x, s.maker.ints(*begin),
                      s.maker.ints(*end), s.maker.ints(*([1] * s.rank)))


@kind(ranked(2))
def gather(s: Step) -> Tensor:
    last = s.x.shape[s.axis] - 1
    index = s.maker.const(0, np.int32) if s.is_so() else s.maker.ints(*range(last, -1, -1))
    return s.maker.op(ops.Gather(axis=s.axis), s.x, index)


@kind(ranked(1))
def softmax(s: Step) -> Tensor:
    return s.maker.op(ops.Softmax(beta=1.0), s.x)


@kind(ranked(1))
def cumsum(s: Step) -> Tensor:
    return s.maker.op(ops.Cumsum(), s.x, s.maker.const(s.axis, np.int32))


@kind(ranked(2))
def argmax(s: Step) -> Tensor:
    index = s.maker.op(ops.ArgMax(output_type=2), s.x, s.maker.const(s.axis, np.int32))
    return s.maker.op(ops.Cast(in_data_type=2, out_data_type=0), index)


@kind(small(200))
def tile(s: Step) -> Tensor:
    return s.maker.op(ops.Tile(), s.x, s.at_axis(2, 1))


@kind(lambda s: 1 in s.x.shape and s.x.size < 200)
def spread(s: Step) -> Tensor:
    return s.maker.op(ops.BroadcastTo(), s.x, s.maker.ints(*(2 if n == 1 else n for n in s.x.shape)))


@kind()
def select(s: Step) -> Tensor:
    larger = s.maker.op(ops.Greater(), s.x, s.maker.op(ops.Neg(), s.x))
    other = s.maker.op(ops.Exp(), s.maker.op(ops.Relu6(), s.x))
    return s.maker.op(s.one_of([ops.Select(), ops.SelectV2()]), larger, s.x, other)


@kind(ranked(2))
def prelu(s: Step) -> Tensor:
    return s.maker.op(ops.Prelu(), s.x, s.maker.weights(*(n if s.is_so() else 1 for n in s.x.shape[1:])))


@kind(ranked(1))
def reverse(s: Step) -> Tensor:
    return s.maker.op(ops.ReverseV2(), s.x, s.maker.ints(s.axis))


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
