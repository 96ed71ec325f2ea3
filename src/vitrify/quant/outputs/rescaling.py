"""Parts of joins are brought nearer to each other's range, and the layers that read the join take the factor back.

    Before:  %j = CONCATENATION(%small, %large);             %y = CONV_2D(%j, w)
    After:   %j = CONCATENATION(MUL(%small, 8), %large);     %y = CONV_2D(%j, w with the channels of %small / 8)

Exact in float: the factors are powers of two. In int8 the join has one scale, of which a small part has few levels; the
MUL computes what a requantization would. A layer with a linear end takes its factor into its own weights instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from vitrify.ir import DType, Graph, Ledger, LedgerEntry, Node, Tensor
from vitrify.ops import Activation, Concatenation, Conv2D, FullyConnected, Mul
from vitrify.quant.calibration.statistics import Histogram, Range, Statistics, TensorStatistics
from vitrify.quant.outputs.joins import whole_range
from vitrify.quant.rules import is_real
from vitrify.quant.scales import levels_left

Array = np.ndarray[Any, np.dtype[Any]]
PASS = "rescale-joins"


def rescale_joins(graph: Graph, statistics: Statistics, ranges: Mapping[Tensor, Range], levels: int,
                  ledger: Ledger) -> tuple[Statistics, list[Tensor]]:
    """Scale the parts of joins that have fewer than ``levels``.

    Returns:
        The statistics of what came of it, and the parts.
    """
    made = copy(statistics)
    made.tensors, made.moments = dict(statistics.tensors), dict(statistics.moments)
    done: list[Tensor] = []
    before = len(graph)
    for node in graph.nodes_of(Concatenation):
        readers = _readers(node)
        parts = [node.input(i) for i in range(len(node.inputs))]
        if readers and all(p in ranges and not p.is_constant for p in parts):
            done += _rescale(graph, node, readers, [ranges[p] for p in parts], made, levels)
    if done:
        ledger.add(LedgerEntry(name=PASS, summary="small parts of joins scaled up, and down in the layers behind",
                               changes=len(done), nodes_before=before, nodes_after=len(graph)))
    return made, done


def _readers(node: Node) -> list[Node]:
    """The layers that read a join along the channels; none where something else does, or the join is given out."""
    rank, users = len(node.output.shape), list(node.output.users)
    if node.output.is_output or not isinstance(node.op, Concatenation) or node.op.axis % rank != rank - 1:
        return []
    channels = node.output.shape[-1]
    fit = all(isinstance(u.op, Conv2D | FullyConnected) and u.inputs[0] is node.output and u.input(1).is_constant
              and is_real(u.input(1)) and u.input(1).shape[-1] == channels for u in users)
    return users if fit else []


def _rescale(graph: Graph, node: Node, readers: list[Node], ranges: list[Range], statistics: Statistics,
             levels: int) -> list[Tensor]:
    """Scale the poor parts of one join; returns them."""
    whole = whole_range(ranges)
    factors = np.ones(node.output.shape[-1], np.float32)
    inputs: list[Tensor | None] = list(node.inputs)
    done: list[Tensor] = []
    at = 0
    for index, own in enumerate(ranges):
        part = node.input(index)
        stop = at + part.shape[-1]
        if 0 < levels_left(own.with_zero(), whole) < levels:
            factor = _factor(own, whole, readers, at, stop)
            if factor > 1:
                factors[at:stop] = factor
                inputs[index] = _scaled(graph, node, part, factor, statistics)
                done.append(part)
        at = stop
    if done:
        graph.replace_node(node, node.op, inputs)
        for reader in readers:
            _take_back(graph, reader, factors, statistics)
    return done


def _factor(own: Range, whole: Range, readers: list[Node], start: int, stop: int) -> int:
    """A power of two between what the part lacks in levels and what its weights have more of than others."""
    lack = max(abs(whole.low), abs(whole.high)) / max(abs(own.low), abs(own.high), 1e-30)
    more = []
    for reader in readers:
        weights = np.abs(np.asarray(reader.input(1).data, np.float32))
        weights = weights.reshape(-1, weights.shape[-1]).max(axis=0)
        rest = np.delete(weights, np.s_[start:stop])
        more.append(float(weights[start:stop].max()) / max(float(rest.max(initial=0.0)), 1e-30))
    share = math.sqrt(lack * min(max(min(more), 1.0), lack))
    return int(2 ** math.floor(math.log2(max(share, 1.0))))


def _scaled(graph: Graph, join: Node, part: Tensor, factor: int, statistics: Statistics) -> Tensor:
    """Multiply a part: in the layer that makes it for the join alone, else by an operator of its own."""
    seen = statistics.tensors.get(part.name)
    maker = part.producer
    if maker is not None and isinstance(maker.op, Conv2D | FullyConnected) and list(part.users) == [join] and \
            maker.op.fused_activation_function in (Activation.NONE, Activation.RELU) and maker.input(1).is_constant \
            and not part.is_output and (maker.optional(2) is None or maker.input(2).is_constant):
        for index in range(1, len(maker.inputs)):
            if maker.inputs[index] is not None:
                _replace(graph, maker, index, np.asarray(maker.input(index).data) * np.float32(factor))
        if seen is not None:
            statistics.tensors[part.name] = _times(seen, factor)
        return part
    constant = Tensor(f"{part.name}_factor", DType.FLOAT32, (), data=np.array(factor, np.float32))
    made = graph.add(Mul(), [part, constant], name=f"{part.name}_times_{factor}", origin=join.origin.by(PASS),
                     before=join).output
    made.origin = made.origin._replace(sources=())
    if seen is not None:
        statistics.tensors[made.name] = _times(seen, factor)
    return made


def _times(seen: TensorStatistics, factor: int) -> TensorStatistics:
    """What would have been seen of a tensor ``factor`` times as large."""
    made = TensorStatistics()
    made.low, made.high = seen.low * factor, seen.high * factor
    made.counted = seen.counted
    if seen.histogram is not None:
        made.histogram = Histogram(seen.histogram.top * factor, seen.histogram.counts)
    if seen.sums is not None:
        made.sums = seen.sums * factor
    return made


def _take_back(graph: Graph, reader: Node, factors: Array, statistics: Statistics) -> None:
    """Divide the weights of a layer that reads a join, and its inputs' moments."""
    weights = np.asarray(reader.input(1).data)
    _replace(graph, reader, 1, weights / factors)
    moments = statistics.moments.get(reader.name)
    if moments is None:
        return
    taps = moments.first.shape[-1] // len(factors)
    if moments.first.shape[-1] == taps * len(factors):
        every = np.tile(factors, taps).astype(np.float64)
        statistics.moments[reader.name] = moments.affine(every, np.zeros_like(every))


def _replace(graph: Graph, node: Node, index: int, data: Array) -> None:
    old = node.input(index)
    graph.set_input(node, index, Tensor(f"{old.name}_rescaled", DType.FLOAT32, old.shape, data=data.astype(np.float32)))
