"""Questions about the surroundings of a node in an ONNX graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vitrify.importers.onnx.reading.tensors import BFLOAT16
from vitrify.importers.onnx.source import Array, SourceGraph, SourceNode

NEAR = 1e-4
"""Relative; constants are stored in float32 or float16."""
_FLOATS = (1, 10, 11, BFLOAT16)


class Search:
    """Who makes and who reads each value; a Cast between floats is looked through, as all are float32 in the graph."""

    def __init__(self, graph: SourceGraph) -> None:
        self.graph = graph
        self.outputs = {v.name for v in graph.outputs}
        self._makers = {o: n for n in graph.nodes for o in n.outputs}
        self._readers: dict[str, list[SourceNode]] = defaultdict(list)
        for node in graph.nodes:
            for name in node.inputs:
                self._readers[name].append(node)

    def maker(self, name: str, *kinds: str) -> SourceNode | None:
        """The node that makes a value, when it is of one of ``kinds`` (of any without)."""
        node = self._makers.get(self.plain(name))
        return node if node is not None and not node.domain and (not kinds or node.kind in kinds) else None

    def plain(self, name: str) -> str:
        """The value before casts between floats."""
        node = self._makers.get(name)
        while node is not None and _is_float_cast(node):
            name = node.inputs[0]
            node = self._makers.get(name)
        return name

    def only_reader(self, name: str, *kinds: str) -> SourceNode | None:
        """The one node that reads a value, when it is of one of ``kinds`` and the value is no output."""
        while True:
            readers = self._readers[name]
            if len(readers) != 1 or name in self.outputs:
                return None
            reader = readers[0]
            if not _is_float_cast(reader):
                return reader if not reader.domain and (not kinds or reader.kind in kinds) else None
            name = reader.outputs[0]

    def array(self, name: str) -> Array | None:
        """A constant."""
        return self.graph.constants.get(self.plain(name))

    def number(self, name: str) -> float | None:
        """A constant of one element."""
        found = self.array(name)
        return float(found.reshape(())) if found is not None and found.size == 1 and found.dtype.kind in "fiu" else None

    def is_number(self, name: str, value: float) -> bool:
        """True for a constant of one element near ``value``."""
        found = self.number(name)
        return found is not None and abs(found - value) <= NEAR * max(1.0, abs(value))

    def with_number(self, node: SourceNode | None) -> tuple[str, float] | None:
        """The (other input, number) of a node of two inputs, one of which is a constant of one element."""
        if node is None or len(node.inputs) != 2:
            return None
        for other, name in (node.inputs, node.inputs[::-1]):
            found = self.number(name)
            if found is not None:
                return self.plain(other), found
        return None

    def factors(self, name: str, stop: str, depth: int) -> Iterator[str]:
        """The factors whose product is ``name``, through ``depth`` products."""
        maker = self.maker(name, "Mul")
        if self.plain(name) == stop or maker is None or depth == 0:
            yield self.plain(name)
        else:
            for factor in maker.inputs:
                yield from self.factors(factor, stop, depth - 1)

    def axes(self, node: SourceNode) -> list[int] | None:
        """The axes of a reduction that keeps them; None when they are not known, or not kept."""
        given = node.attributes.get("axes")
        if given is None and len(node.inputs) > 1:
            found = self.array(node.inputs[1])
            given = None if found is None else found.ravel().tolist()
        kept = node.attributes.get("keepdims", 1)
        return [int(a) for a in given] if isinstance(given, list) and kept else None


def _is_float_cast(node: SourceNode) -> bool:
    return node.kind == "Cast" and not node.domain and node.attributes.get("to") in _FLOATS
