"""TFLite files: they hold the IR's own operators, so reading is importing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitrify.core.errors import UsageError
from vitrify.importers.sizes import unknown_dimension
from vitrify.ir import Model

IDENTIFIER = b"TFL3"
BATCH = "batch"
"""What a TensorFlow model's first dimension is called, also when it has become a TFLite file."""


def match(head: bytes, size: int) -> bool:
    """True when the flatbuffer's file identifier says TFLite."""
    return head[4:8] == IDENTIFIER


def load(path: Path, sizes: Mapping[str, Sequence[int] | int], values: Mapping[str, Any]) -> Model:
    """Read a TFLite file. Its shapes are fixed in the file, so ``sizes`` must agree with them.

    Raises:
        ModelError: the file is broken.
        UsageError: a shape or value was given that the file does not have.
    """
    from vitrify import tflite
    from vitrify.data.binding import identity_interface

    model = tflite.read(path)
    _check_sizes(model, path, sizes, values)
    if model.interface is None:
        model.interface = identity_interface(model)
    model.source = model.source or str(path)
    return model


def _check_sizes(model: Model, path: Path, sizes: Mapping[str, Sequence[int] | int], values: Mapping[str, Any]) -> None:
    known = {t.name: t.shape for t in model.main.inputs}
    if len(known) == 1:
        known[""] = next(iter(known.values()))
    if values:
        raise UsageError.of(
            "tflite.values",
            f"inputs of a TFLite file cannot be replaced by constants: {', '.join(map(repr, values))}",
            where=str(path),
        )
    for name, shape in sizes.items():
        if isinstance(shape, int):
            if name == BATCH and model.interface is not None and model.interface.source_format == "tensorflow" \
                    and all(t.shape[:1] == (shape,) for t in model.main.inputs):
                continue
            raise UsageError([unknown_dimension(name, "those of a TFLite file have no names", str(path),
                                                help="convert the source model again with --dim")])
        if name not in known:
            raise UsageError.of(
                "shape.unknown-input",
                f"there is no input '{name}'; the inputs are {', '.join(repr(t.name) for t in model.main.inputs)}",
                where=str(path),
            )
        if tuple(shape) != known[name]:
            raise UsageError.of(
                "shape.fixed",
                f"input '{name}' is fixed at {list(known[name])} in a TFLite file, not {list(shape)}",
                where=str(path),
                help="convert the source model again with --shape",
            )
