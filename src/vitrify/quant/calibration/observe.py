"""What calibration looks at: which tensors, and how the values of a sample enter the statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Slice, Split, SplitV, StridedSlice, Unpack
from vitrify.ops.lstm import has_integer_kernel
from vitrify.quant.calibration.calibrators import Calibrators
from vitrify.quant.calibration.cells import cell_key, largest_cell
from vitrify.quant.calibration.moments import is_looked_at, moments_of, source_of
from vitrify.quant.calibration.statistics import Histogram, Statistics, TensorStatistics
from vitrify.quant.recipe import Calibrator, Recipe
from vitrify.quant.rules import fixed_output, is_long, is_real, keeps_values, roles
from vitrify.quant.weights.bias_correction import is_derived

Array = np.ndarray[Any, np.dtype[Any]]

HISTOGRAM_VALUES = 1 << 16
"""Values of a tensor that one sample adds to its histogram at most, evenly spread: enough for a tail of 0.01 %."""

MEAN_VALUES = 1 << 17
"""Values of a tensor that one sample adds to its channel means at most."""

BLOCK_VALUES = 1 << 16
"""Values looked at together, 256 kB of float32: they stay in a core's cache between two readings."""

CUTS = (Slice, StridedSlice, Split, SplitV, Unpack)
"""What these make has its source's scale; its own range tells how much of that it uses."""

LONGEST_AXIS = 1024
"""Axes of outputs up to this extent are watched index by index."""


@dataclass(frozen=True)
class Watch:
    """One tensor to observe: its name in the statistics, and what is kept besides its range.

    histogram: how the values are spread; axes: the range of each index of these axes; means: that of each channel;
    layers: those whose inputs' moments are taken from it; calibrator, percentile: how its range will be found;
    recurrent: those that read it, and whose cells are computed beside.
    """

    tensor: Tensor
    key: str
    histogram: bool
    axes: tuple[int, ...] = ()
    means: bool = False
    layers: tuple[Node, ...] = ()
    calibrator: Calibrator = "minmax"
    percentile: float = 99.9
    recurrent: tuple[Node, ...] = ()


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
    move or select values. Outputs and what they are joined from are always watched, and so is what weights are
    multiplied with, when biases are to be corrected.
    """
    named = keys(graph)
    calibrators = Calibrators(graph, recipe)
    joined = set(_members_of_outputs(graph))
    weighted = set(_weighted(graph)) if recipe.bias_correction else set()
    layers = _layers(graph, recipe.rounding_inputs) if recipe.rounding != "nearest" else {}
    chosen: list[Watch] = []
    for tensor in graph.tensors():
        if not is_real(tensor) or tensor.is_constant or tensor.is_variable:
            continue
        recurrent = tuple(n for n in tensor.users if has_integer_kernel(n) and n.inputs[0] is tensor)
        wanted = tensor.is_output or tensor in joined or tensor in weighted or bool(recurrent)
        cut = tensor.producer is not None and isinstance(tensor.producer.op, CUTS) and not wanted
        if cut:
            chosen.append(Watch(tensor, named[tensor], histogram=False))
        elif wanted or tensor.producer is None or _needs_range(tensor.producer):
            axes = tuple(a for a, n in enumerate(tensor.shape) if 1 < n <= LONGEST_AXIS) if tensor.is_output else ()
            chosen.append(Watch(tensor, named[tensor], calibrators.needs_histogram(tensor), axes, tensor in weighted,
                                tuple(layers.get(tensor, ())), *calibrators.of(tensor), recurrent))
    return chosen


def _weighted(graph: Graph) -> Iterator[Tensor]:
    """The tensors whose channel means tell the shift that rounded weights bring."""
    for node in graph:
        found = roles(node)
        if found is None or found.weight is None or found.data is None:
            continue
        waiting = [node.input(found.data)]
        while waiting:
            tensor = waiting.pop()
            if is_derived(tensor) and tensor.producer is not None:
                waiting += [t for t in tensor.producer.inputs if is_real(t) and t is not None]
            elif not tensor.is_constant:
                yield tensor


def _layers(graph: Graph, largest: int) -> dict[Tensor, list[Node]]:
    """The layers whose weights are rounded against each other, by what their windows are taken from."""
    named = Counter(node.name for node in graph)
    found: dict[Tensor, list[Node]] = {}
    for node in graph:
        source = source_of(node, largest) if named[node.name] == 1 else None
        if source is not None:
            found.setdefault(source, []).append(node)
    return found


def _needs_range(node: Node) -> bool:
    return (fixed_output(node) is None or is_long(node)) and not keeps_values(node)


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
        low, high = _extremes(array)
        if array.size and not (np.isfinite(low) and np.isfinite(high)):
            seen.nan_sample = sample if seen.nan_sample is None else seen.nan_sample
            continue
        seen.low, seen.high = min(seen.low, low), max(seen.high, high)
        if array.size:
            seen.note_ends(low, high, sample)
            seen.move(low, high)
        for axis in watch.axes:
            _observe_axis(seen, array, axis)
        if watch.tensor.producer is not None and is_long(watch.tensor.producer) and array.size:
            seen.note_rows(array)
        if watch.means and array.size:
            _observe_means(seen, array)
        for layer in watch.layers if is_looked_at(sample) else ():
            seen_now, known = moments_of(layer, array), statistics.moments.get(layer.name)
            statistics.moments[layer.name] = seen_now if known is None else known.add(seen_now)
        for node in watch.recurrent if array.size else ():
            cells = statistics.tensors.setdefault(cell_key(node), TensorStatistics())
            largest = largest_cell(node, array)
            cells.low, cells.high = min(cells.low, -largest), max(cells.high, largest)
        if watch.histogram and array.size:
            seen.histogram = seen.histogram or Histogram()
            seen.histogram.add(_thinned(array), max(-low, high))


def _extremes(array: Array) -> tuple[float, float]:
    """The smallest and the largest value, NaN when there is one; in blocks, whose second reading comes from a cache."""
    flat = array.reshape(-1)
    blocks = [flat[start:start + BLOCK_VALUES] for start in range(0, flat.size, BLOCK_VALUES)]
    ends = [(np.minimum.reduce(block), np.maximum.reduce(block)) for block in blocks]
    return (float(np.min([low for low, _ in ends], initial=np.inf)),
            float(np.max([high for _, high in ends], initial=-np.inf)))


def _observe_axis(seen: TensorStatistics, array: Array, axis: int) -> None:
    others = tuple(a for a in range(array.ndim) if a != axis)
    low, high = array.min(axis=others), array.max(axis=others)
    seen.axis_low[axis] = np.minimum(seen.axis_low.get(axis, low), low)
    seen.axis_high[axis] = np.maximum(seen.axis_high.get(axis, high), high)


def _observe_means(seen: TensorStatistics, array: Array) -> None:
    """Add the values of evenly spread positions, whole channels each."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    step = -(-array.size // MEAN_VALUES)
    while step > 1 and array.ndim > 2 and np.gcd(step, array.shape[-2]) != 1:
        step += 1                               # walk over all columns, not down a few
    chosen = rows[::step]
    total = chosen.sum(axis=0, dtype=np.float64)
    seen.sums = total if seen.sums is None else seen.sums + total
    seen.counted += len(chosen)


def _thinned(array: Array) -> Array:
    """Every n-th value; n shares no factor with the channels, so that all of them are met."""
    flat = array.reshape(-1)
    step = -(-flat.size // HISTOGRAM_VALUES)
    while step > 1 and np.gcd(step, array.shape[-1] or 1) != 1:
        step += 1
    return flat[::step]
