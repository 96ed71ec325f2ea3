"""ONNX models into the IR: read safely, fold the shape arithmetic, lower the rest a family per file.

The way: ``reader`` (file to plain objects) → ``checks`` (is it a graph at all) → ``shapes`` (static inputs) →
``driver`` (walk, fold or lower each node) → a graph of TFLite operators in the source's own layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitrify.ir import Model


def match(head: bytes, size: int) -> bool:
    """True when the bytes look like a serialized ``ModelProto``: a known first field and a plausible length.

    ONNX has no magic number. Field 1 (``ir_version``) is a varint and comes first from every known writer; files that
    begin with another field of ``ModelProto`` (producer, graph, opset) are accepted by its tag.
    """
    return len(head) >= 2 and ((head[0] == 0x08 and head[1] < 0x40) or head[0] in (0x12, 0x1A, 0x22, 0x3A, 0x42))


def load(path: Path, sizes: Mapping[str, Sequence[int] | int], values: Mapping[str, Any]) -> Model:
    """Import an ONNX file (see ``vitrify.importers.load``)."""
    from vitrify.importers.onnx.driver import import_model
    from vitrify.importers.onnx.reading.reader import read

    return import_model(read(path), sizes, values)
