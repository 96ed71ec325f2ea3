"""Attention in the forms that exporters write: no TRANSPOSE is left, and the values stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from graph_maker import Maker, check_kept

from vitrify import ops
from vitrify.ir import Model, Tensor
from vitrify.passes import optimize

N, H, D = 6, 3, 4
C = H * D
Build = Callable[[Maker], Model]


def rows(m: Maker, x: Tensor, channels: int) -> Tensor:
    """FULLY_CONNECTED over the last axis."""
    return m.op(ops.FullyConnected(keep_num_dims=True), x, m.weights(channels, x.shape[-1]), m.weights(channels))


def attend(m: Maker, qkv: Sequence[Tensor], mask: Tensor | None = None, adjoint: bool = False) -> Tensor:
    """softmax(q k / 2 + mask) v of [...,H,N,D] tensors; without ``adjoint`` k is [...,H,D,N]."""
    q, k, v = qkv
    scores = m.op(ops.BatchMatMul(adj_y=adjoint), m.op(ops.Mul(), q, m.const(0.5)), k)
    if mask is not None:
        scores = m.op(ops.Add(), scores, mask)
    return m.op(ops.BatchMatMul(), m.op(ops.Softmax(beta=1.0), scores), v)


def joined(m: Maker, values: Tensor, batch: int = 1) -> Model:
    """[B,H,N,D] back to rows of all channels."""
    back = m.reshape(m.transpose(values, 0, 2, 1, 3), batch, N, C)
    return m.model(rows(m, back, 5))


def separate(m: Maker) -> Model:
    """A product for each of query, key and value, and a mask for each head."""
    x = m.input(1, N, 8)
    q, k, v = (m.reshape(rows(m, x, C), 1, N, H, D) for _ in range(3))
    return joined(m, attend(m, [m.transpose(q, 0, 2, 1, 3), m.transpose(k, 0, 2, 3, 1), m.transpose(v, 0, 2, 1, 3)],
                            m.weights(H, N, N)))


def stacked(pick: Callable[[Maker, Tensor], list[Tensor]], batch: int = 1) -> Build:
    """One product for all three, [B,N,3,H,D] turned to [3,B,H,N,D]."""
    def build(m: Maker) -> Model:
        x = m.input(batch, N, 8)
        whole = m.transpose(m.reshape(rows(m, x, 3 * C), batch, N, 3, H, D), 2, 0, 3, 1, 4)
        return joined(m, attend(m, pick(m, whole), adjoint=True), batch)
    return build


def split(m: Maker, whole: Tensor) -> list[Tensor]:
    parts = m.outs(ops.Split(num_splits=3), m.const(0, np.int32), whole)
    return [m.reshape(part, *part.shape[1:]) for part in parts]


def gather(m: Maker, whole: Tensor) -> list[Tensor]:
    return [m.op(ops.Gather(axis=0), whole, m.const(i, np.int32)) for i in range(3)]


def unpack(m: Maker, whole: Tensor) -> list[Tensor]:
    return list(m.outs(ops.Unpack(num=3, axis=0), whole))


def sliced(m: Maker, whole: Tensor) -> list[Tensor]:
    size = (1, *whole.shape[1:])
    parts = [m.op(ops.Slice(), whole, m.ints(i, 0, 0, 0, 0), m.ints(*size)) for i in range(3)]
    return [m.reshape(part, *part.shape[1:]) for part in parts]


def strided(m: Maker, whole: Tensor) -> list[Tensor]:
    return [m.op(ops.StridedSlice(shrink_axis_mask=1, begin_mask=0b11110, end_mask=0b11110), whole, m.ints(
        i, 1, 1, 1, 1), m.ints(i + 1, 1, 1, 1, 1), m.ints(1, 1, 1, 1, 1)) for i in range(3)]


def interleaved(m: Maker) -> Model:
    """[B,N,H,3,D]: the heads outside of query, key and value."""
    x = m.input(1, N, 8)
    whole = m.transpose(m.reshape(rows(m, x, 3 * C), 1, N, H, 3, D), 3, 0, 2, 1, 4)
    return joined(m, attend(m, unpack(m, whole), adjoint=True))


def of_image(m: Maker) -> Model:
    """A detector's: a convolution's channels as [H, q + k + v], values also given to a convolution of their own."""
    x = m.input(1, 8, 3, 2)
    qkv = m.reshape(m.nchw_conv(x, H * 10, 1), 1, H, 10, N)
    q, k, v = m.outs(ops.SplitV(num_splits=3), qkv, m.ints(3, 3, 4), m.const(2, np.int32))
    scores = m.op(ops.Mul(), m.op(ops.BatchMatMul(), m.transpose(q, 0, 1, 3, 2), k), m.const(0.5))
    turned = m.transpose(m.op(ops.Softmax(beta=1.0), scores), 0, 1, 3, 2)
    image = m.reshape(m.op(ops.BatchMatMul(), v, turned), 1, C, 3, 2)
    beside = m.nchw_conv(m.reshape(v, 1, C, 3, 2), C, 3)
    return m.model(m.nchw_conv(m.op(ops.Add(), image, beside), 5, 1))


def flat_heads(m: Maker) -> Model:
    """Sequence first, and the heads as the only batch: [N,H,D] turned to [H,N,D]."""
    x = m.input(N, 1, 8)
    q, k, v = (m.transpose(m.reshape(rows(m, x, C), N, H, D), 1, 0, 2) for _ in range(3))
    values = attend(m, [q, m.transpose(k, 0, 2, 1), v])
    return m.model(rows(m, m.reshape(m.transpose(values, 1, 0, 2), N, 1, C), 5))


CASES: dict[str, Build] = {
    "separate": separate,
    **{f"stacked, {pick.__name__}": stacked(pick) for pick in (split, gather, unpack, sliced, strided)},
    "stacked, windows": stacked(split, batch=2),
    "interleaved": interleaved,
    "of image": of_image,
    "flat heads": flat_heads,
}


@pytest.mark.parametrize("case", CASES)
def test_attention_needs_no_transpose(case: str) -> None:
    model = CASES[case](Maker())
    check_kept(model, optimize, tolerance=1e-5)
    kinds = [node.op.kind for node in model.main]
    assert "TRANSPOSE" not in kinds
    assert kinds.count("SOFTMAX") == H
    assert kinds.count("BATCH_MATMUL") == 2 * H


def test_many_heads_stay_together() -> None:
    m = Maker()
    x = m.input(1, N, 8)
    q, k, v = (m.transpose(m.reshape(rows(m, x, 48), 1, N, 24, 2), 0, 2, 1, 3) for _ in range(3))
    back = m.reshape(m.transpose(attend(m, [q, k, v], adjoint=True), 0, 2, 1, 3), 1, N, 48)
    model = m.model(rows(m, back, 5))
    check_kept(model, optimize, tolerance=1e-5)
    assert sum(isinstance(node.op, ops.Softmax) for node in model.main) == 1


def test_scores_given_out_stay_one_tensor() -> None:
    m = Maker()
    x = m.input(1, N, 8)
    q, k = (m.transpose(m.reshape(rows(m, x, C), 1, N, H, D), 0, 2, 1, 3) for _ in range(2))
    model = m.model(m.op(ops.Softmax(beta=1.0), m.op(ops.BatchMatMul(adj_y=True), q, k)))
    check_kept(model, optimize, tolerance=1e-5)
    assert model.main.outputs[0].shape == (1, H, N, N)
