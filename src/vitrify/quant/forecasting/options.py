"""What may be done about ranges that 8 bits do not span, ranked by what each is forecast to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from vitrify import ops
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import decibels
from vitrify.ir import Graph, Node, Tensor
from vitrify.quant.calibration.observe import keys
from vitrify.quant.calibration.statistics import Histogram, Range, Statistics
from vitrify.quant.equalizing.channels import Channels
from vitrify.quant.equalizing.choosing import Seen, choose_scales
from vitrify.quant.forecasting.noise import Forecast
from vitrify.quant.forms.faint import WEIGHTED, around_layers, faint_layers, kept_least
from vitrify.quant.forms.wide import wide_nodes
from vitrify.quant.planning import natural_ranges
from vitrify.quant.recipe import Override, Recipe, override_line
from vitrify.quant.rules import is_real, takes_sixteen

Array = np.ndarray[Any, np.dtype[Any]]

POOR_DB = 20.0
"""Where the outputs are forecast to keep less than this, it is told before they are quantized."""

UNEVEN_DB = 0.0
"""A channel that keeps less than this beside its tensor's rounding is lost; it counts where a layer reads it."""

MOST_MACS = 5_000_000_000
"""Multiplications of a model up to which it is run once more for a forecast."""

SHOWN = 6
"""Nodes that an option names."""

WORTH_DB = 3.0
"""An option is offered where it is forecast to keep this much more."""


@dataclass(frozen=True)
class Option:
    """One way to quantize: in words, the recipe that does it, what it keeps in dB, and the share of multiplications
    that it puts into 16 bits.
    """

    name: str
    recipe: Recipe
    line: str
    decibels: float
    wide: float = 0.0


def ranked(graph: Graph, seen: Mapping[Tensor, Seen], statistics: Statistics, recipe: Recipe) -> list[Option]:
    """Return the recipe as it is and what else may be done, what keeps most first; nothing is quantized for it.

    Args:
        graph: the float graph that the statistics were taken from.
        seen: the channels' range and mean square of its tensors, from a float run.
        statistics: what calibration saw.
        recipe: what is asked for.
    """
    macs = max(sum(node.op.macs(node) for node in graph), 1)

    def option(name: str, changed: Recipe, line: str, wide: set[Node], scales: Mapping[Tensor, Array]) -> Option:
        ranges = natural_ranges(graph, statistics, changed, wide)
        found = Forecast(graph, seen, ranges, wide, _lost(graph, statistics, ranges), scales).decibels()
        return Option(name, changed, line, found, sum(node.op.macs(node) for node in wide) / macs)

    def finer(name: str, nodes: set[Node]) -> Option:
        names = tuple(node.name for node in graph if node in nodes)
        rule = Override(nodes=names, activations="int16")
        line = override_line(nodes=names, activations="int16") if len(names) <= SHOWN else \
            f"{len(names)} nodes; --target-quality finds those that matter"
        return option(name, msgspec.structs.replace(recipe, overrides=(*recipe.overrides, rule)), line, given | nodes,
                      {})

    given = _given(graph, statistics, recipe)
    found = [option("as the recipe says", recipe, "", given, {})]
    if recipe.calibrator != "percentile":
        found.append(option("cut tails", msgspec.structs.replace(recipe, calibrator="percentile"),
                            'calibrator = "percentile"', given, {}))
    if not recipe.equalize and (scales := choose_scales(graph, Channels(graph), dict(seen))):
        found.append(option("channels scaled against each other", msgspec.structs.replace(recipe, equalize=True),
                            "equalize = true", given, scales))
    if gates := set(_gates(graph)) - given:
        found.append(finer("gates in 16 bits", gates))
    if layers := uneven_layers(graph, seen, natural_ranges(graph, statistics, recipe)):
        found.append(finer("uneven layers in 16 bits", around_layers(layers)))
    if recipe.activations != "int16":
        whole = {node for node in graph if takes_sixteen(node)}
        found.append(option("everything in 16 bits", msgspec.structs.replace(recipe, activations="int16"),
                            'activations = "int16"', whole, {}))
    return sorted(found, key=lambda o: -o.decibels)


def is_asked(graph: Graph, statistics: Statistics, recipe: Recipe) -> bool:
    """True where calibration alone shows layers that 8 bits hardly serve, and the recipe leaves them there.

    What is forecast beyond that takes a run of the float model that gives out every tensor.
    """
    if statistics.scales or recipe.activations == "int16" or sum(n.op.macs(n) for n in graph) > MOST_MACS:
        return False
    faint = {node for _, node in kept_least(graph, statistics, natural_ranges(graph, statistics, recipe))}
    return bool(faint - _given(graph, statistics, recipe))


def _given(graph: Graph, statistics: Statistics, recipe: Recipe) -> set[Node]:
    """The nodes that compute in 16 bits in any case."""
    found = set(wide_nodes(graph, recipe, statistics))
    if recipe.faint == "int16":
        found |= faint_layers(graph, statistics, natural_ranges(graph, statistics, recipe))
    return found


def uneven_layers(graph: Graph, seen: Mapping[Tensor, Seen], ranges: Mapping[Tensor, Range]) -> list[Node]:
    """The layers that read a tensor some of whose channels its rounding would drown."""
    forecast = Forecast(graph, seen, ranges)
    worst = 10 ** (-UNEVEN_DB / 10)
    return [node for node in graph.nodes_of(*WEIGHTED) if takes_sixteen(node) and node.input(0) in seen
            and node.input(0) in ranges and (forecast.channels(node.input(0)) >= worst).any()]


def spread_finding(graph: Graph, seen: Mapping[Tensor, Seen], ranges: Mapping[Tensor, Range],
                   options: list[Option]) -> list[Finding]:
    """Warn where much is forecast to be lost, with what may be done about it and what that is forecast to keep."""
    asked = next(o for o in options if not o.line)
    better = [o for o in options if o.decibels >= asked.decibels + WORTH_DB]
    layers = uneven_layers(graph, seen, ranges)
    if asked.decibels >= POOR_DB or not better or not layers:
        return []
    worst = max(layers, key=lambda n: float(seen[n.input(0)].width.max() / _least(seen[n.input(0)].width)))
    width = seen[worst.input(0)].width
    told = "; ".join(f"{o.name} ({o.line}): {decibels(o.decibels)}, {o.wide:.0%} of the multiplications in 16 bits"
                     for o in better)
    return [Finding(
        code="quant.spread", severity=Severity.WARNING, where=f"node '{worst.name}', source {worst.origin}",
        headline=f"8 bits are forecast to keep {decibels(asked.decibels)} of the outputs: {len(layers)} layers read "
                 f"channels that drown in their tensor's step, '{worst.name}' some from {_least(width):.3g} to "
                 f"{float(width.max()):.3g} wide",
        why="one scale covers all channels of a tensor; this was forecast from the float model, before quantizing",
        help=f"forecast, best first: {told}; an architecture without such gates and tails (RELU6 or HARD_SWISH in the "
             "place of swish) needs none of it, after some training")]


def _least(width: Array) -> float:
    alive = width[width > 0]
    return float(alive.min()) if alive.size else 1.0


def _gates(graph: Graph) -> Iterator[Node]:
    """Products with what has one value for each channel, computed at run time, and what makes that value."""
    for node in graph.nodes_of(ops.Mul):
        for side in (0, 1):
            gate, other = node.input(side), node.input(1 - side)
            if gate.is_constant or other.is_constant or not is_real(gate) or gate.size * 4 > other.size:
                continue
            yield node
            maker = gate.producer
            while maker is not None and takes_sixteen(maker) and maker.output.size * 4 <= other.size:
                yield maker
                maker = maker.input(0).producer


def _lost(graph: Graph, statistics: Statistics, ranges: Mapping[Tensor, Range]) -> dict[Tensor, float]:
    """The mean square of what cutting tensors to their ranges takes away."""
    found = {}
    for tensor, name in keys(graph).items():
        histogram = statistics[name].histogram if name in statistics else None
        if tensor in ranges and histogram is not None and (lost := _cut(histogram, ranges[tensor])) > 0:
            found[tensor] = lost
    return found


def _cut(histogram: Histogram, kept: Range) -> float:
    values, total = histogram.centers, max(int(histogram.counts.sum()), 1)
    half = histogram.top / len(values)
    beyond = np.maximum(values - half - kept.high, 0) + np.maximum(kept.low - values - half, 0)
    return float((histogram.counts * beyond ** 2).sum() / total)
