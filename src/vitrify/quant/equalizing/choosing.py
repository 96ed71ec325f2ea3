"""Choosing the numbers by which channels are scaled: those that lose least to rounding, by a model of the errors.

A tensor's step is set by its widest channel. Scaling all channels to one width gives each the same levels, but makes
the weights that read them uneven; how far to go is found for each set of connected channels from the error that the
layers reading them would have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Conv2D, DepthwiseConv2D, FullyConnected
from vitrify.quant.equalizing.channels import Channels, absorbs

Array = np.ndarray[Any, np.dtype[Any]]

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far channels are brought to one width: not at all, up to altogether."""

LEAST = 1 / 64
"""A channel is widened this much at most: what was hardly seen may yet come."""

WORTH = 0.95
"""Share of the error that must be left at most; else channels stay as they are."""

LEVELS, WEIGHT_LEVELS = 255.0, 127.0


@dataclass
class Seen:
    """What was seen of a tensor's channels: smallest and largest value, and the mean square."""

    low: Array
    high: Array
    power: Array
    count: int = 1

    @classmethod
    def of(cls, values: Array) -> Seen:
        """Look at one sample's values, at evenly spread positions of a large map."""
        rows = values.reshape(-1, values.shape[-1])
        rows = rows[::max(1, rows.size // (1 << 18))]
        return cls(rows.min(axis=0), rows.max(axis=0), np.einsum("nc,nc->c", rows, rows) / len(rows))

    def join(self, other: Seen) -> Seen:
        """What was seen in both."""
        count = self.count + other.count
        power = (self.power * self.count + other.power * other.count) / count
        return Seen(np.minimum(self.low, other.low), np.maximum(self.high, other.high), power, count)

    @property
    def width(self) -> Array:
        """The width of each channel's values and zero."""
        width: Array = np.maximum(self.high, 0).astype(np.float64) - np.minimum(self.low, 0)
        return width


@dataclass
class _Set:
    """Connected channels: the tensors that hold them and the layers that read those."""

    tensors: list[Tensor] = field(default_factory=list)
    readers: list[tuple[Node, Tensor]] = field(default_factory=list)


def choose_scales(graph: Graph, channels: Channels, seen: dict[Tensor, Seen]) -> dict[Tensor, Array]:
    """Return by what each tensor's channels are to be divided; tensors that stay as they are are left out."""
    sets = _sets(graph, channels, seen)
    chosen = np.ones(len(channels.free))
    for one in sets:
        width = _relative_widths(one, channels, seen)
        ids = np.unique(np.concatenate([channels.of(t) for t in one.tensors]))
        ids = ids[channels.free[ids]]
        best, least = np.ones(len(chosen)), np.inf
        for power in POWERS:
            tried = np.ones(len(chosen))
            tried[ids] = np.maximum(width[ids], LEAST) ** power
            error = _error(one, channels, seen, tried)
            if error < least * (WORTH if power and least < np.inf and (best == 1).all() else 1):
                best, least = tried, error
        chosen[ids] = best[ids]
    made = {t: chosen[channels.of(t)] for t in channels.tensors() if t in seen}
    return {t: s.astype(np.float32) for t, s in made.items() if (s != 1).any()}


def won_db(graph: Graph, channels: Channels, seen: dict[Tensor, Seen], scales: dict[Tensor, Array]) -> float:
    """How much less rounding costs the layers that read scaled channels, by the same model of the errors, in dB."""
    before = after = 0.0
    given = np.ones(len(channels.free))
    for tensor, own in scales.items():
        given[channels.of(tensor)] = own
    for one in _sets(graph, channels, seen):
        if any(tensor in scales for tensor in one.tensors):
            before += _error(one, channels, seen, np.ones(len(given)))
            after += _error(one, channels, seen, given)
    return float(10 * np.log10(before / after)) if before > 0 and after > 0 else 0.0


def _sets(graph: Graph, channels: Channels, seen: dict[Tensor, Seen]) -> list[_Set]:
    """Sort tensors into sets that share channels that may be scaled."""
    owner: dict[int, int] = {}
    sets: dict[int, _Set] = {}
    for number, tensor in enumerate(t for t in channels.tensors() if t in seen):
        free = channels.of(tensor)[channels.free[channels.of(tensor)]]
        met = {owner[int(k)] for k in free if int(k) in owner}
        whole = _Set()
        for key in sorted(met):
            old = sets.pop(key)
            whole.tensors += old.tensors
        whole.tensors.append(tensor)
        sets[number] = whole
        for other in whole.tensors if met else [tensor]:
            owner.update(dict.fromkeys(map(int, channels.of(other)), number))
    for whole in sets.values():
        whole.readers = [(n, t) for t in whole.tensors for n in dict.fromkeys(t.users) if n.inputs[0] is t
                         and isinstance(n.op, Conv2D | DepthwiseConv2D | FullyConnected) and absorbs(n)]
    return [s for s in sets.values() if s.readers]


def _relative_widths(one: _Set, channels: Channels, seen: dict[Tensor, Seen]) -> Array:
    """How wide each class of channels is beside the widest of its tensors."""
    width = np.zeros(len(channels.free))
    for tensor in one.tensors:
        own = seen[tensor].width
        np.maximum.at(width, channels.of(tensor), own / max(float(own.max()), 1e-30))
    return width


def _error(one: _Set, channels: Channels, seen: dict[Tensor, Seen], scales: Array) -> float:
    """The error that rounding activations and weights brings to the layers that read the set, beside their outputs."""
    weight = np.zeros(len(scales))
    error = 0.0
    for node, tensor in one.readers:
        ids, own = channels.of(tensor), scales[channels.of(tensor)]
        gain, coarse = _gains(node, own)
        output = float((gain * seen[tensor].power).sum()) + 1e-30
        np.add.at(weight, ids, gain / output)
        error += float((coarse * seen[tensor].power / own ** 2).sum()) / output
    for tensor in one.tensors:
        ids, own = channels.of(tensor), scales[channels.of(tensor)]
        step = float((seen[tensor].width / own).max()) / LEVELS
        error += step ** 2 / 12 * float((own ** 2 * weight[ids]).sum())
    return error


def _gains(node: Node, scales: Array) -> tuple[Array, Array]:
    """For each input channel: the sum of its weights' squares, and of the squared errors of their rounding, scaled."""
    data = node.input(1).data
    assert data is not None
    if isinstance(node.op, DepthwiseConv2D):
        taps = np.square(data.reshape(-1, len(scales), data.shape[-1] // len(scales)), dtype=np.float64)
        step = np.abs(data).max(axis=(0, 1, 2)).reshape(len(scales), -1) * scales[:, None] / WEIGHT_LEVELS
        return taps.sum(axis=(0, 2)), (step ** 2).sum(axis=1) / 12 * taps.shape[0]
    share = data.shape[-1]
    groups = len(scales) // share
    rows = np.abs(data.reshape(groups, data.shape[0] // groups, -1, share).astype(np.float64))
    largest = rows.max(axis=2) * scales.reshape(groups, 1, share)                      # [g, o, share]
    step = largest.max(axis=2) / WEIGHT_LEVELS
    gain = np.square(rows).sum(axis=(1, 2)).reshape(-1)
    coarse = np.repeat((step ** 2).sum(axis=1) / 12 * rows.shape[2], share)
    return gain, coarse
