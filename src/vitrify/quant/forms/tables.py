"""Tables in the place of functions without an integer kernel, after all scales are settled."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from vitrify.ir import DType, Graph, Node, Quantization, Tensor
from vitrify.ops import Add, Cast, Gather, Log, Rsqrt
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.lookups import answers, holds_whole, variable

PASS = "tables"

FLAT = 64.0
"""Up to this ratio between the largest and the smallest input, the 16-bit kernels of RSQRT and LOG, straight lines
between 513 points, keep 63 dB or more; at 256 they keep 42. Found by running LiteRT 2.3."""
Array = np.ndarray[Any, np.dtype[Any]]


Constants = dict[tuple[bytes, str, Quantization | None], Tensor]


class Lookup(NamedTuple):
    """A node that a table replaces: the position of its input, and whether that holds whole numbers only."""

    place: int
    whole: bool


def tables(graph: Graph, wide: Set[Node], ranges: Mapping[Tensor, Range]) -> dict[Node, Lookup]:
    """The nodes that tables will replace; to be asked while the graph is float.

    ``wide``: those that compute in 16 bits; ``ranges``: of the tensors.
    """
    found = {node: variable(node, node in wide) for node in graph if not _is_near(node, ranges)}
    return {node: Lookup(index, holds_whole(node.input(index))) for node, index in found.items() if index is not None}


def _is_near(node: Node, ranges: Mapping[Tensor, Range]) -> bool:
    """True for a function whose kernel is near enough, as its input keeps away from the steep end."""
    found = ranges.get(node.input(0)) if isinstance(node.op, Rsqrt | Log) else None
    return found is not None and 0 < found.high <= FLAT * found.low


def write_tables(graph: Graph, nodes: Mapping[Node, Lookup]) -> int:
    """Replace nodes whose inputs and outputs have their scales; returns how many.

    Before:  %y = SIN(%x: int8)
    After:   %1 = CAST(%x) to int32;  %2 = ADD(%1, 128);  %y = GATHER(answers, %2)
    Each answer is the step nearest to the function of the input's step. CAST passes on steps as they are.
    Source: TFLite kernels/cast.cc, gather.cc.
    """
    places: dict[Tensor, Tensor] = {}
    constants: Constants = {}
    standing = [node for node in graph if node in nodes]
    for node in standing:
        _write(graph, node, nodes[node], places, constants)
    return len(standing)


def _write(graph: Graph, node: Node, lookup: Lookup, places: dict[Tensor, Tensor], constants: Constants) -> None:
    source, output = node.input(lookup.place), node.output
    assert source.quantization is not None
    values = source.quantization.dequantize(_steps(source))
    found = _rounded(answers(node, lookup.place, np.rint(values) if lookup.whole else values), output)
    key = found.tobytes(), str(found.dtype), output.quantization
    if key not in constants:
        constants[key] = Tensor(f"{node.name}_table", output.dtype, found.shape, data=found,
                                quantization=output.quantization, origin=node.origin.by(PASS))
    if source not in places:
        places[source] = _place(graph, node, source)
    graph.replace_node(node, Gather(axis=0), [constants[key], places[source]], origin=node.origin.by(PASS))


def _steps(tensor: Tensor) -> Array:
    """All values that a tensor can hold, in order."""
    limits = np.iinfo(np.int16 if tensor.dtype is DType.INT16 else np.int8)
    every: Array = np.arange(limits.min, limits.max + 1).astype(limits.dtype)
    return every


def _rounded(values: Array, output: Tensor) -> Array:
    """The answers as the output holds them: steps of its scale, or whole numbers."""
    if output.quantization is None:
        assert output.dtype.numpy is not None
        return np.ascontiguousarray(values.astype(output.dtype.numpy))
    limits = np.iinfo(np.int16 if output.dtype is DType.INT16 else np.int8)
    scale, zero_point = float(output.quantization.scale[0]), int(output.quantization.zero_point[0])
    steps = np.rint(np.clip(values.astype(np.float64) / scale, -2.0 ** 40, 2.0 ** 40)) + zero_point
    rounded: Array = np.clip(steps, limits.min, limits.max).astype(limits.dtype)
    return rounded


def _place(graph: Graph, node: Node, source: Tensor) -> Tensor:
    """The place of each element's answer: its step, counted from the lowest one."""
    origin = node.origin.by(PASS)._replace(sources=())
    lowest = np.array(32768 if source.dtype is DType.INT16 else 128, np.int32)
    cast = graph.add(Cast(in_data_type=source.dtype.value, out_data_type=DType.INT32.value), [source],
                     name=f"{node.name}/step", origin=origin, before=node)
    first = Tensor(f"{node.name}_lowest", DType.INT32, (), data=lowest)
    return graph.add(Add(), [cast.output, first], name=f"{node.name}/place", origin=origin, before=node).output
