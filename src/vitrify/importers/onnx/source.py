"""The ONNX model as plain objects: no protobuf beyond the reader, attributes as Python values, weights as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.core.findings import Finding

Array = np.ndarray[Any, np.dtype[Any]]
_CONSTANT_FORMS: dict[str, type] = {
    "value": np.ndarray,
    "value_int": int,
    "value_ints": list,
    "value_float": float,
    "value_floats": list,
}


@dataclass
class SourceNode:
    """One ONNX node. ``label`` is what messages call it: its name, or its first output's when it has none.

    ``group`` holds the file's nodes that this one stands for, when several were put together. ``inside`` is the file's
    node whose function body this one is a step of; messages name that one. ``overload`` tells functions of one name
    apart.
    """

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    domain: str = ""
    opset: int = 0
    group: tuple[SourceNode, ...] = ()
    inside: SourceNode | None = None
    overload: str = ""

    @property
    def label(self) -> str:
        """The name, or the first output's when nameless; that of the user's node for a step of its body."""
        if self.inside is not None:
            return self.inside.label
        return self.name or next((o for o in self.outputs if o), self.kind)

    @property
    def full_kind(self) -> str:
        """The kind with its domain when that is not ONNX's own."""
        return f"{self.domain}::{self.kind}" if self.domain else self.kind

    @property
    def outermost(self) -> SourceNode:
        """The file's node: this one, or the one whose body it is a step of."""
        return self if self.inside is None else self.inside.outermost

    @property
    def shown(self) -> str:
        """What messages call the node: kind and label, and which step of a function body it is."""
        if self.inside is not None:
            return f"{self.inside.shown}, step {self.kind}"
        return f"{self.kind} '{self.label}'"

    def problem(self, text: str) -> ModelError:
        """An error that says what of this node is not valid."""
        return ModelError(self._finding("onnx.invalid", text, ""))

    def unsupported(self, text: str, help: str = "") -> UnsupportedError:
        """An error that says what of this node is not done."""
        return UnsupportedError(self._finding("onnx.unsupported-form", text, help))

    def _finding(self, code: str, text: str, help: str) -> Finding:
        return Finding(
            code=code, headline=f"{self.shown}: {text}", where=f"node '{self.label}'", help=help
        )

    def _get(self, name: str, kinds: tuple[type, ...], default: Any, what: str) -> Any:
        value = self.attributes.get(name, default)
        if value is not default and not isinstance(value, kinds):
            raise self.problem(f"attribute '{name}' should be {what}, it is {type(value).__name__}")
        return value

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        value: int = self._get(name, (int,), default, "an integer")
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute, float32 as stored."""
        value: float = self._get(name, (float, int), default, "a number")
        return value

    def string(self, name: str, default: str = "") -> str:
        """A string attribute."""
        value: str = self._get(name, (str,), default, "a string")
        return value

    def ints(self, name: str) -> list[int] | None:
        """A list of integers, None when the attribute is absent."""
        value: list[int] | None = self._get(name, (list,), None, "a list of integers")
        if value is not None and not all(isinstance(v, int) for v in value):
            raise self.problem(f"attribute '{name}' should be a list of integers")
        return value

    def floats(self, name: str) -> list[float] | None:
        """A list of numbers, None when the attribute is absent."""
        value: list[float] | None = self._get(name, (list,), None, "a list of numbers")
        return value

    def graph(self, name: str) -> SourceGraph:
        """A subgraph."""
        value = self.attributes.get(name)
        if not isinstance(value, SourceGraph):
            raise self.problem(f"attribute '{name}' should be a graph")
        return value


@dataclass
class SourceValue:
    """A declared graph input or output; ``dims`` holds an integer, a symbol's name, or None where nothing is said.

    An extent of 0 is as good as nothing said, but is no batch of 1 either.

    ``dtype`` is the numpy type's name; ``dims`` None means that even the rank is open.
    """

    name: str
    dtype: str
    dims: list[int | str | None] | None


@dataclass
class SourceGraph:
    """One ONNX graph with its constants by name."""

    name: str
    nodes: list[SourceNode] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[SourceValue] = field(default_factory=list)
    outputs: list[SourceValue] = field(default_factory=list)

    def subgraphs(self) -> Iterator[tuple[SourceNode, SourceGraph]]:
        """The graphs held by the attributes of the nodes."""
        for node in self.nodes:
            for value in node.attributes.values():
                if isinstance(value, SourceGraph):
                    yield node, value


@dataclass(frozen=True)
class AttributeReference:
    """In a function's body: an attribute that the call gives under ``name``."""

    name: str


@dataclass
class SourceFunction:
    """A function: a body whose inputs, outputs and attributes the call gives, with defaults for attributes."""

    body: SourceGraph
    defaults: dict[str, Any] = field(default_factory=dict)


FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


@dataclass
class SourceModel:
    """An ONNX file's content.

    ``functions`` holds the model's own, ``types`` the element types of constants that are held in wider ones.
    """

    path: str
    graph: SourceGraph
    opset: int
    producer: str = ""
    description: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    functions: dict[FunctionKey, SourceFunction] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


def constant_value(node: SourceNode) -> Array | None:
    """What a Constant node holds; None when that is no number."""
    for name, kind in _CONSTANT_FORMS.items():
        given = node.attributes.get(name)
        if isinstance(given, kind):
            return given if isinstance(given, np.ndarray) else np.array(given, "f4" if "float" in name else "i8")
    return None
