"""Dense layers and products of matrices."""

from __future__ import annotations

from collections.abc import Iterator

from npusim_cases.pen import Case, Draw, Pen, both, table
from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ops import Activation


def dense(shape: tuple[int, ...] = (1, 40), outputs: int = 13, activation: Activation = Activation.NONE,
          axis: int | None = None, bias: bool = True, keep: bool = False, scale: float = 0.3) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape)
        weights = pen.weights(outputs, shape[-1], axis=axis)
        op = ops.FullyConnected(fused_activation_function=activation, keep_num_dims=keep)
        return pen.op(op, [x, weights, pen.bias(x, weights, outputs) if bias else None],
                      scale / 250 if pen.wide else scale)
    return draw


def matmul(first: tuple[int, ...], second: tuple[int, ...], adj_x: bool = False, adj_y: bool = False,
           scale: float = 0.3, zero: int = 5) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x, y = pen.x(*first), pen.x(*second, scale=2e-4 if pen.wide else 0.02, zero=zero)
        return pen.op(ops.BatchMatMul(adj_x=adj_x, adj_y=adj_y), [x, y], scale / 250 if pen.wide else scale)
    return draw


def with_dense(pen: Pen) -> Tensor:
    """A dense layer whose weights are computed."""
    x, y = pen.x(3, 24), pen.x(10, 24, zero=0)
    return pen.op(ops.FullyConnected(), [x, y, None], 0.4)


DENSE = {
    "one row": dense(), "one output": dense(outputs=1), "one input": dense((1, 1)), "ten rows": dense((10, 40)),
    "rows of an image": dense((1, 4, 5, 24), keep=True), "a scale for each output": dense(axis=0),
    "ten rows with a scale for each output": dense((10, 40), axis=0), "no bias": dense(bias=False),
    "relu": dense(activation=Activation.RELU), "relu6": dense(activation=Activation.RELU6, scale=0.05),
    "deep": dense((1, 700), 50, scale=1.5), "wide": dense((1, 16), 300), "tiny scale": dense(scale=1e-3),
    "large scale": dense(scale=9.0), "seven rows": dense((7, 33), 21)}
MATRICES = {
    "plain": matmul((1, 10, 24), (1, 24, 12)), "second turned": matmul((1, 10, 24), (1, 12, 24), adj_y=True),
    "first turned": matmul((1, 24, 10), (1, 24, 12), adj_x=True),
    "both turned": matmul((1, 24, 10), (1, 12, 24), adj_x=True, adj_y=True),
    "of 4": matmul((4, 10, 24), (4, 24, 12)), "of 2 by 3": matmul((2, 3, 6, 16), (2, 3, 16, 9)),
    "one row": matmul((1, 1, 24), (1, 24, 12)), "one column": matmul((1, 10, 24), (1, 24, 1)),
    "one product": matmul((1, 10, 1), (1, 1, 12)), "deep": matmul((1, 6, 130), (1, 130, 9), scale=1.0),
    "no zero point": matmul((1, 10, 24), (1, 24, 12), zero=0), "fine": matmul((1, 10, 24), (1, 24, 12), scale=0.03)}


@table
def products() -> Iterator[Case]:
    """All of them."""
    for name, draw in DENSE.items():
        yield from both("FULLY_CONNECTED", name, draw)
    yield Case("FULLY_CONNECTED", "with computed weights", with_dense)
    for name, draw in MATRICES.items():
        yield Case("BATCH_MATMUL", name, draw)
