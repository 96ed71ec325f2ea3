"""Which axis of an output holds channels, and which channels belong together.

The error of a whole tensor hides what happens in channels of small range: a detector whose scores are all zero still
reads 24 to 32 dB, since boxes in pixels outweigh them. So channels are judged in groups of one kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vitrify.core.words import counted
from vitrify.verify.metrics import ChannelSums

Array = np.ndarray[Any, np.dtype[Any]]

MOST_CHANNELS = 8192
GAP = 16.0
"""Channels whose ranges differ by more than this do not belong together: an int8 scale leaves the smaller 16 levels."""


class Group(NamedTuple):
    """Channels of one kind: their indices, a name, whether they are scores in 0..1."""

    channels: Array
    name: str
    is_score: bool
    reach: float


def channel_axis(reference: Array) -> int | None:
    """Return the axis along which ranges differ most, None when there is but one channel.

    In a detector's [1,84,8400] the 84 rows differ (pixels, scores) and the 8400 anchors are alike; in a map NHWC or
    NCHW the pixels are alike. An extent of 1 beside larger ones is taken for the single channel: [1,1,320,320].
    """
    if reference.ndim > 2 and 1 in reference.shape[1:]:
        return None
    best, most = None, 0.0
    magnitude = np.abs(np.asarray(reference, np.float64))
    for axis in range(1, reference.ndim):
        if not 1 < reference.shape[axis] <= MOST_CHANNELS:
            continue
        others = tuple(a for a in range(reference.ndim) if a != axis)
        reach = magnitude.max(axis=others) if others else magnitude
        largest = float(reach.max())
        if not np.isfinite(largest) or largest == 0.0:
            continue
        spread = float(np.std(np.log2(np.maximum(reach / largest, 2.0 ** -20)))) + 1e-9
        if spread > most:
            best, most = axis, spread
    return best


def groups(sums: ChannelSums) -> list[Group]:
    """Sort the channels into kinds by gaps between their ranges.

    Channels that stay in 0..1 count as scores, which share the range 1 however little was found in these samples.
    """
    low, high = sums.ranges["reference_low"], sums.ranges["reference_high"]
    reach = np.maximum(np.abs(low), np.abs(high))
    is_score = (low >= 0.0) & (high <= 1.0)
    kind = np.where(is_score, 1.0, reach)
    order = np.argsort(-kind, kind="stable")
    breaks = np.flatnonzero(kind[order[:-1]] > GAP * kind[order[1:]]) + 1
    return [_group(np.sort(part), reach, bool(is_score[part].all())) for part in np.split(order, breaks)]


def dead(sums: ChannelSums, group: Group) -> Array:
    """Return the channels that vary in the reference but are constant in the candidate.

    Channels that hardly move beside others of their group may well vanish: scores of what is not in the picture.
    """
    ranges = sums.ranges
    moves = (ranges["reference_high"] - ranges["reference_low"])[group.channels]
    constant = (ranges["candidate_high"] == ranges["candidate_low"])[group.channels]
    lost: Array = group.channels[constant & (moves > group.reach / GAP) & (sums.sums["count"][group.channels] > 1)]
    return lost


def _group(channels: Array, reach: Array, is_score: bool) -> Group:
    largest = float(reach[channels].max())
    kind = "in 0..1" if is_score else f"up to {largest:.3g}"
    return Group(channels, f"channels {spell(channels)} ({kind})", is_score, largest)


def spell(indices: Array) -> str:
    """Write indices briefly: ``0-3, 7``; long lists are cut."""
    runs = np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs if len(run)]
    return ", ".join(texts[:4]) + (f" and {counted(len(texts) - 4, 'more run')}" if len(texts) > 4 else "")
