"""The activations that recurrent layers name in a list. Source: ONNX operator reference, LSTM-14."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.registry import LOWERINGS
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Operator, Tensor
from vitrify.ops.cells import Activation

PLAIN: dict[str, type[Operator]] = {"sigmoid": ops.Logistic, "tanh": ops.Tanh, "relu": ops.Relu}
# Name -> the ONNX operator that computes it, and the defaults of alpha and beta where it takes them.
_OTHERS: dict[str, tuple[str, tuple[float, ...]]] = {
    "affine": ("", (1.0, 0.0)),
    "scaledtanh": ("", (1.0, 1.0)),
    "leakyrelu": ("LeakyRelu", (0.01,)),
    "thresholdedrelu": ("ThresholdedRelu", (1.0,)),
    "hardsigmoid": ("HardSigmoid", (0.2, 0.5)),
    "elu": ("Elu", (1.0,)),
    "softsign": ("Softsign", ()),
    "softplus": ("Softplus", ()),
}


class Named(NamedTuple):
    """An activation as the file names it."""

    kind: str
    alpha: float = 0.0
    beta: float = 0.0


def named(node: SourceNode, defaults: tuple[str, ...], directions: int) -> list[Named]:
    """The activations of all directions; alpha and beta are used up by those that take them.

    Raises:
        ModelError: the list has another length.
        UnsupportedError: an activation that ONNX does not name.
    """
    names = [str(n) for n in node.attributes.get("activations", list(defaults) * directions)]
    if len(names) != len(defaults) * directions:
        raise node.problem(f"{len(names)} activations for {len(defaults) * directions} gates")
    alphas, betas = (iter(node.floats(f"activation_{which}") or ()) for which in ("alpha", "beta"))
    return [_named(node, name, alphas, betas) for name in names]


def _named(node: SourceNode, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Named:
    kind = name.lower()
    if kind in PLAIN:
        return Named(kind)
    if kind not in _OTHERS:
        raise node.unsupported(f"the activation '{name}'")
    given = _OTHERS[kind][1]
    alpha = next(alphas, given[0]) if given else 0.0
    beta = next(betas, given[1]) if len(given) > 1 else 0.0
    return Named(kind, alpha, beta)


def activation_of(ctx: Context, node: SourceNode, one: Named, clip: float) -> Activation:
    """A function that applies the activation to a tensor, after clipping it to [-clip, clip] when that is not 0."""

    def apply(x: Tensor) -> Tensor:
        if clip:
            x = ctx.emit(ops.Minimum(), [x, np.array(clip, np.float32)])
            x = ctx.emit(ops.Maximum(), [x, np.array(-clip, np.float32)])
        return ctx.emit(PLAIN[one.kind](), [x]) if one.kind in PLAIN else _other(ctx, node, one, x)

    return apply


def _other(ctx: Context, node: SourceNode, one: Named, x: Tensor) -> Tensor:
    alpha, beta = np.array(one.alpha, np.float32), np.array(one.beta, np.float32)
    if one.kind == "affine":
        return ctx.emit(ops.Add(), [ctx.emit(ops.Mul(), [x, alpha]), beta])
    if one.kind == "scaledtanh":
        return ctx.emit(ops.Mul(), [ctx.emit(ops.Tanh(), [ctx.emit(ops.Mul(), [x, beta])]), alpha])
    kind, defaults = _OTHERS[one.kind]
    attributes = dict(zip(("alpha", "beta"), (one.alpha, one.beta)[: len(defaults)], strict=False))
    inner = SourceNode(kind, node.name, [f"{node.label}/in"], [f"{node.label}/out"], attributes, opset=node.opset)
    ctx.values[inner.inputs[0]] = x
    LOWERINGS[kind](ctx, inner)
    made = ctx.tensor(SourceNode("", "", inner.outputs, [], {}), 0)
    for name in (*inner.inputs, *inner.outputs):
        del ctx.values[name]
    return made
