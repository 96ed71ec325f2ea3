"""The rows of models.toml, as both environments read them: PyTorch's, which exports, and Vitrify's, which measures."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / ".cache" / "zoo"

FAMILIES = {"cnn": "CNNs", "yolo": "YOLO", "detector": "Other detectors", "segmentation": "Segmentation",
            "transformer": "Transformers and hybrids", "image to image": "Image to image", "sequence": "Sequences"}
EXPORTERS = {"trace-17": "torch.onnx.export, tracing, opset 17", "trace-13": "torch.onnx.export, tracing, opset 13",
             "trace-11": "torch.onnx.export, tracing, opset 11",
             "dynamo-18": "torch.onnx.export, dynamo, opset 18", "dynamo-20": "torch.onnx.export, dynamo, opset 20"}


REVISION = 1
"""To be raised when builders or weights change what they make: cached files of another revision are built again."""


@dataclass(frozen=True)
class Input:
    """One input: its name, the kind of values it is fed (see samples.py), its shape."""

    name: str
    values: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """One model. ``builder`` is FILE.FUNCTION in builders/; ``ranked`` the detections it sorts by score, 0 for none."""

    name: str
    title: str
    family: str
    builder: str
    inputs: tuple[Input, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    exporter: str = "trace-17"
    note: str = ""
    ranked: int = 0

    @property
    def onnx(self) -> Path:
        """Where the exported file is kept."""
        return CACHE / f"{self.name}.onnx"

    @property
    def samples(self) -> Path:
        """Where its sample inputs are kept: an array per input, with the samples along a new first axis."""
        return CACHE / f"{self.name}.npz"

    @property
    def recipe(self) -> str:
        """A stamp of what decides the exported file."""
        what = (REVISION, self.builder, self.arguments, self.inputs, self.exporter)
        return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


def entries(names: Iterable[str] = ()) -> list[Entry]:
    """Return the rows with these names, all without names.

    Raises:
        SystemExit: a name is not in the table.
    """
    rows = [entry(name, row) for name, row in tomllib.loads((HERE / "models.toml").read_text()).items()]
    wanted = list(names)
    unknown = sorted(set(wanted) - {r.name for r in rows})
    if unknown:
        raise SystemExit(f"not in models.toml: {', '.join(unknown)}")
    return [r for r in rows if not wanted or r.name in wanted]


def entry(name: str, row: dict[str, Any]) -> Entry:
    """Return one row of the table with its defaults filled in."""
    inputs = tuple(Input(n, kind, tuple(shape)) for n, (kind, *shape) in row["inputs"].items())
    return Entry(name, row["title"], row["family"], row["builder"], inputs, row.get("arguments", {}),
                 row.get("exporter", "trace-17"), row.get("note", ""), row.get("ranked", 0))
