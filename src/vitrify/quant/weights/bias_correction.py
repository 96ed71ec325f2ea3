"""Correcting biases by the mean error that rounded weights bring.

Rounding moves each weight a little; summed over the inputs, whose means are not zero, that shifts a whole channel. The
shift is known from the mean of each input channel, and goes into the bias.
Source: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.ir import Tensor
from vitrify.ops import Concatenation, Conv2D, DepthwiseConv2D, FullyConnected, Operator, Pad, TransposeConv
from vitrify.quant.calibration.statistics import Statistics

Array = np.ndarray[Any, np.dtype[Any]]


def input_means(tensor: Tensor, names: Mapping[Tensor, str], statistics: Statistics) -> Array | None:
    """Return the mean of each channel (last axis) of a tensor, None when it was not observed.

    Padding is looked through, as it adds a border only; a join along the channels joins the means.
    """
    key = names[tensor]
    found = statistics[key].means if key in statistics else None
    if found is not None or tensor.producer is None:
        return found
    node = tensor.producer
    if isinstance(node.op, Pad):
        return input_means(node.input(0), names, statistics)
    if isinstance(node.op, Concatenation) and node.op.axis % len(tensor.shape) == len(tensor.shape) - 1:
        parts = [input_means(t, names, statistics) for t in node.inputs if t is not None]
        known = [p for p in parts if p is not None]
        return np.concatenate(known) if len(known) == len(parts) else None
    return None


def is_derived(tensor: Tensor) -> bool:
    """True when ``input_means`` finds the means of a tensor from others."""
    node = tensor.producer
    if node is None:
        return False
    if isinstance(node.op, Pad):
        return True
    return isinstance(node.op, Concatenation) and node.op.axis % len(tensor.shape) == len(tensor.shape) - 1 \
        and not any(t is not None and t.is_constant for t in node.inputs)


def shift(op: Operator, change: Array, means: Array) -> Array | None:
    """Return by how much a change of the weights shifts the mean of each output channel.

    Args:
        op: a convolution or a dense layer.
        change: rounded minus exact weights, in TFLite layout.
        means: the mean of each input channel.
    """
    if isinstance(op, DepthwiseConv2D):
        taps: Array = change.sum(axis=(0, 1, 2))
        scaled: Array = taps * np.repeat(means, len(taps) // len(means))
        return scaled
    if isinstance(op, Conv2D):
        taps = change.sum(axis=(1, 2))
        groups = len(means) // taps.shape[1]
        split = taps.reshape(groups, -1, taps.shape[1])
        grouped: Array = np.einsum("goi,gi->go", split, means.reshape(groups, -1))
        return grouped.reshape(-1)
    if isinstance(op, TransposeConv):
        spread: Array = change.sum(axis=(1, 2)) @ means / (op.stride_h * op.stride_w)
        return spread
    if isinstance(op, FullyConnected) and change.shape[1] == len(means):
        dense: Array = change @ means
        return dense
    return None
