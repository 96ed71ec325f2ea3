"""Multiplications and additions of constants that weights and biases can take over (batch normalization is both)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import by_constant, constant, float_data, only_user, per_channel, producer, swap


class Weighted(NamedTuple):
    """Where an operator with weights has its parts: input positions, and the weights' axes of channels."""

    value: int
    weights: int
    bias: int
    out_axis: int
    in_axis: int


SHARED_BYTES = 1 << 18
"""Weights that several nodes share are copied for a fold up to this size."""
KINDS: dict[type[ops.Operator], Weighted] = {
    ops.Conv2D: Weighted(0, 1, 2, 0, 3),
    ops.DepthwiseConv2D: Weighted(0, 1, 2, 3, 3),
    ops.TransposeConv: Weighted(2, 1, 3, 0, 3),
    ops.FullyConnected: Weighted(0, 1, 2, 0, 1),
}


def weights_of(node: Node | None) -> tuple[Weighted, Array, Array | None] | None:
    """The places, weights and bias of a float node whose constant weights may change; None for others."""
    places = KINDS.get(type(node.op)) if node is not None else None
    if node is None or places is None:
        return None
    weights, bias = node.input(places.weights), node.optional(places.bias)
    data = float_data(weights)
    if data is None or (bias is not None and float_data(bias) is None):
        return None
    if len(weights.uses) > 1 and weights.nbytes > SHARED_BYTES:
        return None
    if isinstance(node.op, ops.FullyConnected) and node.op.weights_format:
        return None
    return places, data, None if bias is None else bias.data


def with_weights(node: Node, places: Weighted, weights: Array, bias: Array | None) -> list[Tensor | None]:
    """The inputs of ``node`` with other weights and bias."""
    old, old_bias = node.input(places.weights), node.optional(places.bias)
    inputs = [*node.inputs[:places.bias]]
    inputs[places.weights] = constant(old.name, np.asarray(weights, np.float32), old.origin)
    if bias is not None:
        name, origin = (f"{old.name}_bias", old.origin) if old_bias is None else (old_bias.name, old_bias.origin)
        inputs.append(constant(name, bias.astype(np.float32), origin))
    return inputs


class FoldScaleAfter(Pass):
    """Fold a constant MUL or ADD per channel into the weights and bias before it.

    Before:  %1 = CONV_2D(%x, w, b);  %2 = MUL(%1, s);  %3 = ADD(%2, t)      s, t: float32[C_out]
    After:   %3 = CONV_2D(%x, w * s, b * s + t)
    Equal in real arithmetic; products may round differently.
    """

    name = "fold-scale-after"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mul, ops.Add)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Fold where the value before is used only here."""
        multiplies = isinstance(node.op, ops.Mul)
        pair = by_constant(node, type(node.op))
        maker = producer(pair[0], *KINDS) if pair is not None else None
        parts = weights_of(maker)
        if pair is None or maker is None or parts is None or only_user(pair[0]) is not node or _activates(maker):
            return False
        places, weights, bias = parts
        assert pair[1].data is not None
        vector = per_channel(pair[1].data, weights.shape[places.out_axis])
        if vector is None:
            return False
        if multiplies:
            shape = [1] * weights.ndim
            shape[places.out_axis] = -1
            weights = weights * vector.reshape(shape)
            bias = None if bias is None else bias * vector
        else:
            bias = vector if bias is None else bias + vector
        name = maker.name
        swap(graph, node, maker.op, with_weights(maker, places, weights, bias), self.made(maker, node)).name = name
        return True


def _activates(node: Node) -> bool:
    return getattr(node.op, "fused_activation_function", ops.Activation.NONE) is not ops.Activation.NONE


class FoldScaleBefore(Pass):
    """Fold a constant MUL or ADD per channel into the weights and biases of all that read it.

    Before:  %1 = MUL(%x, s);  %2 = CONV_2D(%1, w, b)      s: float32[C_in]
    After:   %2 = CONV_2D(%x, w * s, b)
    Equal in real arithmetic. An ADD folds only where no border is padded: there the padding is 0, not 0 + t.
    """

    name = "fold-scale-before"
    exactness = Exactness.ROUNDING
    kinds = (ops.Mul, ops.Add)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Fold when every reader can take it."""
        pair = by_constant(node, type(node.op))
        if pair is None or node.output.is_output or not node.output.uses:
            return False
        assert pair[1].data is not None
        readers = node.output.users
        if not all(_reads_by_weights(reader, node.output) for reader in readers):
            return False      # asked before any weights are computed
        folded = [_taken(node, reader, pair[1].data) for reader in readers]
        if None in folded:
            return False
        for reader, inputs in zip(readers, folded, strict=True):
            assert inputs is not None
            inputs[KINDS[type(reader.op)].value] = pair[0]
            swap(graph, reader, reader.op, inputs, self.made(node, reader))
        return True


def _reads_by_weights(reader: Node, tensor: Tensor) -> bool:
    parts = weights_of(reader)
    return parts is not None and reader.inputs[parts[0].value] is tensor


def _taken(node: Node, reader: Node, factor: Array) -> list[Tensor | None] | None:
    """The inputs of ``reader`` with weights that do the work of ``node``; None when it cannot take it."""
    parts = weights_of(reader)
    if parts is None:
        return None
    places, weights, bias = parts
    vector = _per_input(reader, factor, node.output.shape[-1], weights.shape[places.in_axis])
    if vector is None:
        return None
    if isinstance(node.op, ops.Mul):
        return with_weights(reader, places, weights * vector, bias)
    if not _is_unpadded(reader):
        return None
    moved = _through(reader, weights, vector)
    return with_weights(reader, places, weights, moved if bias is None else bias + moved)


def _per_input(node: Node, factor: Array, channels: int, expected: int) -> Array | None:
    """The factor for the weights, to broadcast: by their last axis, in a grouped convolution by output too."""
    vector = per_channel(factor, channels)
    if vector is None:
        return None
    if isinstance(node.op, ops.DepthwiseConv2D):
        return np.repeat(vector, expected // channels)
    if isinstance(node.op, ops.Conv2D) and channels != expected:
        groups, outputs = channels // expected, node.input(1).shape[0]
        return np.repeat(vector.reshape(groups, expected), outputs // groups, axis=0)[:, None, None, :]
    return vector if channels == expected else None


def _is_unpadded(node: Node) -> bool:
    """True when every tap of every window lies inside the input."""
    if isinstance(node.op, ops.FullyConnected):
        return True
    if not isinstance(node.op, ops.Conv2D | ops.DepthwiseConv2D):
        return False
    return node.op.padding is ops.Padding.VALID or node.input(1).shape[1:3] == (1, 1)


def _through(node: Node, weights: Array, vector: Array) -> Array:
    """What a constant input ``vector`` adds to each output channel."""
    if weights.ndim == 2:
        return np.asarray(weights @ vector, np.float32)
    scaled = weights.astype(np.float64) * vector
    axes = (0, 1, 2) if isinstance(node.op, ops.DepthwiseConv2D) else tuple(range(1, weights.ndim))
    return np.asarray(scaled.sum(axis=axes), np.float32)
