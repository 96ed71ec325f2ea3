"""Rounding weights against each other: what one weight loses, those after it make good.

Inputs of a layer vary together. Where two of them move alike, rounding one weight up and the other down cancels; the
order and the amounts follow from the inputs' second moments, in closed form for the squared error of the output.
Source: Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Operator, Quantization
from vitrify.ops import DepthwiseConv2D
from vitrify.quant.calibration.moments import Moments
from vitrify.quant.scales import WEIGHT_HIGH

Array = np.ndarray[Any, np.dtype[Any]]

DAMPING, SCARCE = 0.01, 2.0
"""Share of the mean variance that every input gets on top, against moments seen on few windows: at least the first, and
the second over the windows for each input. Measured on other samples than those of calibration, MobileNetV2's layers
lost 2.6 dB with the first alone where there were 0.4 windows for each input, and gain 0.5 dB where there are four."""

SWEEPS = 4
"""How often learned rounding goes over all weights of a layer at most; it ends when none changes."""

TINY = 1e-30
"""A mean variance below this is that of constants."""

BLOCK = 64
"""Weights rounded together before what they lose is spread over all others."""


def round_weights(op: Operator, weights: Array, scales: Quantization, moments: Moments, centered: bool,
                  learned: bool = False) -> Array | None:
    """Round a layer's weights to int8 for the least squared error of its output.

    Args:
        op: a convolution or a dense layer.
        weights: float weights in TFLite layout.
        scales: their scales.
        moments: of the layer's inputs.
        centered: the bias will be corrected by the mean error, so that the means do not count.
        learned: go over the rounded weights again, as long as that lessens the error.

    Returns:
        int8 weights; None when the moments are not those of such a layer.
    """
    key = b"%d%d" % (centered, learned) + scales.scale.tobytes()
    if key in moments.rounded:
        return moments.rounded[key]
    spread = moments.spread(centered)
    if isinstance(op, DepthwiseConv2D):
        rows = weights.reshape(-1, weights.shape[-1]).T[:, None, :]             # [channels, 1, taps]
    else:
        groups = len(spread)
        if weights.shape[0] % groups:
            return None
        rows = weights.reshape(groups, weights.shape[0] // groups, -1)          # [g, outputs, inputs]
    if spread.shape != (rows.shape[0], rows.shape[2], rows.shape[2]) or not np.isfinite(spread).all():
        return None
    channels = rows.shape[0] * rows.shape[1]
    steps = np.broadcast_to(scales.scale.astype(np.float64), (channels,)).reshape(*rows.shape[:2], 1)
    values, damping = (rows / steps).astype(np.float32), max(DAMPING, SCARCE * rows.shape[2] / max(moments.count, 1))
    normal = _normalized(spread)
    levels = _round(values, normal, damping)
    if learned:
        levels = _refined(levels, values, normal + np.float32(damping) * np.eye(rows.shape[2], dtype=np.float32))
    if isinstance(op, DepthwiseConv2D):
        levels = np.ascontiguousarray(levels[:, 0, :].T)
    made: Array = levels.reshape(weights.shape).astype(np.int8)
    moments.rounded[key] = made
    return made


def _normalized(spread: Array) -> Array:
    """The moments in units of their mean variance; what never varies counts as varying by itself."""
    count = spread.shape[-1]
    mean = np.einsum("gnn->g", spread)[:, None, None] / count
    whole: Array = np.where(mean > TINY, spread / np.maximum(mean, TINY), np.eye(count))
    return whole.astype(np.float32)


def _factor(spread: Array, damping: float) -> Array:
    """The upper Cholesky factor of the inverse of the moments, damped until there is one."""
    one = np.eye(spread.shape[-1], dtype=np.float32)
    while True:
        try:
            factor: Array = np.linalg.cholesky(np.linalg.inv(spread + np.float32(damping) * one)).transpose(0, 2, 1)
            return factor
        except np.linalg.LinAlgError:
            damping *= 10


def _refined(levels: Array, values: Array, spread: Array) -> Array:
    """Move one input's weights after the other to the levels of least error, all others held still.

    Each move is the exact minimum in that weight, so that the error never grows.
    """
    levels = levels.copy()
    slope = np.matmul(levels - values, spread)                                  # [g, outputs, n]
    for _ in range(SWEEPS):
        moved = False
        for at in range(levels.shape[2]):
            best = levels[..., at] - np.rint(slope[..., at] / spread[:, None, at, at])
            best = np.clip(best, -WEIGHT_HIGH, WEIGHT_HIGH)
            change = best - levels[..., at]
            if change.any():
                levels[..., at], moved = best, True
                slope += change[..., None] * spread[:, None, at, :]
        if not moved:
            break
    return levels


def _round(values: Array, spread: Array, damping: float = DAMPING) -> Array:
    """Round [g,outputs,n] in units of their steps, given [g,n,n]; the inputs that vary most come first."""
    groups, _, count = values.shape
    order = np.argsort(-np.einsum("gnn->gn", spread), axis=1, kind="stable")
    index = np.arange(groups)[:, None, None]
    factor = _factor(spread[index, order[:, :, None], order[:, None, :]], damping)
    across = np.ascontiguousarray(factor.transpose(1, 2, 0))[..., None]        # [n, n, g, 1]
    left = np.ascontiguousarray(np.take_along_axis(values, order[:, None, :], axis=2).transpose(2, 0, 1))
    levels, lost = np.empty_like(left), np.empty_like(left)                    # [n, g, outputs]
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        for at in range(start, stop):
            levels[at] = np.clip(np.rint(left[at]), -WEIGHT_HIGH, WEIGHT_HIGH)
            lost[at] = (left[at] - levels[at]) / across[at, at]
            left[at + 1:stop] -= across[at, at + 1:stop] * lost[at]
        if stop < count:
            spilt = np.matmul(factor[:, start:stop, stop:].transpose(0, 2, 1), lost[start:stop].transpose(1, 0, 2))
            left[stop:] -= spilt.transpose(1, 0, 2)
    found = np.empty_like(values)
    np.put_along_axis(found, np.broadcast_to(order[:, None, :], values.shape), levels.transpose(1, 2, 0), axis=2)
    return found
