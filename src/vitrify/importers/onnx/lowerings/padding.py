"""Padding with a constant, by reflection, and by repeating the border."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.core.findings import Finding, Severity
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import fits, padding
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor

REFLECT = 0  # MirrorPadMode. Source: TFLite schema.

INFINITE = 1e30
"""A padding value beyond this stands for infinity: no layer computes such values."""


@lowering("Pad")
def pad(ctx: Context, node: SourceNode) -> None:
    """Negative pads cut, positive ones extend by the node's mode."""
    x = ctx.tensor(node, 0)
    known = [
        None,
        *(ctx.known(node, i, "the padding") if ctx.present(node, i) else None for i in range(1, len(node.inputs))),
    ]
    pads, value = padding(node, known, len(x.shape))
    ranges = [slice(max(-b, 0), d - max(-a, 0)) for d, (b, a) in zip(x.shape, pads, strict=True)]
    x = sliced(ctx, node, x, ranges)
    pads = [(max(b, 0), max(a, 0)) for b, a in pads]
    fits(node, [d + b + a for d, (b, a) in zip(x.shape, pads, strict=True)])
    mode = node.string("mode", "constant")
    if not any(map(any, pads)):
        return ctx.bind(node, x)
    if mode == "reflect":
        return ctx.bind(node, ctx.emit(ops.MirrorPad(mode=REFLECT), [x, np.array(pads, np.int32)]))
    if mode in ("edge", "wrap"):
        for axis, (before, after) in enumerate(pads):
            x = _repeated(ctx, node, x, axis, before, after, mode)
        return ctx.bind(node, x)
    if mode != "constant":
        raise node.problem(f"mode '{mode}' is not one of constant, reflect, edge, wrap")
    if value == 0:
        return ctx.bind(node, ctx.emit(ops.Pad(), [x, np.array(pads, np.int32)]))
    if x.dtype.is_float and abs(float(value)) >= INFINITE:
        ctx.findings.append(_infinite(node, float(value)))
    return ctx.bind(node, ctx.emit(ops.PadV2(), [x, np.array(pads, np.int32), np.array(value, x.dtype.numpy)]))


def _infinite(node: SourceNode, value: float) -> Finding:
    """Tell of a padding that would take all levels of an integer range."""
    return Finding(code="range.outlier_constant", severity=Severity.INFO, where=node.shown,
                   headline=f"the padding constant {value:.3g} stands for infinity",
                   why="in one 8-bit range it would leave all other values 1 of 256 levels; quantization leaves it "
                       "out, and a max pool behind it pads by itself, which gives the same maxima")


def _repeated(ctx: Context, node: SourceNode, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Pieces of ``x`` joined on both sides: its border again and again, or its other end."""
    extent = x.shape[axis]

    def piece(start: int, stop: int) -> Tensor:
        ranges = [slice(0, d) for d in x.shape]
        ranges[axis] = slice(start, stop)
        return sliced(ctx, node, x, ranges)

    if not before and not after:
        return x
    if mode == "wrap" and max(before, after) > extent:
        raise node.unsupported(f"wrapping by more than the extent {extent} of axis {axis}")
    if mode == "wrap":
        left, right = [piece(extent - before, extent)] if before else [], [piece(0, after)] if after else []
    else:
        left, right = [piece(0, 1)] * before, [piece(extent - 1, extent)] * after if after else []
    return ctx.emit(ops.Concatenation(axis=axis), [*left, x, *right])
