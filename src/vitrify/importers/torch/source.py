"""A PyTorch model as the exporters take it: the module, its inputs by name, and what its file says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class TorchSource:
    """A model that is to be exported.

    ``program`` is an exported program, ``module`` what tracing takes; one of them may be missing. ``inputs`` are example
    tensors by the names that the ONNX model's inputs get, in the order of the arguments. ``label`` names it in messages.
    """

    label: str
    inputs: dict[str, Any]
    module: Any = None
    program: Any = None
    outputs: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
