"""An ONNX file as a draft, on the level of its messages: what cannot be imported can be reduced all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from vitrify.core.errors import ModelError, VitrifyError
from vitrify.core.isolation import run_isolated
from vitrify.pipeline.reducing.drafts import Array, CannotCutError, InputView, NodeView, Shape

FLOATS = {1: "float32", 10: "float16", 11: "float64", 3: "int8", 2: "uint8"}
"""Element types of constants whose values may be others, by their number in ONNX."""

_TYPES = {**FLOATS, 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 12: "uint32", 13: "uint64"}
_LISTED = {1: "float_data", 10: "int32_data", 11: "double_data", 3: "int32_data", 2: "int32_data"}
_SIZES = frozenset({"kernel_shape", "split", "shape", "output_shape", "group", "num_heads", "hidden_size", "axes_size"})
"""Attributes that hold sizes of tensors."""
_MOST_GUESSES = 8
_FEW = 16              # numbers in a constant that may be a shape
Type = tuple[int, Shape]


class OnnxDraft:
    """See ``Draft``. ``types`` holds the element type and shape of every value that is known."""

    suffix = ".onnx"

    def __init__(self, model: Any, types: Mapping[str, Type], sources: Mapping[str, str] | None = None) -> None:
        self._model = model
        self._types = dict(types)
        self._sources = dict(sources or {})
        self._constants = {one.name: one for one in model.graph.initializer}

    @property
    def nodes(self) -> list[NodeView]:
        """See ``Draft``."""
        return [NodeView(node.op_type, node.name or next((o for o in node.output if o), node.op_type),
                         tuple(n for n in _reads(node) if n not in self._constants), tuple(o for o in node.output if o))
                for node in self._model.graph.node]

    @property
    def inputs(self) -> list[InputView]:
        """See ``Draft``."""
        found = []
        for value in self._model.graph.input:
            if value.name in self._constants:
                continue
            number, shape = _type_of(value) or self._types.get(value.name, (1, ()))
            found.append(InputView(value.name, self._sources.get(value.name, value.name),
                                   _TYPES.get(number, "float32"), shape))
        return found

    @property
    def weights(self) -> dict[str, Array]:
        """See ``Draft``."""
        return {name: array for name, one in self._constants.items() if one.data_type in FLOATS
                and (array := _array(one)) is not None and array.size > 1}

    @property
    def extents(self) -> list[int]:
        """See ``Draft``."""
        shapes = [view.shape for view in self.inputs] + [tuple(one.dims) for one in self._constants.values()]
        return sorted({extent for shape in shapes for extent in shape if extent > 1}, reverse=True)

    def keep(self, chosen: Sequence[int]) -> Self:
        """See ``Draft``."""
        nodes = [self._model.graph.node[number] for number in chosen]
        made = {name for node in nodes for name in node.output if name}
        read = list(dict.fromkeys(name for node in nodes for name in _reads(node)))
        ends = {value.name for value in self._model.graph.output}
        given = [name for name in read if name not in made and name not in self._constants]
        shown = set(read)
        outputs = [name for node in nodes for name in node.output if name and (name not in shown or name in ends)]
        unknown = [name for name in given if name not in self._types]
        if unknown or not outputs:
            raise CannotCutError(f"the shape of '{unknown[0]}' is not known" if unknown else "nothing would be left")
        model = _shell(self._model)
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(self._constants[name] for name in read if name in self._constants)
        for name in given:
            _declare(model.graph.input.add(), name, self._types[name])
        for name in outputs:
            _declare(model.graph.output.add(), name, self._types.get(name), with_shape=False)
        _drop_functions(model)
        return type(self)(model, self._types, self._sources)

    def with_inputs(self, shapes: Mapping[str, Shape]) -> Self:
        """See ``Draft``."""
        model = _copy(self._model)
        del model.graph.value_info[:]
        for value in model.graph.input:
            if value.name in shapes:
                number, _ = _type_of(value) or (1, ())
                _declare(value, value.name, (number, shapes[value.name]))
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        types = {value.name: found for value in model.graph.input if (found := _type_of(value)) is not None}
        return type(self)(model, types, self._sources)

    def with_extent(self, old: int, new: int) -> Self:
        """See ``Draft``."""
        changed = self.with_inputs({view.name: _exchanged(view.shape, old, new) for view in self.inputs})
        model = changed._model
        for one in model.graph.initializer:
            _cut(one, old, new)
        for node in model.graph.node:
            for attribute in node.attribute:
                if attribute.name in _SIZES:
                    attribute.i = new if attribute.i == old else attribute.i
                    attribute.ints[:] = [new if value == old else value for value in attribute.ints]
        return type(self)(model, changed._types, self._sources)

    def with_weights(self, arrays: Mapping[str, Array]) -> Self:
        """See ``Draft``."""
        model = _copy(self._model)
        for one in model.graph.initializer:
            if one.name in arrays:
                _fill(one, arrays[one.name])
        return type(self)(model, self._types, self._sources)

    def plain(self) -> Self:
        """See ``Draft``."""
        model = _copy(self._model)
        for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string", "metadata_props"):
            model.ClearField(field)
        graph = model.graph
        graph.name = "reduced"
        graph.ClearField("doc_string")
        del graph.value_info[:]
        names: dict[str, str] = {}
        for letter, group in (("x", [v.name for v in graph.input]), ("w", [one.name for one in graph.initializer]),
                              ("t", [o for node in graph.node for o in node.output])):
            fresh = [name for name in dict.fromkeys(group) if name and name not in names]
            names |= {name: f"{letter}{number}" for number, name in enumerate(fresh)}
        if any(_subgraphs(node) for node in graph.node):
            names = {name: name for name in names}        # names in branches would have to follow
        for number, node in enumerate(graph.node):
            node.name = f"node{number}"
            node.ClearField("doc_string")
            node.ClearField("metadata_props")
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
        for one in (*graph.input, *graph.output, *graph.initializer):
            one.name = names.get(one.name, one.name)
            one.ClearField("doc_string")
        _drop_functions(model)
        types = {names.get(name, name): kind for name, kind in self._types.items()}
        sources = {names.get(v.name, v.name): self._sources.get(v.name, v.name) for v in self._model.graph.input}
        return type(self)(model, types, sources)

    def data(self) -> bytes:
        """See ``Draft``."""
        content: bytes = self._model.SerializeToString(deterministic=True)
        return content


def read_onnx(path: Path, shapes: Mapping[str, Any]) -> OnnxDraft:
    """Read a file; the shapes of its values come from ONNX's own inference, in a child process.

    Raises:
        ModelError: it is no ONNX model.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    from vitrify.importers.onnx.reading.messages import model_proto

    model = model_proto()()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ModelError.of("reduce.unreadable", f"{path} cannot be read as ONNX: {error}", where=str(path),
                            help="a file that is damaged as a whole cannot be cut; export it anew") from error
    if not model.graph.node:
        raise ModelError.of("reduce.empty", f"{path} has no nodes to leave out", where=str(path))
    if any(one.data_location == 1 for one in model.graph.initializer):
        model.ParseFromString(run_isolated("vitrify.pipeline.reducing.onnx_draft:with_external_here", str(path),
                                           seconds=120, what=f"reading the weights of {path.name}"))
    _fix_inputs(model, path, shapes)
    _inline_constants(model)
    types: dict[str, Type] = {}
    for _ in range(_MOST_GUESSES):
        types = _inferred(model, types)
        if not _guess(model, types):
            break
    return OnnxDraft(model, types)


def with_external_here(path: str) -> bytes:
    """Run in a child: give a model with the weights from the files beside it inside."""
    import onnx

    content: bytes = onnx.load(path).SerializeToString()
    return content


def inferred_here(content: bytes) -> list[tuple[str, int, Shape]]:
    """Run in a child: give all values whose type and shape ONNX's inference finds."""
    import onnx
    from onnx import shape_inference

    model = shape_inference.infer_shapes(onnx.load_from_string(content), data_prop=True)
    graph = model.graph
    return [(value.name, *found) for value in (*graph.input, *graph.value_info, *graph.output)
            if (found := _type_of(value)) is not None]


def _inferred(model: Any, known: Mapping[str, Type]) -> dict[str, Type]:
    """The types of all values; what was ``known`` or guessed helps."""
    slim = _shell(model)
    slim.graph.node.extend(model.graph.node)
    slim.graph.input.extend(model.graph.input)
    slim.graph.output.extend(model.graph.output)
    shapeless = {value.name for value in (*model.graph.input, *model.graph.output)}
    for one in model.graph.initializer:                # large weights matter by their shape alone
        if _count(one.dims) <= 4096 or one.data_type not in FLOATS:
            slim.graph.initializer.append(one)
        else:
            _declare(slim.graph.input.add(), one.name, (one.data_type, tuple(one.dims)))
    for name, kind in known.items():
        if name not in shapeless and name not in {v.name for v in slim.graph.input}:
            _declare(slim.graph.value_info.add(), name, kind)
    try:
        rows = run_isolated("vitrify.pipeline.reducing.onnx_draft:inferred_here", slim.SerializeToString(),
                            seconds=120, what="ONNX's shape inference")
    except VitrifyError:
        rows = []
    declared = {v.name: found for v in (*model.graph.input, *model.graph.value_info) if (found := _type_of(v))}
    return {**declared, **known, **{name: (number, tuple(shape)) for name, number, shape in rows}}


def _guess(model: Any, types: dict[str, Type]) -> bool:
    """Give an operator that nobody knows outputs like its first input, and say whether that was needed."""
    constants = {one.name for one in model.graph.initializer}
    found = False
    for node in model.graph.node:
        if not node.input or any(name and name not in types and name not in constants for name in node.input):
            continue
        unknown = [name for name in node.output if name and name not in types]
        if unknown and node.input[0] in types:
            types |= dict.fromkeys(unknown, types[node.input[0]])
            found = True
            break                                      # what follows can be inferred from here
    return found


def _fix_inputs(model: Any, path: Path, shapes: Mapping[str, Any]) -> None:
    """Give the inputs the sizes that the importer would give them."""
    from vitrify.importers.onnx.reading.reader import read
    from vitrify.importers.onnx.shapes import static_shapes

    try:
        source = read(path)
        found, _ = static_shapes(source.graph, shapes, source.metadata, assume=True)
    except VitrifyError:
        return          # it may be what is to be reduced
    constants = {one.name for one in model.graph.initializer}
    for value in model.graph.input:
        if value.name in found and value.name not in constants and not _type_of(value):
            _declare(value, value.name, (value.type.tensor_type.elem_type or 1, found[value.name]))


def _inline_constants(model: Any) -> None:
    """Turn Constant nodes that hold a tensor into constants of the graph: they are values, not work."""
    rest = []
    for node in model.graph.node:
        value = next((a.t for a in node.attribute if a.name == "value"), None)
        if node.op_type == "Constant" and value is not None and not node.domain and len(node.attribute) == 1:
            one = model.graph.initializer.add()
            one.CopyFrom(value)
            one.name = node.output[0]
        else:
            rest.append(node)
    kept = [type(node).FromString(node.SerializeToString()) for node in rest]
    del model.graph.node[:]
    model.graph.node.extend(kept)


def _shell(model: Any) -> Any:
    """A copy of what surrounds the graph."""
    made = type(model)()
    made.ir_version = model.ir_version
    made.opset_import.extend(model.opset_import)
    made.functions.extend(model.functions)
    made.graph.name = model.graph.name or "main"
    return made


def _copy(model: Any) -> Any:
    made = type(model)()
    made.CopyFrom(model)
    return made


def _drop_functions(model: Any) -> None:
    """Forget functions that no node calls, directly or through others."""
    calls = {(node.domain, node.op_type) for node in _walk(model.graph)}
    for _ in model.functions:
        calls |= {(n.domain, n.op_type) for f in model.functions if (f.domain, f.name) in calls for n in f.node}
    kept = [type(f).FromString(f.SerializeToString()) for f in model.functions if (f.domain, f.name) in calls]
    del model.functions[:]
    model.functions.extend(kept)


def _walk(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for inner in _subgraphs(node):
            yield from _walk(inner)


def _subgraphs(node: Any) -> list[Any]:
    return [graph for a in node.attribute for graph in (*([a.g] if a.HasField("g") else []), *a.graphs)]


def _reads(node: Any) -> list[str]:
    """The values that a node reads, those that its branches take from outside among them."""
    found = [name for name in node.input if name]
    for graph in _subgraphs(node):
        own = {v.name for v in graph.input} | {one.name for one in graph.initializer}
        own |= {name for inner in graph.node for name in inner.output}
        found += [name for inner in graph.node for name in _reads(inner) if name not in own]
        found += [value.name for value in graph.output if value.name not in own]
    return list(dict.fromkeys(found))


def _type_of(value: Any) -> Type | None:
    """The element type and shape of a declared value, None where something of it is open."""
    kind = value.type.tensor_type
    if not kind.elem_type or not kind.HasField("shape"):
        return None
    dims = [dim.dim_value for dim in kind.shape.dim]
    return (kind.elem_type, tuple(dims)) if all(dim > 0 for dim in dims) else None


def _declare(value: Any, name: str, kind: Type | None, with_shape: bool = True) -> None:
    value.name = name
    number, shape = kind or (1, ())
    value.type.tensor_type.elem_type = number
    value.type.tensor_type.ClearField("shape")
    if kind is not None and with_shape:
        value.type.tensor_type.shape.SetInParent()
        for extent in shape:
            value.type.tensor_type.shape.dim.add().dim_value = extent


def _count(dims: Sequence[int]) -> int:
    return int(np.prod(dims, dtype=np.int64)) if len(dims) else 1


def _array(one: Any) -> Array | None:
    """The values of a constant; None of a type that numpy does not have, and of damaged ones."""
    dtype = _TYPES.get(one.data_type)
    if dtype is None:
        return None
    if one.raw_data:
        flat = np.frombuffer(one.raw_data, np.dtype(dtype).newbyteorder("<"))
    elif one.data_type in (6, 7):
        flat = np.array(one.int32_data if one.data_type == 6 else one.int64_data, dtype)
    elif one.data_type == 10:
        flat = np.array(one.int32_data, np.uint16).view(np.float16)
    else:
        flat = np.array(getattr(one, _LISTED.get(one.data_type, "int32_data")), dtype)
    return flat.reshape(tuple(one.dims)) if flat.size == _count(one.dims) else None


def _fill(one: Any, array: Array) -> None:
    for field in ("float_data", "int32_data", "double_data", "int64_data"):
        one.ClearField(field)
    dtype = np.dtype(_TYPES[one.data_type]).newbyteorder("<")
    one.dims[:] = array.shape
    one.raw_data = np.ascontiguousarray(array, dtype).tobytes()


def _exchanged(shape: Shape, old: int, new: int) -> Shape:
    return tuple(new if extent == old else extent for extent in shape)


def _cut(one: Any, old: int, new: int) -> None:
    """Cut a constant's axes of size ``old``; of a few whole numbers, which may be a shape, those that are ``old``."""
    array = _array(one)
    if array is None:
        if old in one.dims:
            raise CannotCutError("the values of a constant are not known")
        return
    found = array
    for axis, extent in enumerate(array.shape):
        if extent == old:
            found = np.take(found, np.arange(new) % old, axis)
    if found.dtype.kind == "i" and found.dtype.itemsize >= 4 and found.size <= _FEW:
        found = np.where(found == old, new, found)
    if found is not array:
        _fill(one, found)
