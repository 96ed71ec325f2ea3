"""Unsigned steps between quantizing and dequantizing nodes as signed ones: exact, and what integer kernels take.

    uint8 q with zero point z  =  int8 q - 128 with zero point z - 128;  16 bits alike.

Only values are changed that nothing but QuantizeLinear makes and nothing but DequantizeLinear, or what passes values on
as they are, reads: the file's own unsigned inputs and outputs keep their type.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from vitrify.importers.onnx.source import Array, SourceGraph, SourceNode

_HALF = {"uint8": 1 << 7, "uint16": 1 << 15}
_SIGNED = {"uint8": np.int8, "uint16": np.int16}
_PASSING = {"Identity": 1, "Reshape": 1, "Flatten": 1, "Squeeze": 1, "Unsqueeze": 1, "Transpose": 1, "Slice": 1,
            "MaxPool": 1, "DepthToSpace": 1, "SpaceToDepth": 1, "Gather": 1, "Expand": 1, "Tile": 1, "Split": 1,
            "Concat": None, "Max": None, "Min": None}
"""Operators that only pass values on, and how many of their first inputs hold them (None: all)."""


def shift_unsigned(graph: SourceGraph) -> int:
    """Change groups of unsigned values to signed ones, in place; returns how many values changed."""
    if not any(node.kind == "QuantizeLinear" for node in graph.nodes):
        return 0
    return sum(map(_Shift(graph).apply, list(_groups(graph))))


def _groups(graph: SourceGraph) -> list[list[str]]:
    """Values that must have one type: those that passing operators connect, from each QuantizeLinear on."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    for node in graph.nodes:
        if node.kind in _PASSING and not node.domain:
            for name in (*node.inputs[:_PASSING[node.kind]], *node.outputs[1:]):
                if name and node.outputs:
                    parent[root(name)] = root(node.outputs[0])
    starts = {root(n.outputs[0]) for n in graph.nodes if n.kind == "QuantizeLinear" and not n.domain and n.outputs}
    found: dict[str, list[str]] = defaultdict(list)
    for name in list(parent):
        if root(name) in starts:
            found[root(name)].append(name)
    return [found[s] for s in starts]


def _takes(node: SourceNode, index: int) -> bool:
    """True when a node reads the value at ``index`` as steps, or only passes it on."""
    if node.domain:
        return False
    if node.kind in _PASSING:
        values = _PASSING[node.kind]
        return values is None or index < values
    return node.kind == "DequantizeLinear" and index == 0


class _Shift:
    def __init__(self, graph: SourceGraph) -> None:
        self.graph = graph
        self.makers = {o: n for n in graph.nodes for o in n.outputs}
        self.readers: dict[str, list[tuple[SourceNode, int]]] = defaultdict(list)
        for node in graph.nodes:
            for index, name in enumerate(node.inputs):
                self.readers[name].append((node, index))
        self.fixed = {v.name for v in (*graph.inputs, *graph.outputs)}
        for _, inner in graph.subgraphs():
            self.fixed |= {name for n in inner.nodes for name in n.inputs} | {v.name for v in inner.outputs}

    def apply(self, names: list[str]) -> int:
        """Shift one group when all its ends allow it."""
        ends: list[tuple[SourceNode, int]] = []
        for name in names:
            maker = self.makers.get(name)
            if name in self.fixed or maker is None:
                return 0
            if maker.kind == "QuantizeLinear" and not maker.domain:
                ends.append((maker, 2))
            elif maker.kind not in _PASSING:
                return 0
            for reader, index in self.readers[name]:
                if not _takes(reader, index):
                    return 0
                if reader.kind == "DequantizeLinear":
                    ends.append((reader, 2))
        zeros = [self._zero(node, index) for node, index in ends]
        types = {z.dtype.name for z in zeros if z is not None}
        if None in zeros or len(types) != 1 or (kind := types.pop()) not in _HALF:
            return 0
        for (node, index), zero in zip(ends, zeros, strict=True):
            assert zero is not None
            self._set(node, index, np.asarray(zero.astype(np.int64) - _HALF[kind], _SIGNED[kind]))
        return len(names)

    def _zero(self, node: SourceNode, index: int) -> Array | None:
        """The zero point; uint8 0 where a QuantizeLinear or DequantizeLinear has none and no type is named."""
        if index < len(node.inputs) and node.inputs[index]:
            return self.graph.constants.get(node.inputs[index])
        scale = self.graph.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if scale is None or node.attributes.get("output_dtype", 0) not in (0, 2):
            return None
        return np.zeros(scale.shape, np.uint8)

    def _set(self, node: SourceNode, index: int, zero: Array) -> None:
        name = f"{node.outputs[0]}/signed_zero_point"
        self.graph.constants[name] = zero
        node.inputs = [*node.inputs[:index], name]
        node.attributes.pop("output_dtype", None)
