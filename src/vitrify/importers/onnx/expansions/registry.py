"""The one registration of expansions: an operator that is nothing but a few of ONNX's own, written out before lowering.

Patterns, folds and lowerings then see ONNX's own operators only. The new nodes carry the label of the file's node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Finding
from vitrify.importers.onnx.reading.checks import needed
from vitrify.importers.onnx.source import Array, SourceGraph, SourceNode

OPSET = 17
"""The operator set in whose words expansions are written."""


class Writer:
    """Writes the nodes that stand for one node of the file."""

    def __init__(self, graph: SourceGraph, node: SourceNode) -> None:
        self.graph, self.node = graph, node
        self.nodes: list[SourceNode] = []
        self.findings: list[Finding] = []
        self._base = next((o for o in node.outputs if o), node.label)
        self._count = 0

    def has(self, index: int) -> bool:
        """True when the optional input at ``index`` is given."""
        return index < len(self.node.inputs) and self.node.inputs[index] != ""

    def name(self, index: int) -> str:
        """The name of the input at ``index``, '' when it is left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else ""

    def needed(self, index: int) -> str:
        """The name of an input that must be there.

        Raises:
            ModelError: it is missing.
        """
        if not self.has(index):
            raise self.node.problem(f"input {index} is missing; the node has {len(self.node.inputs)}")
        return self.node.inputs[index]

    def array(self, index: int) -> Array | None:
        """The input at ``index`` when it is a constant of the graph."""
        return self.graph.constants.get(self.name(index))

    def known(self, index: int, what: str) -> Array:
        """The input at ``index``, which must be a constant of the graph.

        Raises:
            UnsupportedError: it is computed at run time.
        """
        found = self.graph.constants.get(self.needed(index))
        if found is None:
            raise self.node.unsupported(
                f"{what} (input '{self.name(index)}') is computed at run time; only a constant is taken"
            )
        return found

    def constant(self, value: Array | Sequence[int] | float, dtype: Any = None) -> str:
        """Add a constant; integers are int64 and numbers float32 unless an array says otherwise."""
        array = np.asarray(value, dtype)
        if not isinstance(value, np.ndarray) and dtype is None:
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        name = self._fresh("const")
        self.graph.constants[name] = array
        return name

    def add(self, kind: str, *inputs: str, outputs: int = 1, opset: int = OPSET, **attributes: Any) -> str:
        """Add a node and return the name of its first output; further ones are ``NAME:1`` and so on.

        ``opset`` says in which operator set's sense; attributes that are None are left out.
        """
        first = self._fresh(kind.lower())
        names = [first, *(f"{first}:{i}" for i in range(1, outputs))]
        self.nodes.append(
            SourceNode(
                kind,
                self.node.name or self._base,
                list(inputs),
                names,
                {k: v for k, v in attributes.items() if v is not None},
                opset=opset,
                group=self.node.group or (self.node,),
            )
        )
        return first

    def tell(self, finding: Finding) -> None:
        """Leave a finding with the import."""
        self.findings.append(finding)

    def result(self, names: Sequence[str]) -> list[SourceNode]:
        """The nodes, those that make ``names`` renamed to the outputs of the file's node."""
        renamed: dict[str, str] = {}
        for output, name in zip(self.node.outputs, names, strict=False):
            if not output:
                continue
            if name in renamed or not any(name in n.outputs for n in self.nodes):
                name = self.add("Identity", renamed.get(name, name))
            renamed[name] = output
        for node in self.nodes:
            node.inputs = [renamed.get(n, n) for n in node.inputs]
            node.outputs = [renamed.get(n, n) for n in node.outputs]
        return self.nodes

    def _fresh(self, what: str) -> str:
        self._count += 1
        return f"{self._base}/{what}_{self._count}"


Expansion = Callable[[Writer, SourceNode], "str | Sequence[str]"]
EXPANSIONS: dict[str, Expansion] = {}
"""Every expansion by operator name, with its domain unless that is ONNX's own; filled by ``@expansion`` alone."""


def expansion(*kinds: str) -> Callable[[Expansion], Expansion]:
    """Register a function that writes out the operators ``kinds`` and returns the names of the results.

    Raises:
        TypeError: a kind is registered already.
    """

    def register(function: Expansion) -> Expansion:
        for kind in kinds:
            if kind in EXPANSIONS:
                raise TypeError(
                    f"{kind} is expanded twice: in {EXPANSIONS[kind].__module__} and in {function.__module__}"
                )
            EXPANSIONS[kind] = function
        return function

    return register


def expand(graph: SourceGraph) -> tuple[list[Finding], list[tuple[SourceNode, VitrifyError]]]:
    """Write out every needed node that has an expansion, in place.

    Returns:
        What is worth telling, and the nodes that could not be written out, which are left out of the graph, with why.
    """
    if not any(node.full_kind in EXPANSIONS for node in graph.nodes):
        return [], []
    findings: list[Finding] = []
    failed: list[tuple[SourceNode, VitrifyError]] = []
    nodes: list[SourceNode] = []
    for node in needed(graph):
        write = EXPANSIONS.get(node.full_kind)
        if write is None:
            nodes.append(node)
            continue
        writer = Writer(graph, node)
        try:
            names = write(writer, node)
            nodes += writer.result([names] if isinstance(names, str) else names)
            findings += writer.findings
        except VitrifyError as error:
            failed.append((node, error))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            failed.append((node, node.problem(f"its inputs and attributes do not fit each other: {error}")))
    graph.nodes[:] = nodes
    return findings, failed
