"""What the inputs of a node are to the compiler: values that it computes with, weights, biases, or parameters."""

from __future__ import annotations

import math

from vitrify.ir import Node, Tensor

_DATA = {"SPLIT": (1,), "TRANSPOSE_CONV": (2,), "PRELU": (0, 1), "SCATTER_ND": (0, 1),
         "UNIDIRECTIONAL_SEQUENCE_LSTM": (0,), "ARG_MAX": (0,), "REDUCE_ALL": (0,), "REDUCE_ANY": (0,), "SUM": (0,),
         "MIRROR_PAD": (0,), "REVERSE_V2": (0,), "TILE": (0,), "EXPAND_DIMS": (0,), "NEG": (0,)}
"""Input positions of the values, where the operator's int8 rule does not say it."""


def features(node: Node) -> list[Tensor]:
    """Return the values that a node computes with, without weights, biases and parameters."""
    places = _DATA.get(node.op.kind)
    if places is not None:
        return [t for i in places if (t := node.optional(i)) is not None]
    rule = node.op.int8
    apart = set() if rule is None else {rule.weight, rule.bias, *rule.keep}
    return [t for i, t in enumerate(node.inputs) if t is not None and i not in apart]


def feature(node: Node) -> Tensor | None:
    """Return the first of them, None when a file leaves it out."""
    return next(iter(features(node)), None)


def weights(node: Node) -> Tensor | None:
    """Return the weights of a convolution or a fully connected node."""
    rule = node.op.int8
    return None if rule is None or rule.weight is None else node.optional(rule.weight)


def bias(node: Node) -> Tensor | None:
    """Return its bias."""
    rule = node.op.int8
    return None if rule is None or rule.bias is None else node.optional(rule.bias)


def parameters(node: Node) -> list[Tensor]:
    """Return shapes, axes, paddings and the like."""
    used = {id(t) for t in (*features(node), weights(node), bias(node)) if t is not None}
    return [t for t in node.inputs if t is not None and id(t) not in used]


def ints(tensor: Tensor | None) -> tuple[int, ...] | None:
    """Return the values of a constant of whole numbers, None where it is computed or left out."""
    if tensor is None or tensor.data is None:
        return None
    return tuple(int(v) for v in tensor.data.reshape(-1))


def nhwc(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with at least four extents, ones put before."""
    return (1,) * (4 - len(shape)) + tuple(shape)


def axes(given: tuple[int, ...], rank: int) -> set[int]:
    """Return axes counted from the front."""
    return {axis + rank if axis < 0 else axis for axis in given}


def product(extents: tuple[int, ...]) -> int:
    """Return the number of elements."""
    return math.prod(extents)


def shown(extents: tuple[int, ...]) -> str:
    """Return extents as messages print them."""
    return f"[{','.join(map(str, extents))}]"
