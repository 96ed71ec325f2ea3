"""Each pass on the smallest graph that it changes, and on one that it must leave alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_maker import Maker, check_kept, kinds

from vitrify import ops
from vitrify.ir import Ledger, Model, Tensor
from vitrify.ops import Activation, Padding
from vitrify.passes import Pass, Runner
from vitrify.passes.cleanup.concats import MergeConcats
from vitrify.passes.cleanup.dead_code import DeadCode
from vitrify.passes.cleanup.duplicates import Duplicates, SharedConstants
from vitrify.passes.cleanup.folding import FoldConstants
from vitrify.passes.cleanup.identities import Identities
from vitrify.passes.cleanup.means import MergeReductions
from vitrify.passes.integers.int8_forms import NegToMul, SquareToMul, SumToMean
from vitrify.passes.patterns.activations import ClipToRelu, FuseActivation, Relu0To1ToClip
from vitrify.passes.patterns.arithmetic import DivToMul, MergeConstants, SubToAdd
from vitrify.passes.patterns.div_no_nan import DivNoNan
from vitrify.passes.patterns.division import DivToRsqrt
from vitrify.passes.patterns.gelu import TanhGelu
from vitrify.passes.patterns.hard_swish import HardSigmoid, HardSwish
from vitrify.passes.patterns.leaky_relu import LeakyRelu
from vitrify.passes.patterns.nearest import PlainNearest
from vitrify.passes.reshaping.reshape_earlier import ReshapeEarlier
from vitrify.passes.reshaping.reshape_later import ReshapeLater
from vitrify.passes.reshaping.reshapes import MergeReshapes, TransposeToReshape
from vitrify.passes.weights.pads import FusePad, ZeroPadBeforeMaxPool
from vitrify.passes.weights.scale_order import ScaleAfterOffset, ScaleAfterPad
from vitrify.passes.weights.scales import FoldScaleAfter, FoldScaleBefore

Build = Callable[[Maker, Tensor], Tensor | tuple[Tensor, ...]]


def pads(*amounts: tuple[int, int]) -> Any:
    return np.array([(0, 0), *amounts, (0, 0)], np.int32)


def padded(m: Maker, x: Tensor, *amounts: tuple[int, int]) -> Tensor:
    return m.op(ops.Pad(), x, m.const(pads(*amounts), np.int32))


def padded_lowest(m: Maker, x: Tensor, *amounts: tuple[int, int]) -> Tensor:
    return m.op(ops.PadV2(), x, m.const(pads(*amounts), np.int32), m.const(np.finfo(np.float32).min))


def pool(size: int, stride: int) -> ops.MaxPool2D:
    return ops.MaxPool2D(padding=Padding.VALID, stride_h=stride, stride_w=stride, filter_height=size, filter_width=size)


def depthwise(m: Maker, x: Tensor, multiplier: int = 1) -> Tensor:
    w = m.weights(1, 3, 3, x.shape[3] * multiplier)
    return m.op(ops.DepthwiseConv2D(depth_multiplier=multiplier), x, w, m.weights(x.shape[3] * multiplier))


def grouped(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Conv2D(padding=Padding.VALID), x, m.weights(6, 3, 3, x.shape[3] // 2), m.weights(6))


def transposed(m: Maker, x: Tensor) -> Tensor:
    shape = m.ints(1, x.shape[1] * 2, x.shape[2] * 2, 5)
    return m.op(ops.TransposeConv(stride_h=2, stride_w=2), shape, m.weights(5, 2, 2, x.shape[3]), x, m.weights(5))


def relu6(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Relu6(), x)


def gate(m: Maker, x: Tensor) -> Tensor:
    return relu6(m, m.op(ops.Add(), x, m.const(3.0)))


def clip(m: Maker, x: Tensor, low: float, high: float) -> Tensor:
    return m.op(ops.Minimum(), m.op(ops.Maximum(), x, m.const(low)), m.const(high))


def mul(m: Maker, x: Tensor, *values: float) -> Tensor:
    return m.op(ops.Mul(), x, m.const(values[0] if len(values) == 1 else values))


def add(m: Maker, x: Tensor, *values: float) -> Tensor:
    return m.op(ops.Add(), x, m.const(values[0] if len(values) == 1 else values))


def tanh_gelu(m: Maker, x: Tensor, cubic: float = 0.044715) -> Tensor:
    cube = m.op(ops.Mul(), m.op(ops.Mul(), x, x), x)
    inner = mul(m, m.op(ops.Add(), x, mul(m, cube, cubic)), np.sqrt(2 / np.pi))
    return m.op(ops.Mul(), mul(m, x, 0.5), add(m, m.op(ops.Tanh(), inner), 1))


def total(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Sum(keep_dims=True), x, m.ints(3))


def above_least(m: Maker, x: Tensor) -> Tensor:
    return m.op(ops.Sub(), x, m.op(ops.ReduceMin(keep_dims=True), x, m.ints(1, 2, 3)))


def div_no_nan(m: Maker, x: Tensor, divisor: Tensor | None = None, otherwise: float = 0.0) -> Tensor:
    divisor = m.op(ops.ReduceMax(keep_dims=True), x, m.ints(1, 2, 3)) if divisor is None else divisor
    is_zero = m.op(ops.Equal(), divisor, m.const(0.0))
    return m.op(ops.SelectV2(), is_zero, m.const(otherwise), m.op(ops.Div(), x, divisor))


CASES: dict[str, tuple[type[Pass], Build, list[str]]] = {
    "div": (DivToMul, lambda m, x: m.op(ops.Div(), x, m.const([1, 2, 3, 6])), ["MUL"]),
    "div by zero": (DivToMul, lambda m, x: m.op(ops.Div(), add(m, x, 9), m.const([1, 2, 0, 6])), ["ADD", "DIV"]),
    "constant over x": (DivToMul, lambda m, x: m.op(ops.Div(), m.const(1.0), x), ["DIV"]),
    "over a sum of exponentials": (DivToRsqrt, lambda m, x: m.op(ops.Div(), x, total(m, m.op(ops.Exp(), x))),
                                   ["EXP", "SUM", "RSQRT", "MUL", "MUL"]),
    "over an absolute value, relu": (DivToRsqrt, lambda m, x: m.op(
        ops.Div(fused_activation_function=Activation.RELU), x, m.op(ops.Abs(), x)), ["ABS", "RSQRT", "MUL", "MUL"]),
    "over the distance from the least": (DivToRsqrt, lambda m, x: m.op(ops.Div(), x, add(m, above_least(m, x), 1)),
                                         ["REDUCE_MIN", "SUB", "ADD", "RSQRT", "MUL", "MUL"]),
    "over a root": (DivToRsqrt, lambda m, x: m.op(ops.Div(), x, m.op(ops.Sqrt(), add(m, m.op(ops.Abs(), x), 1))),
                    ["ABS", "ADD", "RSQRT", "MUL"]),
    "over any sign": (DivToRsqrt, lambda m, x: m.op(ops.Div(), x, m.op(ops.Tanh(), x)), ["TANH", "DIV"]),
    "over a difference": (DivToRsqrt, lambda m, x: m.op(ops.Div(), x, m.op(ops.Sub(), x, total(m, x))),
                          ["SUM", "SUB", "DIV"]),
    "by the greatest": (DivNoNan, lambda m, x: div_no_nan(m, above_least(m, x)),
                        ["REDUCE_MIN", "SUB", "REDUCE_MAX", "MAXIMUM", "RSQRT", "MUL", "MUL"]),
    "by the greatest, all zero": (DivNoNan, lambda m, x: div_no_nan(
        m, m.op(ops.Relu(), mul(m, m.op(ops.Abs(), x), -1))),
                                  ["ABS", "MUL", "RELU", "REDUCE_MAX", "MAXIMUM", "RSQRT", "MUL", "MUL"]),
    "by the greatest of any sign": (DivNoNan, lambda m, x: div_no_nan(m, m.op(ops.Tanh(), x)),
                                    ["TANH", "REDUCE_MAX", "EQUAL", "DIV", "SELECT_V2"]),
    "by something else": (DivNoNan, lambda m, x: div_no_nan(m, m.op(ops.Abs(), x), total(m, m.op(ops.Abs(), x))),
                          ["ABS", "ABS", "SUM", "EQUAL", "DIV", "SELECT_V2"]),
    "where one instead of zero": (DivNoNan, lambda m, x: div_no_nan(m, m.op(ops.Abs(), x), otherwise=1.0),
                                  ["ABS", "REDUCE_MAX", "EQUAL", "DIV", "SELECT_V2"]),
    "sub": (SubToAdd, lambda m, x: m.op(ops.Sub(), x, m.const([1, 2, 3, 4])), ["ADD"]),
    "constant minus x": (SubToAdd, lambda m, x: m.op(ops.Sub(), m.const(1.0), x), ["SUB"]),
    "mul of mul": (MergeConstants, lambda m, x: mul(m, mul(m, x, 2), 1, 2, 3, 4), ["MUL"]),
    "add of add": (MergeConstants, lambda m, x: add(m, add(m, x, 2), 3), ["ADD"]),
    "mul add mul add": (MergeConstants, lambda m, x: add(m, mul(m, add(m, mul(m, x, 2), 3), 4), 5), ["MUL", "ADD"]),
    "merge would grow": (MergeConstants, lambda m, x: m.op(ops.Mul(), m.op(ops.Mul(), x, m.weights(1, 6, 1, 1)),
                                                           m.weights(4)), ["MUL", "MUL"]),
    "mul then conv": (FoldScaleBefore, lambda m, x: m.conv(mul(m, x, 1, 2, 3, 4), 5), ["CONV_2D"]),
    "add then padded conv": (FoldScaleBefore, lambda m, x: m.conv(add(m, x, 1, 2, 3, 4), 5), ["ADD", "CONV_2D"]),
    "add then valid conv": (FoldScaleBefore, lambda m, x: m.conv(add(m, x, 1, 2, 3, 4), 5, padding=Padding.VALID),
                            ["CONV_2D"]),
    "add then conv without bias": (FoldScaleBefore, lambda m, x: m.conv(add(m, x, 1), 5, 1, bias=False), ["CONV_2D"]),
    "mul then depthwise": (FoldScaleBefore, lambda m, x: depthwise(m, mul(m, x, 1, 2, 3, 4), 2), ["DEPTHWISE_CONV_2D"]),
    "mul then grouped": (FoldScaleBefore, lambda m, x: grouped(m, mul(m, x, 1, 2, 3, 4)), ["CONV_2D"]),
    "add then grouped": (FoldScaleBefore, lambda m, x: grouped(m, add(m, x, 1, 2, 3, 4)), ["CONV_2D"]),
    "mul then transposed": (FoldScaleBefore, lambda m, x: transposed(m, mul(m, x, 1, 2, 3, 4)), ["TRANSPOSE_CONV"]),
    "mul read twice": (FoldScaleBefore, lambda m, x: (lambda y: (m.conv(y, 5), y))(mul(m, x, 2)), ["MUL", "CONV_2D"]),
    "mul then two convs": (FoldScaleBefore, lambda m, x: (lambda y: m.op(ops.Add(), m.conv(y, 5), m.conv(y, 5, 1)))(
        mul(m, x, 1, 2, 3, 4)), ["CONV_2D", "CONV_2D", "ADD"]),
    "add then dense": (FoldScaleBefore, lambda m, x: m.op(ops.FullyConnected(), add(m, m.reshape(x, 1, 144), 2),
                                                          m.weights(5, 144)), ["RESHAPE", "FULLY_CONNECTED"]),
    "scale, offset, conv": (ScaleAfterOffset, lambda m, x: m.conv(add(m, mul(m, x, 0.5), 3), 2),
                            ["ADD", "MUL", "CONV_2D"]),
    "tiny scale": (ScaleAfterOffset, lambda m, x: m.conv(add(m, mul(m, x, 0.001), 3), 2), ["MUL", "ADD", "CONV_2D"]),
    "scale, offset, sum": (ScaleAfterOffset, lambda m, x: m.op(ops.Add(), add(m, mul(m, x, 0.5), 3), x),
                           ["MUL", "ADD", "ADD"]),
    "scale, pad, conv": (ScaleAfterPad, lambda m, x: m.conv(padded(m, mul(m, x, 1, 2, 3, 4), (2, 0), (1, 1)), 2),
                         ["PAD", "MUL", "CONV_2D"]),
    "double": (PlainNearest, lambda m, x: m.op(ops.ResizeNearestNeighbor(half_pixel_centers=True), x, m.ints(12, 24)),
               ["RESIZE_NEAREST_NEIGHBOR"]),
    "conv bn": (FoldScaleAfter, lambda m, x: add(m, mul(m, m.conv(x, 3), 1, 2, 3), 3, 2, 1), ["CONV_2D"]),
    "conv without bias, bn": (FoldScaleAfter, lambda m, x: add(m, mul(m, m.conv(x, 3, bias=False), 2), 3, 2, 1),
                              ["CONV_2D"]),
    "depthwise bn": (FoldScaleAfter, lambda m, x: add(m, mul(m, depthwise(m, x), 1, 2, 3, 4), 3),
                     ["DEPTHWISE_CONV_2D"]),
    "transposed bn": (FoldScaleAfter, lambda m, x: add(m, mul(m, transposed(m, x), 1, 2, 3, 4, 5), 3),
                      ["TRANSPOSE_CONV"]),
    "conv, scale per row": (FoldScaleAfter, lambda m, x: m.op(ops.Mul(), m.conv(x, 3), m.weights(1, 6, 1, 1)),
                            ["CONV_2D", "MUL"]),
    "clip 0..6": (ClipToRelu, lambda m, x: clip(m, x, 0, 6), ["RELU6"]),
    "clip -1..1": (ClipToRelu, lambda m, x: m.op(ops.Maximum(), m.op(ops.Minimum(), x, m.const(1.0)), m.const(-1.0)),
                   ["RELU_N1_TO_1"]),
    "max 0": (ClipToRelu, lambda m, x: m.op(ops.Maximum(), m.const(0.0), x), ["RELU"]),
    "clip 0..4": (ClipToRelu, lambda m, x: clip(m, x, 0, 4), ["RELU", "MINIMUM"]),
    "relu_0_to_1": (Relu0To1ToClip, lambda m, x: m.op(ops.Relu0To1(), x), ["RELU", "MINIMUM"]),
    "conv relu": (FuseActivation, lambda m, x: m.op(ops.Relu(), m.conv(x, 3)), ["CONV_2D"]),
    "transposed relu6": (FuseActivation, lambda m, x: relu6(m, transposed(m, x)), ["TRANSPOSE_CONV"]),
    "add relu": (FuseActivation, lambda m, x: m.op(ops.Relu(), m.op(ops.Add(), x, x)), ["ADD"]),
    "conv given out too": (FuseActivation, lambda m, x: (lambda y: (m.op(ops.Relu(), y), y))(m.conv(x, 3)),
                           ["CONV_2D", "RELU"]),
    "relu relu6": (FuseActivation, lambda m, x: relu6(m, m.op(ops.Relu(), m.conv(x, 3))), ["CONV_2D", "RELU6"]),
    "hard swish by product": (HardSwish, lambda m, x: mul(m, m.op(ops.Mul(), x, gate(m, x)), 1 / 6), ["HARD_SWISH"]),
    "hard swish by hard sigmoid": (HardSwish, lambda m, x: m.op(ops.Mul(), mul(m, gate(m, x), 1 / 6), x),
                                   ["HARD_SWISH"]),
    "hard swish by scaled x": (HardSwish, lambda m, x: m.op(ops.Mul(), mul(m, x, 1 / 6), gate(m, x)), ["HARD_SWISH"]),
    "gate of another value": (HardSwish, lambda m, x: mul(m, m.op(ops.Mul(), x, gate(m, mul(m, x, 2))), 1 / 6),
                              ["MUL", "ADD", "RELU6", "MUL", "MUL"]),
    "gate over 5": (HardSwish, lambda m, x: mul(m, m.op(ops.Mul(), x, gate(m, x)), 1 / 5),
                    ["ADD", "RELU6", "MUL", "MUL"]),
    "gelu by tanh": (TanhGelu, tanh_gelu, ["GELU"]),
    "gelu with another cube": (TanhGelu, lambda m, x: tanh_gelu(m, x, 0.05), [
        "MUL", "MUL", "MUL", "ADD", "MUL", "MUL", "TANH", "ADD", "MUL"]),
    "hard sigmoid": (HardSigmoid, lambda m, x: clip(m, add(m, mul(m, x, 0.2), 0.5), 0, 1),
                     ["MUL", "ADD", "RELU6", "MUL"]),
    "clip 0..1 of nothing linear": (HardSigmoid, lambda m, x: clip(m, m.op(ops.Tanh(), x), 0, 1),
                                    ["TANH", "MAXIMUM", "MINIMUM"]),
    "leaky by maximum": (LeakyRelu, lambda m, x: m.op(ops.Maximum(), mul(m, x, 0.1), x), ["LEAKY_RELU"]),
    "steep maximum": (LeakyRelu, lambda m, x: m.op(ops.Maximum(), mul(m, x, 1.5), x), ["MUL", "MAXIMUM"]),
    "prelu of one slope": (LeakyRelu, lambda m, x: m.op(ops.Prelu(), x, m.const(np.full((1, 1, 4), 0.25))),
                           ["LEAKY_RELU"]),
    "prelu": (LeakyRelu, lambda m, x: m.op(ops.Prelu(), x, m.weights(1, 1, 4)), ["PRELU"]),
    "mean of mean": (MergeReductions, lambda m, x: m.op(ops.Mean(keep_dims=True), m.op(
        ops.Mean(keep_dims=True), x, m.ints(1)), m.ints(-2)), ["MEAN"]),
    "pad conv": (FusePad, lambda m, x: m.conv(padded(m, x, (1, 1), (1, 1)), 3, padding=Padding.VALID), ["CONV_2D"]),
    "pad conv, stride 2": (FusePad, lambda m, x: m.conv(padded(m, x, (1, 1), (1, 1)), 3, 3, 2, padding=Padding.VALID),
                           ["PAD", "CONV_2D"]),
    "pad behind, stride 2": (FusePad, lambda m, x: m.conv(padded(m, x, (0, 1), (0, 1)), 3, 3, 2, padding=Padding.VALID),
                             ["CONV_2D"]),
    "zero pad, max pool": (FusePad, lambda m, x: m.op(pool(3, 1), padded(m, x, (1, 1), (1, 1))),
                           ["PAD", "MAX_POOL_2D"]),
    "zero pad of relu, max pool": (FusePad, lambda m, x: m.op(pool(3, 1), padded(
        m, m.op(ops.Relu(), x), (1, 1), (1, 1))), ["RELU", "MAX_POOL_2D"]),
    "lowest pad, max pool": (FusePad, lambda m, x: m.op(pool(5, 1), padded_lowest(m, x, (2, 2), (2, 2))),
                             ["MAX_POOL_2D"]),
    "lowest pad of relu": (ZeroPadBeforeMaxPool, lambda m, x: m.op(pool(3, 2), padded_lowest(
        m, m.op(ops.Relu(), x), (1, 1), (1, 1))), ["RELU", "PAD", "MAX_POOL_2D"]),
    "lowest pad of any": (ZeroPadBeforeMaxPool, lambda m, x: m.op(pool(3, 2), padded_lowest(m, x, (1, 1), (1, 1))),
                          ["PADV2", "MAX_POOL_2D"]),
    "transpose of ones": (TransposeToReshape, lambda m, x: m.transpose(m.op(ops.Mean(keep_dims=True), x, m.ints(1, 2)),
                                                                       0, 3, 1, 2), ["MEAN", "RESHAPE"]),
    "reshape of squeeze": (MergeReshapes, lambda m, x: m.op(ops.Squeeze(), m.reshape(x, 1, 1, 144)), ["RESHAPE"]),
    "relu after a reshape": (ReshapeLater, lambda m, x: m.op(ops.Relu(), m.reshape(m.conv(x, 3), 1, 36, 3)),
                             ["CONV_2D", "RELU", "RESHAPE"]),
    "offset after a reshape": (ReshapeLater, lambda m, x: m.op(ops.Sub(), m.const([1, 2, 3]), m.reshape(
        m.conv(x, 3), 36, 3)), ["CONV_2D", "SUB", "RESHAPE"]),
    "scalar after a flatten": (ReshapeLater, lambda m, x: add(m, m.reshape(m.conv(x, 3), 1, 108), 2),
                               ["CONV_2D", "ADD", "RESHAPE"]),
    "offset after a flatten": (ReshapeLater, lambda m, x: m.op(ops.Add(), m.reshape(m.conv(x, 3), 1, 108), m.weights(
        108)), ["CONV_2D", "RESHAPE", "ADD"]),
    "sum of two reshapes": (ReshapeLater, lambda m, x: m.op(ops.Add(), m.reshape(m.conv(x, 3), 1, 36, 3), m.reshape(
        m.conv(x, 3), 1, 36, 3)), ["CONV_2D", "CONV_2D", "ADD", "RESHAPE"]),
    "neg": (NegToMul, lambda m, x: m.op(ops.Abs(), m.op(ops.Neg(), x)), ["MUL", "ABS"]),
    "sum with a negative": (NegToMul, lambda m, x: m.op(ops.Add(), m.op(ops.Neg(), x), m.op(ops.Exp(), x)),
                            ["EXP", "SUB"]),
    "square": (SquareToMul, lambda m, x: m.op(ops.Square(), x), ["MUL"]),
    "square of a norm": (SquareToMul, lambda m, x: (lambda y: m.op(ops.Exp(), m.op(ops.Mul(), y, y)))(m.op(
        ops.Sqrt(), m.op(ops.Mean(), m.op(ops.Mul(), x, x), m.ints(3)))), ["MUL", "MEAN", "SQRT", "EXP"]),
    "square of any root": (SquareToMul, lambda m, x: (lambda y: m.op(ops.Exp(), m.op(ops.Mul(), y, y)))(m.op(
        ops.Sqrt(), m.op(ops.Abs(), x))), ["ABS", "SQRT", "MUL", "EXP"]),
    "sum": (SumToMean, lambda m, x: m.op(ops.Sum(), x, m.ints(1, -1)), ["MEAN", "MUL"]),
    "sum of axes kept": (SumToMean, lambda m, x: m.op(ops.Sum(keep_dims=True), x, m.ints(2)), ["MEAN", "MUL"]),
    "equal weights": (SharedConstants, lambda m, x: tuple(m.op(ops.Conv2D(), x, m.const(np.ones((
        32, 3, 3, 4))), m.const(np.arange(32) * i)) for i in (1, 2)), ["CONV_2D", "CONV_2D"]),
    "pad before a reshape": (ReshapeEarlier, lambda m, x: m.conv(m.reshape(m.op(ops.Pad(), m.reshape(
        x, 1, 1, 144), m.const([[0, 0], [0, 0], [3, 4]], np.int32)), 1, 1, 151, 1), 2),
                             ["RESHAPE", "RESHAPE", "PAD", "CONV_2D"]),
    "pad of an axis of one": (ReshapeEarlier, lambda m, x: m.conv(m.reshape(m.op(ops.Pad(), m.reshape(
        x, 1, 1, 144), m.const([[0, 0], [1, 0], [3, 4]], np.int32)), 1, 2, 151, 1), 2),
                              ["RESHAPE", "RESHAPE", "PAD", "CONV_2D"]),
    "pad before a flatten": (ReshapeEarlier, lambda m, x: m.reshape(m.op(ops.Pad(), m.reshape(
        x, 1, 12, 12), m.const([[0, 0], [0, 0], [3, 4]], np.int32)), 1, 1, 228, 1), ["RESHAPE", "PAD", "RESHAPE"]),
    "concat of concat": (MergeConcats, lambda m, x: m.op(ops.Concatenation(axis=3), x, m.op(
        ops.Concatenation(axis=-1), m.op(ops.Exp(), x), x)), ["EXP", "CONCATENATION"]),
    "concat of concat, other axis": (MergeConcats, lambda m, x: m.op(ops.Concatenation(axis=3), *[m.op(
        ops.Concatenation(axis=1), m.op(ops.Exp(), x), x)] * 2), ["EXP", "CONCATENATION", "CONCATENATION"]),
    "dead": (DeadCode, lambda m, x: (m.op(ops.Exp(), x), m.op(ops.Abs(), x))[1], ["ABS"]),
    "same twice": (Duplicates, lambda m, x: m.op(ops.Add(), m.transpose(x, 0, 2, 1, 3), m.transpose(x, 0, 2, 1, 3)),
                   ["TRANSPOSE", "ADD"]),
    "times one": (Identities, lambda m, x: m.op(ops.Abs(), mul(m, x, 1)), ["ABS"]),
    "one over x": (Identities, lambda m, x: m.op(ops.Div(), m.const(np.ones(x.shape)), x), ["DIV"]),
    "zero minus x": (Identities, lambda m, x: m.op(ops.Sub(), m.const(np.zeros(x.shape)), x), ["SUB"]),
    "concat of one": (Identities, lambda m, x: m.op(ops.Abs(), m.op(ops.Concatenation(axis=1), x)), ["ABS"]),
    "reshape to itself": (Identities, lambda m, x: m.op(ops.Abs(), m.reshape(x, *x.shape)), ["ABS"]),
    "reverse by stride": (Identities, lambda m, x: m.op(ops.StridedSlice(begin_mask=15, end_mask=15), x, m.ints(
        0, 0, 0, 0), m.ints(0, 0, 0, 0), m.ints(1, -1, 1, 1)), ["STRIDED_SLICE"]),
    "constants": (FoldConstants, lambda m, x: m.op(ops.Add(), x, m.op(ops.Exp(), m.op(
        ops.Neg(), m.const([1, 2, 3, 4])))), ["ADD"]),
}


@pytest.mark.parametrize("case", CASES, ids=CASES.keys())
def test_pass(case: str) -> None:
    kind, build, expected = CASES[case]
    maker = Maker()
    given = build(maker, maker.input(1, 6, 6, 4))
    model = maker.model(*(given if isinstance(given, tuple) else (given,)))
    before = kinds(model)
    changes: list[int] = []

    def rewrite(model: Model) -> None:
        for _ in range(5):
            changes.append(Runner(model).apply(kind()))

    check_kept(model, rewrite)
    assert kinds(model) == expected
    assert changes[-1] == 0, "it does not settle"
    if before == expected and case not in ("double", "equal weights"):
        assert sum(changes) == 0, "it says that it changed something"


def test_ledger_names_the_users_nodes() -> None:
    maker = Maker()
    x = maker.input(1, 6, 6, 4)
    model = maker.model(maker.op(ops.Relu(), maker.conv(x, 3), name="act"))
    ledger = Ledger()
    Runner(model, ledger).apply(FuseActivation())
    (line,) = ledger.entries
    assert (line.name, line.changes, line.nodes_before, line.nodes_after) == ("fuse-activation", 1, 2, 1)
    assert line.examples == ["act"]
    (node,) = model.main
    assert [s.name for s in node.origin.sources] == ["conv_2d3", "act"]
    assert node.origin.passes == ("fuse-activation",)
    assert node.op.fused_activation_function is Activation.RELU


class Breaks(Pass):
    """Break the graph."""

    name = "breaks"

    def run(self, graph: Any) -> int:
        graph.nodes[0].output.shape = (7,)
        graph.inputs.clear()
        return 1


def test_broken_pass_is_undone() -> None:
    maker = Maker()
    x = maker.input(1, 6, 6, 4)
    model = maker.model(maker.op(ops.Relu(), maker.conv(x, 3)))
    ledger = Ledger()
    check_kept(model, lambda m: Runner(m, ledger).apply(Breaks()), tolerance=0)
    assert ledger.entries[0].changes == 0
    assert ledger.entries[0].note.startswith("undone: input 'x' is made by nobody")
