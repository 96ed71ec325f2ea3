"""Rules on weights and biases of convolutions and fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vitrify.ir import DType, Node, Tensor
from vitrify.targets.ethos_u.cores import kinds
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import bias, feature, shown, weights

_WEIGHTED = sorted(kinds("weighted"))


@rule("ethos-u.weights-type", operators=_WEIGHTED, says="weights have 8 bits",
      why="the weight decoder gives 8-bit values", source=REPORT)
def width(node: Node, variant: Variant) -> Iterator[Breach]:
    """Weights of another width."""
    weight = weights(node)
    if weight is not None and weight.dtype.bits != 8 and not _float_throughout(node, weight):
        yield Breach(f"the weights '{weight.name}' are {weight.dtype.label}; the NPU takes 8 bits",
                     {"tensor": weight.name, "bits": weight.dtype.bits, "limit": 8}, "int8")


def _float_throughout(node: Node, constant: Tensor) -> bool:
    """A constant as float as the values it meets is no cause of its own."""
    x = feature(node)
    return constant.dtype.is_float and x is not None and x.dtype.is_float


@rule("ethos-u.weight-sum", operators=_WEIGHTED, says="no channel's absolute weights sum up beyond the accumulator",
      why="the compiler keeps sums of products within 32 or 48 bits whatever the input is", source=REPORT)
def total(node: Node, variant: Variant) -> Iterator[Breach]:
    """Channels whose weights could overflow the accumulator."""
    weight, x = weights(node), feature(node)
    if weight is None or x is None or weight.data is None or weight.dtype.bits != 8 or not weight.size:
        return
    limit = variant.limits["weight_sum_8_bits" if x.dtype.bits == 8 else "weight_sum_16_bits"]
    axis = weight.data.ndim - 1 if node.op.kind == "DEPTHWISE_CONV_2D" else 0
    channels = weight.shape[axis]
    if 255 * (weight.size // channels) < limit:
        return
    sums = _sums(weight, axis)
    worst = int(np.argmax(sums))
    if sums[worst] > limit:
        yield Breach(f"the absolute weights of channel {worst} sum up to {sums[worst]}, the limit is {limit}",
                     {"channel": worst, "sum": int(sums[worst]), "limit": limit}, "smaller weights or fewer inputs")


def _sums(weight: Tensor, axis: int) -> np.ndarray:
    assert weight.data is not None
    zero: np.ndarray = np.zeros(1, np.int64) if weight.quantization is None else weight.quantization.zero_point
    rows = np.moveaxis(weight.data, axis, 0).reshape(weight.shape[axis], -1).astype(np.int64)
    sums: np.ndarray = np.abs(rows - zero.reshape(-1, 1)).sum(axis=1)
    return sums


@rule("ethos-u.bias-type", operators=_WEIGHTED, says="a bias is int32 or int64",
      why="biases are added to the accumulator as 40-bit integers", source=REPORT)
def bias_type(node: Node, variant: Variant) -> Iterator[Breach]:
    """Biases of another type."""
    found = bias(node)
    if found is not None and found.dtype not in (DType.INT32, DType.INT64) and not _float_throughout(node, found):
        yield Breach(f"the bias '{found.name}' is {found.dtype.label}; the NPU takes int32 or int64",
                     {"tensor": found.name, "type": found.dtype.label}, "int32")


@rule("ethos-u.bias-variable", operators=_WEIGHTED, says="a bias is constant",
      why="biases are packed with the scales when the model is compiled", source=REPORT)
def bias_variable(node: Node, variant: Variant) -> Iterator[Breach]:
    """Biases that are computed."""
    found = bias(node)
    if found is not None and found.data is None:
        yield Breach(f"the bias '{found.name}' is computed at run time", {"tensor": found.name},
                     "a constant bias and an ADD")


@rule("ethos-u.bias-shape", operators=_WEIGHTED, says="a bias lies along the channels",
      why="it is read as one value for each output channel", source=REPORT)
def bias_shape(node: Node, variant: Variant) -> Iterator[Breach]:
    """Biases with more than a channel axis."""
    found = bias(node)
    if found is not None and found.shape and found.size > found.shape[-1]:
        yield Breach(f"the bias '{found.name}' has the shape {shown(found.shape)}", {"shape": list(found.shape)},
                     f"[{found.size}]")


@rule("ethos-u.bias-range", operators=_WEIGHTED, says="an int64 bias fits the accumulator",
      why="biases are added to the accumulator as 40-bit integers, on the U85 as 48-bit ones", source=REPORT)
def bias_range(node: Node, variant: Variant) -> Iterator[Breach]:
    """64-bit biases that are too large."""
    found = bias(node)
    if found is None or found.data is None or found.dtype is not DType.INT64 or not found.size:
        return
    limit = (1 << variant.limits["bias_bits"]) - 1
    largest = int(found.data.max())
    if largest > limit:
        yield Breach(f"the bias '{found.name}' reaches {largest}, the limit is {limit}",
                     {"bias": largest, "limit": limit})


@rule("ethos-u.weights-shape", operators=["FULLY_CONNECTED"], says="weights are [outputs,1,..,1,inputs]",
      why="a fully connected layer is a 1x1 convolution to the compiler", source=REPORT)
def weights_shape(node: Node, variant: Variant) -> Iterator[Breach]:
    """Weights with extents between outputs and inputs."""
    weight = weights(node)
    if weight is not None and (len(weight.shape) < 2 or weight.size != weight.shape[0] * weight.shape[-1]):
        yield Breach(f"the weights '{weight.name}' have the shape {shown(weight.shape)}", {"shape": list(weight.shape)},
                     f"[{weight.shape[0] if weight.shape else 1},{math.prod(weight.shape[1:])}]")
