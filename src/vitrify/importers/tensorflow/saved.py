"""What a SavedModel holds, read from its saved_model.pb alone: signatures, and the operators of its graphs.

Source: TensorFlow's saved_model.proto, meta_graph.proto, graph.proto, function.proto, types.proto (field numbers).
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vitrify.core.errors import ModelError
from vitrify.importers.tensorflow.kinds import SAVED_FILE
from vitrify.importers.tensorflow.wire import WireError, message, messages, text, whole

TYPES = {1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 9: "int64", 10: "bool",
         14: "bfloat16", 17: "uint16", 19: "float16", 20: "resource", 22: "uint32", 23: "uint64"}
CODE_OPERATORS = ("EagerPyFunc", "PyFunc", "PyFuncStateless", "ReadFile", "WriteFile", "MatchingFiles", "LoadLibrary")
"""Operators that run Python or touch files, which no network needs."""
SERVING = "serving_default"
INITIALIZER = "__saved_model_init_op"
_SHOWN = 8


@dataclass(frozen=True)
class Port:
    """An input or output of a signature; -1 is an extent that is open, None a shape that is."""

    dtype: str
    shape: list[int] | None


@dataclass
class Saved:
    """A SavedModel's signatures and its operators, those of functions too."""

    version: str = ""
    tags: list[str] = field(default_factory=list)
    signatures: dict[str, tuple[dict[str, Port], dict[str, Port]]] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    code: list[tuple[str, str]] = field(default_factory=list)


def describe(folder: Path) -> Saved:
    """Read the description of a SavedModel.

    Raises:
        ModelError: saved_model.pb is none.
    """
    path = folder / SAVED_FILE
    size = path.stat().st_size
    if not size:
        raise ModelError.of("file.empty", f"'{path}' is empty (0 bytes)", where=str(path), help="save the model again")
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        view = memoryview(content)
        try:
            return _saved(view, path)
        except WireError as error:
            raise ModelError.of("tf.damaged", f"'{path}' is no whole SavedModel: {error}", where=str(path),
                                help="fetch or save the model again") from None
        finally:
            view.release()


def _saved(data: memoryview, path: Path) -> Saved:
    graphs = [bytes(graph) for graph in messages(data, 2)]
    if not graphs:
        raise WireError("it holds no graph")
    if len(graphs) > 1:
        raise ModelError.of("tf.graphs", f"'{path}' holds {len(graphs)} models, one is taken", where=str(path),
                            help="save the one that is meant on its own: tf.saved_model.save(model, 'FOLDER')")
    meta, saved = memoryview(graphs[0]), Saved()
    info = message(meta, 1)
    saved.version = text(info, 5)
    saved.tags = [bytes(tag).decode("utf-8", "replace") for tag in messages(info, 4)]
    for entry in messages(meta, 5):
        key, signature = text(entry, 1), message(entry, 2)
        if key != INITIALIZER:
            saved.signatures[key] = (_ports(signature, 1), _ports(signature, 2))
    for name, kind in _nodes(message(meta, 2)):
        saved.operators[kind] += 1
        if kind in CODE_OPERATORS:
            saved.code.append((name, kind))
    return saved


def _ports(signature: memoryview, number: int) -> dict[str, Port]:
    return {text(entry, 1): _port(message(entry, 2)) for entry in messages(signature, number)}


def _port(info: memoryview) -> Port:
    shape = message(info, 3)
    unknown = bool(whole(shape, 3))
    kind = whole(info, 2)
    return Port(TYPES.get(kind, f"type {kind}"), None if unknown else [whole(dim, 1) for dim in messages(shape, 2)])


def _nodes(graph: memoryview) -> Iterator[tuple[str, str]]:
    """The nodes of a graph and of its functions: name and operator."""
    for node in messages(graph, 1):
        yield text(node, 1), text(node, 2)
    for function in messages(message(graph, 2), 1):
        inside = text(message(function, 1), 1)
        for node in messages(function, 3):
            yield f"{inside}/{text(node, 1)}", text(node, 2)


def refuse_code(folder: Path, trust: bool) -> None:
    """Refuse a SavedModel that is broken, or that runs code when it is loaded or run.

    Raises:
        ModelError: it is broken, or runs code and is not trusted.
    """
    saved = describe(folder)
    if not saved.code or trust:
        return
    shown = ", ".join(f"{kind} '{name}'" for name, kind in saved.code[:_SHOWN])
    raise ModelError.of("tf.code", f"'{folder}' runs Python or touches files: {shown}", where=str(folder),
                        help="add --trust if you know where the model comes from; a network needs none of these")
