"""What a file written by us says besides: the source model's interface, and where nodes and tensors come from.

Origins are filed under tensor names, a node's under its first output, so that they still fit after another program
has dropped or reordered parts of the file.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TypeVar

import msgspec

from vitrify.core.errors import ModelError
from vitrify.ir import Graph, Interface, Model, Node, Origin, Source, Tensor

INTERFACE = "vitrify.interface"
ORIGINS = "vitrify.origins"
NAMES = (INTERFACE, ORIGINS)
T = TypeVar("T", Node, Tensor)


class _Note(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Sources and passes as numbers of texts; ``name`` and ``kind`` for nodes only."""

    sources: tuple[tuple[int, int], ...] = ()
    passes: tuple[int, ...] = ()
    kind: int = -1
    name: int = -1


class _GraphNotes(msgspec.Struct):
    """Notes by tensor name; several tensors of one name have their notes in the graph's order."""

    nodes: dict[str, list[_Note | None]] = {}
    tensors: dict[str, list[_Note | None]] = {}


class _Notes(msgspec.Struct):
    """All notes of a model; ``texts`` holds each name once."""

    version: int
    texts: list[str]
    graphs: list[_GraphNotes]


class _Texts:
    """Numbers for texts, in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def entries(model: Model, kept: Container[str] | None = None) -> dict[str, bytes]:
    """Return our metadata entries for ``model``; an entry that would say nothing new is left out.

    ``kept``: names of the tensors that origins are told of, None for all.
    """
    found = {}
    if model.interface is not None:
        found[INTERFACE] = msgspec.json.encode(model.interface)
    texts = _Texts()
    graphs = [_graph_notes(graph, texts, kept) for graph in model.graphs]
    if any(g.nodes or g.tensors for g in graphs):
        found[ORIGINS] = msgspec.json.encode(_Notes(1, list(texts.numbers), graphs))
    return found


def _graph_notes(graph: Graph, texts: _Texts, kept: Container[str] | None) -> _GraphNotes:
    notes = _GraphNotes({}, {})
    for tensor in graph.tensors():
        if kept is not None and tensor.name not in kept:
            continue
        plain = tensor.origin == Origin.of(tensor.name)
        notes.tensors.setdefault(tensor.name, []).append(None if plain else _note(tensor.origin, texts))
    for node in graph:
        if node.outputs and (kept is None or node.output.name in kept):
            name = node.output.name
            plain = node.name == name and node.origin == Origin.of(name, node.op.kind)
            note = None if plain else _note(node.origin, texts, node)
            notes.nodes.setdefault(name, []).append(note)
    notes.tensors = {k: v for k, v in notes.tensors.items() if any(v)}
    notes.nodes = {k: v for k, v in notes.nodes.items() if any(v)}
    return notes


def _note(origin: Origin, texts: _Texts, node: Node | None = None) -> _Note:
    return _Note(tuple((texts(s.name), texts(s.operator)) for s in origin.sources), tuple(map(texts, origin.passes)),
                 texts(node.op.kind) if node else -1, texts(node.name) if node else -1)


def restore(model: Model, where: str) -> None:
    """Take our entries out of ``model.metadata`` and apply them.

    Raises:
        ModelError: an entry is there but cannot be understood.
    """
    interface, origins = model.metadata.pop(INTERFACE, None), model.metadata.pop(ORIGINS, None)
    try:
        if interface is not None:
            model.interface = msgspec.json.decode(interface, type=Interface)
            _check_positions(model, model.interface)
        if origins is not None:
            notes = msgspec.json.decode(origins, type=_Notes)
            for graph, graph_notes in zip(model.graphs, notes.graphs, strict=False):
                _apply(graph, graph_notes, notes.texts)
    except (msgspec.MsgspecError, IndexError, ValueError) as error:
        raise ModelError.of("tflite.metadata", f"the entries '{INTERFACE}' and '{ORIGINS}' cannot be used: {error}",
                            where=where, help="build the file again from its source") from error


def _check_positions(model: Model, interface: Interface) -> None:
    inputs = len(model.main.inputs)
    host = interface.host
    outputs, giver = (len(model.main.outputs), "file") if host is None else (len(host.gives), "host program")
    if any(not 0 <= b.position < inputs for b in interface.inputs):
        raise ValueError(f"an input beyond the {inputs} of the file")
    if any(not 0 <= p.position < outputs for b in interface.outputs for p in b.parts):
        raise ValueError(f"an output beyond the {outputs} of the {giver}")


def _apply(graph: Graph, notes: _GraphNotes, texts: list[str]) -> None:
    for tensor, note in _matched(((t.name, t) for t in graph.tensors()), notes.tensors):
        tensor.origin = _origin(note, texts)
    for node, note in _matched(((n.output.name, n) for n in graph if n.outputs), notes.nodes):
        if texts[note.kind] == node.op.kind:
            node.name, node.origin = texts[note.name], _origin(note, texts)


def _matched(named: Iterable[tuple[str, T]], notes: dict[str, list[_Note | None]]) -> Iterable[tuple[T, _Note]]:
    seen: dict[str, int] = {}
    for name, item in named:
        place = seen[name] = seen.get(name, -1) + 1
        listed = notes.get(name, ())
        note = listed[place] if place < len(listed) else None
        if note is not None:
            yield item, note


def _origin(note: _Note, texts: list[str]) -> Origin:
    return Origin(tuple(Source(texts[name], texts[operator]) for name, operator in note.sources),
                  tuple(texts[p] for p in note.passes))
