"""Scales of weights that lose least: a finer step for most of them against the clipping of a few.

Every channel's scale is searched for by itself, in the squared error of its weights, each as important as its input
varies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Quantization
from vitrify.quant.calibration.moments import Moments
from vitrify.quant.scales import WEIGHT_HIGH

Array = np.ndarray[Any, np.dtype[Any]]

NARROWEST = 0.75
"""The smallest share of its extent that a channel is cut to."""

FEW, MANY = 48, 4
"""Shares that are tried, for channels of up to ``SHORT`` weights and for longer ones."""

SHORT = 64


def clipped_scales(weights: Array, scales: Quantization, moments: Moments | None) -> Quantization:
    """Return per-axis scales, each at most what it was, with the least error.

    Args:
        weights: float weights.
        scales: one scale per index of an axis, wide enough for all weights.
        moments: of the layer's inputs; None for equal importance.
    """
    axis = scales.axis
    if axis is None:
        return scales
    rows = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1).astype(np.float32)
    worth = _importance(moments, *rows.shape)
    steps = scales.scale.astype(np.float32)[:, None]
    best, least = np.ones(len(rows), np.float32), np.full(len(rows), np.inf, np.float32)
    for share in np.linspace(1.0, NARROWEST, FEW if rows.shape[1] <= SHORT else MANY, dtype=np.float32):
        step = steps * share
        lost = np.clip(np.rint(rows / step), -WEIGHT_HIGH, WEIGHT_HIGH)
        lost *= step
        lost -= rows
        error = np.einsum("rn,rn,rn->r", lost, lost, np.broadcast_to(worth, rows.shape))
        better = error < least
        best, least = np.where(better, share, best), np.where(better, error, least)
    return Quantization.per_axis((scales.scale * best).astype(np.float32), axis)


def _importance(moments: Moments | None, channels: int, count: int) -> Array:
    """How much the input of each weight varies: a row for all channels, or one for each."""
    if moments is not None:
        varies = np.einsum("gnn->gn", moments.spread(True))
        if varies.shape[1] == count and channels % len(varies) == 0 and np.isfinite(varies).all():
            return np.repeat(varies, channels // len(varies), axis=0).astype(np.float32)
    return np.ones((1, count), np.float32)
