"""Sums and products with one constant that cost no rounding: the same integers under another zero point or scale.

``x + c`` with the scale of x, and c a whole number of its steps, is x with its zero point moved. The rest of c, at most
half a step, goes into the biases of the convolutions that read the sum. ``x * c`` is x under the scale times c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Quantization, Tensor
from vitrify.ops import Add, Conv2D, DepthwiseConv2D, FullyConnected, Mul, Pad, Sub
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.groups import Group, Groups
from vitrify.quant.rules import roles
from vitrify.quant.scales import INT8_HIGH, INT8_LOW, LEVELS, SMALLEST_WIDTH, covered

Array = np.ndarray[Any, np.dtype[Any]]

WIDER = 1.2
"""Up to this factor a step may grow for saving the second rounding, which costs as much as a step 1.4 times as wide."""


@dataclass
class Scalars:
    """What aligned scalars need besides their groups' scales: by node and position the constant's quantization, and
    the values that the inputs of nodes with weights are short of."""

    constants: dict[tuple[Node, int], Quantization] = field(default_factory=dict)
    missing: dict[Node, float] = field(default_factory=dict)


def align_scalars(graph: Graph, groups: Groups) -> Scalars:
    """Settle the scales on both sides of sums and products with a positive constant where that loses little."""
    made = Scalars()
    settled: set[Group] = set()
    for node in graph.nodes_of(Add, Sub, Mul):
        index = _scalar(node)
        if index is None:
            continue
        before, after = groups.get(node.input(1 - index)), groups.get(node.output)
        if before is None or after is None or before is after or after.fixed is not None \
                or before.wide or after.wide:
            continue
        if before.fixed is not None and before not in settled:
            continue
        value = _value(node, index)
        done = _scale(before, after, value) if isinstance(node.op, Mul) else \
            _move(before, after, node, index, value, made)
        if done:
            settled |= {before, after}
    return made


def _scalar(node: Node) -> int | None:
    """The position of a node's constant of one value, None when it has none that can be aligned."""
    if len(node.inputs) != 2 or roles(node) is None:
        return None
    for index in (1,) if isinstance(node.op, Sub) else (1, 0):
        data, other = node.input(index).data, node.input(1 - index)
        if data is not None and data.size == 1 and not other.is_constant and other.shape == node.output.shape:
            return index if np.isfinite(data).all() else None
    return None


def _value(node: Node, index: int) -> float:
    data = node.input(index).data
    assert data is not None
    value = float(data.reshape(-1)[0])
    return -value if isinstance(node.op, Sub) else value


def _scale(before: Group, after: Group, value: float) -> bool:
    """Give a product the scale of its input times the constant."""
    if value <= 0:
        return False
    wanted = before.range.with_zero().join(_times(after.range.with_zero(), 1 / value))
    if before.fixed is None:
        if not _fits(wanted, before, after, value):
            return False
        before.range = wanted
        before.fixed = before.quantization
    if not _holds(before.fixed, wanted):
        return False
    after.fixed = Quantization.per_tensor(float(before.fixed.scale[0]) * value, int(before.fixed.zero_point[0]))
    return True


def _fits(wanted: Range, before: Group, after: Group, value: float) -> bool:
    own, later = before.range.with_zero().width, after.range.with_zero().width / value
    return wanted.width * min(1.0, value) > SMALLEST_WIDTH and wanted.width <= WIDER * min(own, later)


def _times(found: Range, factor: float) -> Range:
    return Range(found.low * factor, found.high * factor)


def _holds(quantization: Quantization, wanted: Range) -> bool:
    """True when a quantization covers a range but for a hundredth of it."""
    limits = covered(quantization)
    return max(limits.low - wanted.low, wanted.high - limits.high) <= wanted.width / 100


def _move(before: Group, after: Group, node: Node, index: int, value: float, made: Scalars) -> bool:
    """Give a sum the scale of its input, and a zero point as many steps away as the constant has."""
    own, later = before.range.with_zero(), after.range.with_zero()
    wanted = own.join(Range(later.low - value, later.high - value))
    if before.fixed is None:
        if not SMALLEST_WIDTH < wanted.width <= WIDER * min(own.width, later.width):
            return False
        scale = wanted.width / (LEVELS - 1)
    else:
        scale = float(before.fixed.scale[0])
    takers = _takers(node.output)
    if takers is None:
        if before.fixed is not None or abs(value) < scale:
            return False
        exact = abs(value) / int(abs(value) / scale)
        if exact > WIDER * scale:
            return False
        scale = exact
    scale = float(np.float32(scale))
    steps = round(value / scale)
    first = Quantization.per_tensor(scale, min(max(round(INT8_LOW - wanted.low / scale), INT8_LOW), INT8_HIGH))
    first = before.fixed or first
    moved = int(first.zero_point[0]) - steps
    if not (INT8_LOW <= moved <= INT8_HIGH and -INT8_HIGH <= steps <= INT8_HIGH and _holds(first, wanted)):
        return False
    before.fixed, after.fixed = first, Quantization.per_tensor(scale, moved)
    made.constants[node, index] = Quantization.per_tensor(scale, 0)
    for taker in takers or ():
        made.missing[taker] = made.missing.get(taker, 0.0) + value - steps * scale
    return True


def _takers(tensor: Tensor) -> list[Node] | None:
    """The nodes with weights and a bias that read a tensor; None when anything else does."""
    found: list[Node] = []
    if tensor.is_output:
        return None
    for user in tensor.users:
        if isinstance(user.op, Pad):
            inner = _takers(user.output)
            if inner is None:
                return None
            found += inner
        elif _takes(user, tensor):
            found.append(user)
        else:
            return None
    return list(dict.fromkeys(found))


def _takes(user: Node, tensor: Tensor) -> bool:
    if not isinstance(user.op, Conv2D | DepthwiseConv2D | FullyConnected) or user.inputs[0] is not tensor:
        return False
    found = roles(user)
    return found is not None and found.weight is not None and found.bias is not None and \
        user.input(found.bias).is_constant


def bias_for(node: Node, weights: Array, missing: Mapping[Node, float]) -> Array | None:
    """What the bias of a node must add for the constant that its input is short of."""
    value = missing.get(node)
    if not value:
        return None
    axes = (0, 1, 2) if isinstance(node.op, DepthwiseConv2D) else tuple(range(1, weights.ndim))
    added: Array = weights.astype(np.float64).sum(axis=axes) * value
    return added.astype(np.float32)
