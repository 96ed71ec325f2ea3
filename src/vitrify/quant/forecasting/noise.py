"""How much noise rounding brings to the outputs, from what a float run and calibration saw: nothing is quantized here.

Each tensor's rounding is noise of a twelfth of its step's square. It goes through the operators after it channel by
channel: a layer adds up its inputs' noise by the squares of its weights, a product takes each side's noise times the
other's power. So a channel that is small beside the others of its tensor loses all it has to the step that these need,
and carries that on to where a layer makes it as large as they are. Of the two rows of noise the first is random from
place to place, which means take away; the second, of rounded weights and of channels rounded to 0, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.equalizing.choosing import Seen
from vitrify.quant.rules import is_real, keeps_values

Array = np.ndarray[Any, np.dtype[Any]]
Noises = Callable[[Tensor], Array]

STEPS = {8: 2.0 ** 8 - 1, 16: 2.0 ** 16 - 2}
WEIGHT_STEPS = 127.0

LOST = 0.3
"""A channel to whose power rounding adds this share is mostly rounded to one value."""

SAME = np.array([[0.9], [0.1]])
"""How much of the noise of rounded weights is the same at each place, once biases make up for its mean."""

MOST = 2.0
"""The noise of a channel of which nothing is left, by its power: what stands there has as much, and is another."""


class Forecast:
    """The noise of a float graph's tensors by channel (last axis).

    seen: of each tensor the channels' range and mean square.
    ranges: what each tensor's scale will cover.
    wide: the nodes that compute with 16-bit activations.
    lost: the noise that cutting a tensor to its range brings, by its mean square.
    scales: by what the channels of tensors are divided.
    """

    def __init__(self, graph: Graph, seen: Mapping[Tensor, Seen], ranges: Mapping[Tensor, Range],
                 wide: Set[Node] = frozenset(), lost: Mapping[Tensor, float] | None = None,
                 scales: Mapping[Tensor, Array] | None = None) -> None:
        self._graph, self._seen, self._ranges, self._wide = graph, seen, ranges, wide
        self._lost, self._scales = lost or {}, scales or {}
        self._passed: dict[Tensor, Array] = {}
        for node in graph:
            for tensor in node.outputs:
                if tensor in seen:
                    self._passed[tensor] = self._made(node, tensor)

    def decibels(self) -> float:
        """What the worst output keeps of its variation beside the noise, in dB."""
        found = [self._output(t) for t in self._graph.outputs if t in self._seen and t in self._passed]
        return min(found, default=float("inf"))

    def channels(self, tensor: Tensor) -> Array:
        """The share of each channel's power that its tensor's rounding alone takes."""
        shares: Array = self._rounding(tensor, 8).sum(axis=0) / np.maximum(self._seen[tensor].power, 1e-30)
        return shares

    def _output(self, tensor: Tensor) -> float:
        noise = self._passed[tensor] + self._rounding(tensor, 8)
        return float(10 * np.log10(max(self._seen[tensor].power.sum(), 1e-30) / max(noise.sum(), 1e-30)))

    def _rounding(self, tensor: Tensor, bits: int) -> Array:
        """What holding a tensor in so many bits adds to each channel."""
        own = self._scales.get(tensor)
        power = self._seen[tensor].power
        width = self._ranges[tensor].with_zero().width if tensor in self._ranges else float(
            self._seen[tensor].width.max())
        if own is not None:
            channels = self._seen[tensor].width
            width *= float((channels / own).max() / max(channels.max(), 1e-30))
        within = power if own is None else power / np.square(own, dtype=np.float64)
        noise = np.minimum((width / STEPS[bits]) ** 2 / 12, within)         # what rounds to 0 is lost, and no more
        if bits == 8 and tensor in self._lost:
            noise = noise + self._lost[tensor] * power / max(float(power.mean()), 1e-30)
        rows = np.where(noise < LOST * within, [[1.0], [0.0]], [[0.0], [1.0]]) * noise
        return rows if own is None else rows * np.square(own, dtype=np.float64)

    def _at(self, node: Node, tensor: Tensor) -> Array:
        """The noise of a tensor as a node reads it."""
        maker = tensor.producer
        both = node in self._wide and maker in self._wide
        passed = self._passed.get(tensor)
        fresh = self._rounding(tensor, 16 if both else 8)
        if maker is not None and keeps_values(maker) and passed is not None:
            return passed                           # what only moves values rounds nothing anew
        return fresh if passed is None else passed + fresh

    def _made(self, node: Node, output: Tensor) -> Array:
        """What a node makes of its inputs' noise, and what rounding its weights adds."""
        def noise(tensor: Tensor) -> Array:
            return self._at(node, tensor)

        taken = [t for t in node.inputs if t is not None and is_real(t) and t in self._seen]
        if not taken:
            return np.zeros((2, len(self._seen[output].power)))
        size = len(self._seen[output].power)
        rule = RULES.get(type(node.op))
        found = rule(node, noise, self._seen) if rule is not None else None
        if found is None:
            found = _kept_share(taken, noise, self._seen, output)
        whole = found if found.shape[1] == size else np.repeat(found.mean(axis=1, keepdims=True), size, axis=1)
        most = MOST * self._seen[output].power
        return np.asarray(whole * np.minimum(1, most / np.maximum(whole.sum(axis=0), 1e-300)))


Rule = Callable[[Node, Noises, Mapping[Tensor, Seen]], Array | None]
RULES: dict[type, Rule] = {}


def _rule(*kinds: type) -> Callable[[Rule], Rule]:
    """Register what operators make of the noise of their inputs; None where nothing special is known."""
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function
    return register


def _kept_share(taken: list[Tensor], noise: Noises, seen: Mapping[Tensor, Seen], output: Tensor) -> Array:
    """Let the noise be as large a share of the output as it is of the inputs."""
    share = sum(noise(t).sum(axis=1) for t in taken) / max(sum(float(seen[t].power.sum()) for t in taken), 1e-30)
    return np.outer(share, seen[output].power)


@_rule(ops.Conv2D, ops.FullyConnected, ops.DepthwiseConv2D)
def _layer(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array | None:
    weights, x = node.input(1).data, node.input(0)
    if weights is None or x not in seen:
        return None
    own, power = noise(x), seen[x].power
    squares = np.square(weights.astype(np.float64))
    if isinstance(node.op, ops.DepthwiseConv2D):
        repeats = weights.shape[-1] // len(power)
        taps = squares.reshape(-1, weights.shape[-1])
        coarse = taps.max(axis=0) / WEIGHT_STEPS ** 2 / 12 * len(taps)
        return np.asarray(taps.sum(axis=0) * np.repeat(own, repeats, axis=1) +
                          SAME * coarse * np.repeat(power, repeats))
    share, count = weights.shape[-1], weights.shape[0]
    groups = len(power) // share
    if not groups or count % groups or groups * share != len(power):
        return None
    rows = squares.reshape(groups, count // groups, -1, share)
    coarse = rows.max(axis=(2, 3)) / WEIGHT_STEPS ** 2 / 12 * rows.shape[2]                   # [groups, outputs]
    passed = np.einsum("gots,kgs->kgo", rows, own.reshape(2, groups, share)).reshape(2, -1)
    return np.asarray(passed + SAME * (coarse * power.reshape(groups, share).sum(axis=1)[:, None]).reshape(-1))


@_rule(ops.Mul)
def _product(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array | None:
    one, other = node.input(0), node.input(1)
    if one in seen and other in seen:
        return np.asarray(noise(one) * seen[other].power + noise(other) * seen[one].power)
    x, constant = (one, other) if one in seen else (other, one)
    if constant.data is None:
        return None
    factor = np.square(constant.data.astype(np.float64))
    last = factor.reshape(-1, factor.shape[-1]).mean(axis=0) if factor.ndim else factor.reshape(1)
    return np.asarray(noise(x) * last)


@_rule(ops.Add, ops.Sub)
def _sum(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array:
    parts = [noise(t) for t in (node.input(0), node.input(1)) if t in seen]
    return np.asarray(sum(parts[1:], parts[0]))


@_rule(ops.Logistic)
def _logistic(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array:
    return np.asarray(noise(node.input(0)) / (16 + 2 * seen[node.input(0)].power))      # a flat curve passes little on


@_rule(ops.Tanh)
def _tanh(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array:
    return np.asarray(noise(node.input(0)) / (1 + seen[node.input(0)].power))


@_rule(ops.Relu, ops.Relu6, ops.HardSwish, ops.Gelu, ops.Reshape, ops.Pad, ops.MaxPool2D, ops.Quantize)
def _same(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array:
    return noise(node.input(0))


@_rule(ops.Mean, ops.AveragePool2D)
def _mean(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array:
    own = noise(node.input(0))
    count = max(1.0, node.input(0).size / max(node.output.size, 1))
    if isinstance(node.op, ops.AveragePool2D):
        count = float(node.op.filter_height * node.op.filter_width)
    return np.asarray(own / np.array([[count], [1.0]]))


@_rule(ops.Concatenation)
def _joined(node: Node, noise: Noises, seen: Mapping[Tensor, Seen]) -> Array | None:
    assert isinstance(node.op, ops.Concatenation)
    if node.op.axis not in (-1, len(node.output.shape) - 1) or not all(t in seen for t in node.inputs):
        return None
    return np.concatenate([noise(t) for t in node.inputs if t is not None], axis=1)
