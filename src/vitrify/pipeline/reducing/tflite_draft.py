"""A TFLite file as a draft: its graph in our own representation, written anew for each try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from vitrify.core.errors import ModelError, VitrifyError
from vitrify.ir import Graph, Model, Tensor
from vitrify.ir.cutting import cut_out
from vitrify.pipeline.reducing.drafts import Array, CannotCutError, InputView, NodeView, Shape

_FEW = 16              # numbers in a constant that may be a shape
_VALUED = ("float32", "float16", "int8", "uint8", "int16")


class TFLiteDraft:
    """See ``Draft``. The graph is never changed."""

    suffix = ".tflite"

    def __init__(self, graph: Graph, sources: Mapping[str, str] | None = None) -> None:
        self._graph = graph
        self._sources = dict(sources or {})
        self._bytes: bytes | None = None

    @property
    def nodes(self) -> list[NodeView]:
        """See ``Draft``."""
        return [NodeView(node.op.kind, node.name, tuple(t.name for t in node.inputs if t is not None
                                                        and not t.is_constant), tuple(t.name for t in node.outputs))
                for node in self._graph]

    @property
    def inputs(self) -> list[InputView]:
        """See ``Draft``."""
        return [InputView(t.name, self._sources.get(t.name, t.name), t.dtype.label, t.shape)
                for t in self._graph.inputs]

    @property
    def weights(self) -> dict[str, Array]:
        """See ``Draft``."""
        return {t.name: t.data for t in self._graph.tensors() if t.data is not None and t.data.size > 1
                and t.dtype.label in _VALUED and t.data.dtype.name == t.dtype.label}

    @property
    def extents(self) -> list[int]:
        """See ``Draft``."""
        shapes = [t.shape for t in self._graph.tensors() if t.is_constant or t in self._graph.inputs]
        return sorted({extent for shape in shapes for extent in shape if extent > 1}, reverse=True)

    def keep(self, chosen: Sequence[int]) -> Self:
        """See ``Draft``."""
        nodes = self._graph.nodes
        graph = cut_out([nodes[number] for number in chosen])
        if not graph.outputs:
            raise CannotCutError("nothing would be left")
        return type(self)(graph, self._sources)

    def with_inputs(self, shapes: Mapping[str, Shape]) -> Self:
        """See ``Draft``."""
        return self._made({t: shapes.get(t.name, t.shape) for t in self._graph.inputs}, {}, None)

    def with_extent(self, old: int, new: int) -> Self:
        """See ``Draft``."""
        def smaller(shape: Shape) -> Shape:
            return tuple(new if extent == old else extent for extent in shape)

        constants = {t: _cut(t, old, new) for t in self._graph.tensors() if t.is_constant}
        return self._made({t: smaller(t.shape) for t in self._graph.inputs}, constants, (old, new))

    def with_weights(self, arrays: Mapping[str, Array]) -> Self:
        """See ``Draft``."""
        changed = {}
        for tensor in self._graph.tensors():
            if tensor.is_constant and tensor.name in arrays:
                changed[tensor] = changed_copy(tensor, arrays[tensor.name])
        return self._made({}, changed, None, infer=False)

    def plain(self) -> Self:
        """See ``Draft``."""
        made = self._made({}, {}, None, infer=False)
        graph, names = made._graph, {}
        inputs = set(graph.inputs)
        counts = {"x": 0, "w": 0, "t": 0}
        for tensor in graph.tensors():
            letter = "x" if tensor in inputs else "w" if tensor.is_constant else "t"
            names[tensor.name], tensor.name = f"{letter}{counts[letter]}", f"{letter}{counts[letter]}"
            counts[letter] += 1
        for number, node in enumerate(graph):
            node.name = f"node{number}"
        graph.name = "main"
        sources = {now: self._sources.get(before, before) for before, now in names.items()}
        return type(self)(graph, sources)

    def data(self) -> bytes:
        """See ``Draft``."""
        from vitrify import tflite

        if self._bytes is None:
            self._bytes = bytes(tflite.to_bytes(Model(graphs=[self._graph])))
        return self._bytes

    def _made(self, shapes: Mapping[Tensor, Shape], constants: Mapping[Tensor, Tensor],
              extent: tuple[int, int] | None, infer: bool = True) -> Self:
        """The same graph of new tensors; shapes follow from the inputs, or by exchange where that is not known."""
        graph, copies = Graph(self._graph.name), dict(constants)
        for tensor in self._graph.inputs:
            copies[tensor] = _with_shape(tensor, shapes.get(tensor, tensor.shape))
            graph.inputs.append(copies[tensor])
        for node in self._graph:
            given = [None if t is None else copies.setdefault(t, _with_shape(t, t.shape)) for t in node.inputs]
            found: list[Shape] = [t.shape for t in node.outputs]
            if infer:
                try:
                    found = [kind.shape for kind in node.op.infer(given)]
                except (VitrifyError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
                    if extent is None:
                        raise CannotCutError(f"{node.op.kind} does not take the shapes") from error
                    found = [tuple(extent[1] if e == extent[0] else e for e in t.shape) for t in node.outputs]
            made = [copies.setdefault(t, _with_shape(t, s)) for t, s in zip(node.outputs, found, strict=False)]
            added = graph.add(node.op, given, made, name=node.name, origin=node.origin)
            added.extras = dict(node.extras)
        graph.set_outputs([copies[t] for t in self._graph.outputs])
        return type(self)(graph, self._sources)


def read_tflite(path: Path) -> TFLiteDraft:
    """Read a file's main graph.

    Raises:
        ModelError: it cannot be read, or has no nodes.
    """
    from vitrify import tflite

    model = tflite.read(path)
    if not len(model.main):
        raise ModelError.of("reduce.empty", f"{path} has no nodes to leave out", where=str(path))
    return TFLiteDraft(cut_out(model.main.nodes, outputs=model.main.outputs))


def changed_copy(tensor: Tensor, array: Array) -> Tensor:
    """A constant with other values of the same type."""
    made = _with_shape(tensor, array.shape)
    made.data = np.ascontiguousarray(array)
    return made


def _with_shape(tensor: Tensor, shape: Shape) -> Tensor:
    made = Tensor(tensor.name, tensor.dtype, shape, data=tensor.data, quantization=tensor.quantization,
                  is_variable=tensor.is_variable)
    made.extras = dict(tensor.extras) if tuple(shape) == tensor.shape else {}
    return made


def _cut(tensor: Tensor, old: int, new: int) -> Tensor:
    """A constant with its axes, and scales, of size ``old`` cut; of a few whole numbers those that are ``old``."""
    data = tensor.data
    assert data is not None
    if data.shape != tensor.shape:
        if old in tensor.shape:
            raise CannotCutError("the values of a constant are packed")
        return _with_shape(tensor, tensor.shape)
    places = np.arange(new) % old
    for axis, extent in enumerate(data.shape):
        if extent == old:
            data = np.take(data, places, axis)
    if data.dtype.kind == "i" and data.dtype.itemsize >= 4 and data.size <= _FEW and tensor.quantization is None:
        data = np.where(data == old, new, data).astype(data.dtype)
    made = changed_copy(tensor, data)
    scales = tensor.quantization
    if scales is not None and scales.is_per_axis and len(scales.scale) == old:
        made.quantization = replace(scales, scale=scales.scale[places], zero_point=scales.zero_point[places],
                                    minimum=None, maximum=None)
    return made
