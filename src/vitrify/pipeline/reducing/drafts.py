"""What the search needs of a model in any format: some of its nodes as a model, smaller sizes, other weights.

A draft is a value: what changes it gives another one. Every set of nodes is a model: what they read and do not make
becomes its inputs, what nobody among them reads its outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


class CannotCutError(Exception):
    """There is no such draft: a shape is not known, or an operator does not take it."""


class NodeView(NamedTuple):
    """One node: its kind, what messages call it, and the values it reads and makes, without constants."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class InputView(NamedTuple):
    """One input of a draft: the name it has now, that of the user's tensor, and its type (numpy's name)."""

    name: str
    source: str
    dtype: str
    shape: Shape


class Draft(Protocol):
    """A model that is being reduced."""

    suffix: str

    @property
    def nodes(self) -> list[NodeView]:
        """The nodes in an order in which they can run."""

    @property
    def inputs(self) -> list[InputView]:
        """What it takes."""

    @property
    def weights(self) -> dict[str, Array]:
        """The constants whose values may be others: what is no shape, axis or index."""

    @property
    def extents(self) -> list[int]:
        """The sizes above 1 that inputs and constants have, largest first."""

    def keep(self, chosen: Sequence[int]) -> Self:
        """Return the draft of the nodes with these numbers.

        Raises:
            CannotCutError: what they read has no known shape.
        """

    def with_inputs(self, shapes: Mapping[str, Shape]) -> Self:
        """Return the draft with inputs of other shapes.

        Raises:
            CannotCutError: an operator does not take them.
        """

    def with_extent(self, old: int, new: int) -> Self:
        """Return the draft with each size ``old`` made ``new``, constants cut to it.

        Raises:
            CannotCutError: an operator does not take it.
        """

    def with_weights(self, arrays: Mapping[str, Array]) -> Self:
        """Return the draft with other values in some weights."""

    def plain(self) -> Self:
        """Return the draft without names, descriptions and metadata."""

    def data(self) -> bytes:
        """The file's content."""


def open_draft(path: Path, shapes: Mapping[str, Any]) -> Draft:
    """Read a model to be reduced.

    Raises:
        VitrifyError: it is neither ONNX nor TFLite, or cannot be read.
    """
    from vitrify.core.errors import UsageError
    from vitrify.pipeline.steps import is_tflite

    if is_tflite(path):
        from vitrify.pipeline.reducing.tflite_draft import read_tflite

        return read_tflite(path)
    if path.suffix.lower() not in (".onnx", ".ort", "") and not _looks_like_onnx(path):
        raise UsageError.of("reduce.format", f"{path} is neither an ONNX nor a TFLite file", where=str(path),
                            help="`vitrify build` keeps the ONNX or TFLite form of models of other formats; give that")
    from vitrify.pipeline.reducing.onnx_draft import read_onnx

    return read_onnx(path, shapes)


def _looks_like_onnx(path: Path) -> bool:
    from vitrify.importers.onnx import match

    with path.open("rb") as stream:
        return match(stream.read(16), path.stat().st_size) and path.suffix.lower() not in (".pt", ".pth", ".h5")


def cropped(array: Array, shape: Shape) -> Array:
    """Return the first values of an array along each axis; what is missing is taken again from the beginning."""
    if len(shape) != array.ndim:
        return np.resize(array, shape)
    for axis, extent in enumerate(shape):
        if array.shape[axis] != extent:
            array = np.take(array, np.arange(extent) % max(1, array.shape[axis]), axis)
    return np.ascontiguousarray(array)
