"""Groups of ONNX nodes that are one operator in TFLite, put together before lowering.

Gelu as exporters write it: x * 0.5 * (1 + Erf(x / sqrt(2))), the factors in any order. TFLite has GELU and no ERF.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from vitrify.importers.onnx.source import SourceGraph, SourceNode

_NEAR = 1e-4  # constants are stored in float32 or float16
_FACTORS = 3  # x, 1 + erf, 0.5


def join_patterns(graph: SourceGraph) -> None:
    """Replace every group that is recognized by one node, in place."""
    erfs = [node for node in graph.nodes if node.kind == "Erf" and not node.domain]
    if erfs:
        _Gelus(graph).join(erfs)


class _Gelus:
    """The search for Gelu in one graph."""

    def __init__(self, graph: SourceGraph) -> None:
        self.graph = graph
        self.makers = {o: n for n in graph.nodes for o in n.outputs}
        self.readers: dict[str, list[SourceNode]] = defaultdict(list)
        for node in graph.nodes:
            for name in node.inputs:
                self.readers[name].append(node)
        self.outputs = {v.name for v in graph.outputs}

    def join(self, erfs: list[SourceNode]) -> None:
        """Put a Gelu in the place of the last node of each group; the rest is read by nothing and left out."""
        for erf in erfs:
            found = self._match(erf)
            if found is not None:
                x, group = found
                gelu = SourceNode("Gelu", erf.name, [x], list(group[-1].outputs), {}, opset=erf.opset, group=group)
                self.graph.nodes[self.graph.nodes.index(group[-1])] = gelu

    def _match(self, erf: SourceNode) -> tuple[str, tuple[SourceNode, ...]] | None:
        """The name of x and the nodes of the group around ``erf``, the last one last."""
        scaled = self.makers.get(erf.inputs[0]) if erf.inputs else None
        x = self._unscaled(scaled, 1 / math.sqrt(2)) if scaled else None
        plus = self._only_reader(erf.outputs[0], "Add")
        if scaled is None or x is None or plus is None or not any(self._is(name, 1.0) for name in plus.inputs):
            return None
        group = [scaled, erf, plus]
        for _ in range(2):
            following = self._only_reader(group[-1].outputs[0], "Mul")
            if following is None:
                break
            group.append(following)
            leaves = list(self._leaves(following.outputs[0], plus.outputs[0]))
            constants = [value for name in leaves if (value := self._value(name)) is not None]
            names = sorted(name for name in leaves if self._value(name) is None)
            if names == sorted([x, plus.outputs[0]]) and abs(math.prod(constants) - 0.5) < _NEAR:
                return x, tuple(group)
        return None

    def _leaves(self, name: str, stop: str, depth: int = _FACTORS) -> Iterator[str]:
        """The factors whose product is ``name``."""
        maker = self.makers.get(name)
        if name == stop or maker is None or maker.kind != "Mul" or depth == 0:
            yield name
        else:
            for factor in maker.inputs:
                yield from self._leaves(factor, stop, depth - 1)

    def _unscaled(self, node: SourceNode, factor: float) -> str | None:
        """The x of a node that is x * factor, written as a product or a quotient."""
        if node.kind not in ("Mul", "Div") or len(node.inputs) != 2:
            return None
        first, second = node.inputs
        if node.kind == "Div":
            return first if self._is(second, 1 / factor) else None
        return first if self._is(second, factor) else second if self._is(first, factor) else None

    def _value(self, name: str) -> float | None:
        constant = self.graph.constants.get(name)
        return float(constant.reshape(())) if constant is not None and constant.size == 1 else None

    def _is(self, name: str, value: float) -> bool:
        found = self._value(name)
        return found is not None and abs(found - value) < _NEAR

    def _only_reader(self, name: str, kind: str) -> SourceNode | None:
        readers = self.readers[name]
        single = len(readers) == 1 and readers[0].kind == kind and name not in self.outputs
        return readers[0] if single else None
