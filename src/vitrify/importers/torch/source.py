"""A PyTorch model as the exporters take it: what is called, its inputs by name, and what its file says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vitrify.core.findings import Finding

Dim = int | str
"""An extent, or the name of a dimension that the caller gave an extent."""


@dataclass
class TorchSource:
    """A model that is to be exported.

    ``program`` is an exported program, else ``module`` is what is called. ``inputs`` are example tensors by the names
    that the ONNX model's inputs get, in the order of the arguments. ``label`` names the model in messages.

    Attributes:
        shapes: by input, the shape that the ONNX model declares; without one, that of the example.
        by_name: ``inputs`` are keyword arguments.
        arrange: makes the positional and keyword arguments from the tensors, where they are not simply those.
        metadata: what the file says of the model, for the ONNX model's metadata.
        findings: what was assumed.
        reads_values: Python code of the module reads values that depend on the inputs.
    """

    label: str
    inputs: dict[str, Any]
    module: Any = None
    program: Any = None
    shapes: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    by_name: bool = False
    arrange: Callable[[list[Any]], tuple[tuple[Any, ...], dict[str, Any]]] | None = None
    outputs: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    reads_values: bool = False
    _callee: Any = None

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The example inputs as the call takes them."""
        if self.arrange is not None:
            return self.arrange(list(self.inputs.values()))
        return ((), dict(self.inputs)) if self.by_name else (tuple(self.inputs.values()), {})

    @property
    def callee(self) -> Any:
        """A module to run or trace."""
        if self._callee is None:
            self._callee = self.module if self.program is None else _runnable(self.program)
        return self._callee


def _runnable(program: Any) -> Any:
    """The program as a module. Tracing wants to change its mode, which it refuses, though it has none."""
    module = program.module()
    module.train = lambda mode=True: module
    module.eval = lambda: module
    return module
