"""Try a TFLite file once in LiteRT's reference kernels, before anything is built on it.

Compilers accept files that the runtime refuses or dies of, so loading one is a check of its own. What LiteRT says is
told in the names of the user's nodes; where it dies without a word, shorter and shorter pieces of the model find the
node.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES, Worker
from vitrify.ir import Graph, Model, Node
from vitrify.ops.checking import check_graph, check_node
from vitrify.runtimes.base import stamp
from vitrify.runtimes.litert.spec import Details, Spec

Array = np.ndarray[Any, np.dtype[Any]]

_SESSION = "vitrify.runtimes.litert.session"
_NODE = re.compile(r"Node number (\d+) \((.*?)\) failed to (?:prepare|invoke)\.?")
_CUSTOM = re.compile(r"unresolved custom op: ([^\s.]+)")
_VALUES = re.compile(r"\bzero\b|!= (?:0|zero_point)\b|out of (?:bounds|range)|negative", re.IGNORECASE)
_WHOLE = (0, 1)        # whole numbers that inputs are tried with
_GARBAGE = re.compile(r"(?<=scale) \(-?\d+ != -?\d+\)")      # LiteRT prints the bits of floats as integers there
_ANOTHER = "make the file again from its source model, without this node or with other operators in its place"
_TRIED_STEPS = 20      # pieces tried at most: enough for a million nodes
_SUSPECTS = 4          # nodes that break a rule are tried first


class Limits(NamedTuple):
    """What one try may take."""

    seconds: float | None = 600.0
    memory_bytes: int = DEFAULT_MEMORY_BYTES


def prepare(path: Path | str, *, limits: Limits = Limits(), invoke: bool = True) -> list[Finding]:
    """Check every node, then load, allocate and run the file once, in reference kernels, in a child process.

    Which values it runs on is our choice, so that what only some values make impossible, such as a division by zero, is
    a warning.

    Args:
        path: a .tflite file.
        limits: what the try may take.
        invoke: False leaves the run out: quick, and enough for a float file, whose kernels fail while they prepare.

    Returns:
        What is wrong, in the user's names; empty when LiteRT runs the file. Rules that a node breaks although LiteRT
        runs it are warnings.
    Raises:
        VitrifyError: the file cannot be read at all.
    """
    from vitrify.tflite import read

    file = Path(path)
    model = read(file)
    broken = [finding for graph in model.graphs for finding in check_graph(graph)]
    refusal = _refusal(file, limits, invoke)
    if refusal is None or _is_of_values(refusal):
        told = [] if refusal is None else [replace(_explained(refusal, model, file), severity=Severity.WARNING,
                                                   why="the values tried were made up; real ones may do")]
        return [*(replace(f, severity=Severity.WARNING) if f.severity is Severity.ERROR else f for f in broken), *told]
    if refusal.code == "process.died":
        return _joined(broken, *_died(refusal, model, file, limits))
    return _joined(broken, _explained(refusal, model, file), _node_of(refusal, model))


def _joined(broken: list[Finding], told: Finding, node: Node | None) -> list[Finding]:
    """Tell what LiteRT said beside the rules that are broken; of a node that breaks one, the rule says more."""
    marks = (f"node '{node.name}'",) if node is not None else ()
    about = next((n for n, f in enumerate(broken) if f.severity is Severity.ERROR and f.where.startswith(marks)
                  and marks), None)
    if about is None:
        return [*broken, told]
    rule = broken[about]
    broken[about] = replace(rule, why="\n".join(filter(None, (rule.why, told.headline))))
    return broken


def _refusal(file: Path, limits: Limits, invoke: bool = True) -> Finding | None:
    """Run the file once; return what went wrong."""
    spec = Spec(str(file.resolve()), stamp(file), "reference", False, 1)
    with Worker(f"LiteRT on {file.name}", seconds=limits.seconds, memory_bytes=limits.memory_bytes) as worker:
        try:
            details: Details = worker.call(f"{_SESSION}:details", spec)
        except VitrifyError as error:
            return error.findings[0]
        refusal = None
        for whole in _WHOLE if invoke else ():
            try:
                worker.call(f"{_SESSION}:invoke", spec, [_probe(entry, whole) for entry in details.inputs], [])
            except VitrifyError as error:
                refusal = refusal or error.findings[0]
                if error.findings[0].code not in ("litert.invoke", "process.died"):
                    break
            else:
                return None
    return refusal


def _probe(details: dict[str, Any], whole: int) -> Array:
    """Return values for an input that no usual operator stumbles over: neither zero nor large, as a real number.

    What is not quantized may be an index or a divisor, which ``whole`` suits either the one or the other.
    """
    dtype = np.dtype(details["dtype"])
    scales, zeros = (details["quantization_parameters"][key] for key in ("scales", "zero_points"))
    if np.issubdtype(dtype, np.floating):
        value: float = 0.5
    elif np.issubdtype(dtype, np.integer) and len(scales):
        limits = np.iinfo(dtype)
        zero = int(zeros[0]) if len(zeros) else 0
        ahead = limits.max - zero >= zero - limits.min
        value = zero + ((limits.max - zero) // 2 if ahead else -((zero - limits.min) // 2))
    else:
        value = whole
    return np.full(details["shape"], value, dtype)


def _is_of_values(refusal: Finding) -> bool:
    return refusal.code == "litert.invoke" and _VALUES.search(refusal.headline) is not None


def _node_of(refusal: Finding, model: Model) -> Node | None:
    """The node that LiteRT's message numbers, the innermost of several."""
    match = next(iter(reversed(list(_NODE.finditer(refusal.headline)))), None)
    nodes = model.main.nodes
    return nodes[int(match[1])] if match is not None and int(match[1]) < len(nodes) else None


def _explained(refusal: Finding, model: Model, file: Path) -> Finding:
    """Tell LiteRT's message in the names of the user's model."""
    node = _node_of(refusal, model)
    if node is None:
        return replace(refusal, where=str(file))
    reason = _NODE.sub("", refusal.headline.split(": ", 1)[-1]).strip(" .\n")
    reason = _GARBAGE.sub("", reason)
    custom = _CUSTOM.search(reason)
    if custom is not None:
        return Finding(code="litert.custom-operator", where=_place(node, file),
                       headline=f"LiteRT does not know the custom operator '{custom[1]}' of node '{node.name}'",
                       why="it runs only where an implementation of it is registered, as on a board's delegate",
                       help="export the model without this node, and do its work in the application")
    doing = "run" if refusal.code == "litert.invoke" else "prepare"
    return Finding(code=refusal.code, headline=f"LiteRT cannot {doing} {node.op.kind} '{node.name}': {reason}",
                   where=_place(node, file), help=_ANOTHER)


def _place(node: Node, file: Path) -> str:
    source = f", from {node.origin}" if node.origin.sources and str(node.origin) != node.name else ""
    outputs = ", ".join(f"'{t.name}' {t.type}" for t in node.outputs)
    return f"{file.name}, node '{node.name}'{source}, output {outputs}"


def _died(refusal: Finding, model: Model, file: Path, limits: Limits) -> tuple[Finding, Node | None]:
    """Name the node that LiteRT dies of: the last of the shortest beginning of the model that kills it."""
    node = _deadly(model, file, limits)
    if node is None:
        return replace(refusal, where=str(file), help=_ANOTHER), None
    how = refusal.headline.rpartition(" died of ")[2]
    return replace(refusal, headline=f"LiteRT died of {how} at {node.op.kind} '{node.name}'", help=_ANOTHER,
                   where=_place(node, file)), node


def _deadly(model: Model, file: Path, limits: Limits) -> Node | None:
    from vitrify.tflite import read

    nodes = model.main.nodes
    alive, dead = 0, len(nodes)
    suspects = [number for number, node in enumerate(nodes) if check_node(node)][:_SUSPECTS]
    with temporary_folder() as folder:
        for _ in range(_TRIED_STEPS):
            if dead - alive <= 1:
                break
            likely = [n for s in suspects for n in (s + 1, s) if alive < n < dead]
            count = likely[0] if likely else (alive + dead) // 2
            refusal = _refusal(_beginning(read(file), count, Path(folder)), limits)
            if refusal is not None and refusal.code == "process.died":
                dead = count
            else:
                alive = count
    return nodes[dead - 1] if nodes else None


def _beginning(model: Model, count: int, folder: Path) -> Path:
    """Write the first ``count`` nodes of the main graph as a model; all that they leave unread is given out."""
    from vitrify.tflite import write

    graph = model.main
    keep = graph.nodes[:count]
    graph.set_outputs([t for node in keep for t in node.outputs if _unread(t.users, keep)] or [keep[-1].output])
    for node in reversed(graph.nodes[count:]):
        graph.remove(node)
    _drop_annotations(model, graph)
    path = folder / f"first-{count}.tflite"
    write(model, path)
    return path


def _unread(users: list[Node], keep: list[Node]) -> bool:
    kept = set(map(id, keep))
    return not any(id(user) in kept for user in users)


def _drop_annotations(model: Model, graph: Graph) -> None:
    """Forget what speaks of the whole model: signatures and the source's interface no longer fit."""
    model.signatures = [s for s in model.signatures if model.graphs[s.graph] is not graph]
    model.interface = None
