"""What calibration looks at: which tensors, and how the values of a sample enter the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.quant.recipe import Recipe
from vitrify.quant.rules import fixed_output, is_real, keeps_values, roles
from vitrify.quant.statistics import Histogram, Statistics, TensorStatistics

Array = np.ndarray[Any, np.dtype[Any]]

HISTOGRAM_VALUES = 1 << 16
"""Values of a tensor that one sample adds to its histogram at most, evenly spread: enough for a tail of 0.01 %."""

LONGEST_AXIS = 1024
"""Axes of outputs up to this extent are watched index by index."""


@dataclass(frozen=True)
class Watch:
    """One tensor to observe: its name in the statistics, whether a histogram is kept, the axes kept index by index."""

    tensor: Tensor
    key: str
    histogram: bool
    axes: tuple[int, ...] = ()


def keys(graph: Graph) -> dict[Tensor, str]:
    """Name every tensor for the statistics: by its own name, numbered where that is taken."""
    taken: dict[str, int] = {}
    named: dict[Tensor, str] = {}
    for tensor in graph.tensors():
        count = taken[tensor.name] = taken.get(tensor.name, 0) + 1
        named[tensor] = tensor.name if count == 1 else f"{tensor.name}#{count}"
    return named


def watches(graph: Graph, recipe: Recipe) -> list[Watch]:
    """List the tensors whose range quantization needs, in order of the graph.

    Left out is what can be derived: constants, outputs of operators with a fixed scale, and of operators that only
    move or select values. Outputs and what they are joined from are always watched.
    """
    named = keys(graph)
    joined = set(_members_of_outputs(graph))
    chosen: list[Watch] = []
    for tensor in graph.tensors():
        if not is_real(tensor) or tensor.is_constant:
            continue
        wanted = tensor.is_output or tensor in joined
        if wanted or tensor.producer is None or _needs_range(tensor.producer):
            axes = tuple(a for a, n in enumerate(tensor.shape) if 1 < n <= LONGEST_AXIS) if tensor.is_output else ()
            chosen.append(Watch(tensor, named[tensor], recipe.needs_histograms, axes))
    return chosen


def _needs_range(node: Node) -> bool:
    return fixed_output(node) is None and not keeps_values(node)


def _members_of_outputs(graph: Graph) -> Iterable[Tensor]:
    """The inputs of joins that reach an output without another computation between."""
    waiting = [t for t in graph.outputs if is_real(t)]
    while waiting:
        node = waiting.pop().producer
        found = roles(node) if node is not None else None
        if node is None or found is None or not keeps_values(node):
            continue
        members = [node.input(i) for i in found.activations if not node.input(i).is_constant]
        yield from members
        waiting += members


def observe(statistics: Statistics, watched: Sequence[Watch], arrays: Sequence[Array], sample: int) -> None:
    """Take in the values of one sample: ``arrays`` holds those of ``watched`` in the same order."""
    for watch, array in zip(watched, arrays, strict=True):
        seen = statistics.tensors.setdefault(watch.key, TensorStatistics())
        low, high = float(array.min(initial=np.inf)), float(array.max(initial=-np.inf))
        if array.size and not (np.isfinite(low) and np.isfinite(high)):
            seen.nan_sample = sample if seen.nan_sample is None else seen.nan_sample
            continue
        seen.low, seen.high = min(seen.low, low), max(seen.high, high)
        for axis in watch.axes:
            _observe_axis(seen, array, axis)
        if watch.histogram and array.size:
            seen.histogram = seen.histogram or Histogram()
            seen.histogram.add(_thinned(array), max(-low, high))


def _observe_axis(seen: TensorStatistics, array: Array, axis: int) -> None:
    others = tuple(a for a in range(array.ndim) if a != axis)
    low, high = array.min(axis=others), array.max(axis=others)
    seen.axis_low[axis] = np.minimum(seen.axis_low.get(axis, low), low)
    seen.axis_high[axis] = np.maximum(seen.axis_high.get(axis, high), high)


def _thinned(array: Array) -> Array:
    """Every n-th value; n shares no factor with the channels, so that all of them are met."""
    flat = array.reshape(-1)
    step = -(-flat.size // HISTOGRAM_VALUES)
    while step > 1 and np.gcd(step, array.shape[-1] or 1) != 1:
        step += 1
    return flat[::step]
