"""Layers whose inputs vary little beside their range: 8 bits would round what they look for away.

A depthwise layer takes differences between neighbours. Where its channels lie at offsets that differ by far more than
each of them varies, as behind learned offsets and hard-swish, one scale must hold the offsets, and the differences are
a step or less of it. How much the output varies is known from the moments of the inputs, how much rounding adds from
the weights; where the one is not far above the other, the layer, what makes its input and what follows up to the next
products computes in 16 bits. Measured on the pretrained PP-OCRv4 reader, whose first depthwise layer keeps 14 dB and
half of whose channels keep less than 12, while MobileNets keep 28 and more: 160 of 200 words are read as in float with
it, 121 without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Node, Operator, Tensor
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.rules import is_real, roles, takes_sixteen
from vitrify.quant.scales import LEVELS

Array = np.ndarray[Any, np.dtype[Any]]

LEAST_DB = 20.0
"""A layer that keeps less than this beside the rounding of its input is faint."""

MOST_MACS = 0.1
"""Share of a model's multiplications that this may put into 16 bits; the faintest layers come first."""

WEIGHTED: tuple[type[Operator], ...] = (ops.Conv2D, ops.DepthwiseConv2D, ops.FullyConnected, ops.TransposeConv)


def faint_layers(graph: Graph, statistics: Statistics, ranges: Mapping[Tensor, Range]) -> set[Node]:
    """The nodes that compute in 16 bits for the sake of faint layers."""
    known = kept_least(graph, statistics, ranges)
    room = MOST_MACS * sum(node.op.macs(node) for node in graph)
    found: set[Node] = set()
    for _, layer in sorted(known, key=lambda pair: pair[0]):
        more = around_layers([layer])
        cost = sum(node.op.macs(node) for node in found | more)
        if cost <= room:
            found |= more
    return found


def kept_least(graph: Graph, statistics: Statistics, ranges: Mapping[Tensor, Range]) -> list[tuple[float, Node]]:
    """The faint layers, and what each keeps in dB."""
    return [(db, node) for node in graph.nodes_of(*WEIGHTED)
            if takes_sixteen(node) and (db := kept_db(node, statistics, ranges)) is not None and db < LEAST_DB]


def around_layers(layers: Iterable[Node]) -> set[Node]:
    """Layers with what makes their inputs, and what follows them up to the next products."""
    return {node for layer in layers for node in (layer, *_reached(layer, _makers), *_reached(layer, _followers))}


def kept_db(layer: Node, statistics: Statistics, ranges: Mapping[Tensor, Range]) -> float | None:
    """The SQNR of a layer's output beside the rounding of its input to 8 bits; None where it is not known."""
    role, moments = roles(layer), statistics.moments.get(layer.name)
    if role is None or role.weight is None or moments is None or layer.input(0) not in ranges:
        return None
    weights = layer.input(role.weight).data
    if weights is None:
        return None
    spread = moments.spread(centered=True)
    rows = _rows(layer, weights.astype(np.float64), len(spread))
    if rows is None or spread.shape[1:] != (rows.shape[2], rows.shape[2]):
        return None
    varies = np.einsum("goi,goi->", np.matmul(rows, spread), rows)
    step = ranges[layer.input(0)].with_zero().width / (LEVELS - 1)
    noise = step ** 2 / 12 * float(np.square(rows).sum())
    return float(10 * np.log10(varies / noise)) if varies > 0 and noise > 0 else None


def _rows(layer: Node, weights: Array, groups: int) -> Array | None:
    """Weights as [groups, outputs, inputs], as moments are held."""
    if isinstance(layer.op, ops.DepthwiseConv2D):
        return weights.reshape(-1, weights.shape[-1]).T[:, None, :] if weights.shape[-1] == groups else None
    return weights.reshape(groups, weights.shape[0] // groups, -1) if weights.shape[0] % groups == 0 else None


def _reached(layer: Node, step: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """All nodes on the way to the next products, those before the layer with them."""
    waiting, seen = list(step(layer)), set[Node]()
    while waiting:
        node = waiting.pop()
        if node in seen or not takes_sixteen(node):
            continue
        seen.add(node)
        yield node
        if not isinstance(node.op, WEIGHTED):
            waiting += step(node)


def _makers(node: Node) -> list[Node]:
    return [t.producer for t in node.inputs if t is not None and is_real(t) and t.producer is not None]


def _followers(node: Node) -> list[Node]:
    return [user for t in node.outputs for user in t.users if not isinstance(user.op, (*WEIGHTED, ops.BatchMatMul))]
