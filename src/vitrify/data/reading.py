"""Which file is read how: what each ending stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.arrays import NpySource, NpzSource
from vitrify.data.audio import WavSource
from vitrify.data.lists import JSON, JsonSource
from vitrify.data.preprocess import PictureShape, Preprocess, read_picture
from vitrify.data.safetensors import SafetensorsSource
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]

PICTURES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})


class Source(Protocol):
    """Samples in one file."""

    def __len__(self) -> int:
        """How many there are."""

    def sample(self, index: int) -> dict[str, Array]:
        """Read one, by input name."""


Opener = Callable[[Path, Sequence[InputBinding], Preprocess], Source]


class PictureSource:
    """One picture."""

    def __init__(self, path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> None:
        shape = PictureShape.of(tuple(inputs[0].shape))
        if len(inputs) > 1 or shape is None:
            raise not_pictures(inputs)
        self._path, self._binding, self._preprocess, self._shape = path, inputs[0], preprocess, shape

    def __len__(self) -> int:
        return 1

    def sample(self, index: int) -> dict[str, Array]:
        """Read the picture."""
        return {self._binding.name: read_picture(self._path, self._preprocess, self._shape)}


SOURCES: Mapping[str, Opener] = {
    **dict.fromkeys(PICTURES, PictureSource), ".npy": NpySource, ".npz": NpzSource, ".wav": WavSource,
    ".safetensors": SafetensorsSource, JSON: JsonSource}
"""How the file of each ending is read."""

KNOWN = frozenset(SOURCES) - {JSON}
"""What is taken from a folder: JSON beside pictures says other things about them."""

SOUNDS = frozenset({".wav"})
ARRAYS = KNOWN - PICTURES
"""Files with any number of samples."""


def suffix(path: Path | str) -> str:
    """The ending that says what a file is."""
    return Path(path).suffix.lower()


def source_of(path: Path, inputs: Sequence[InputBinding], preprocess: Preprocess) -> Source:
    """Open the samples of one file.

    Raises:
        DataError: it cannot be read, or does not fit the inputs.
    """
    return SOURCES[suffix(path)](path, inputs, preprocess)


def not_pictures(inputs: Sequence[InputBinding]) -> DataError:
    """The error of pictures for a model that takes none."""
    listed = ", ".join(f"'{i.name}' {i.dtype}[{','.join(map(str, i.shape))}]" for i in inputs)
    return DataError(Finding(code="data.not_pictures", headline=f"pictures do not fit the model's inputs: {listed}",
                             why="pictures need one input [1,C,H,W] or [1,H,W,C] with 1 or 3 channels",
                             help="give a folder of .npy files, or .npz files with an array for each input name; for "
                                  "several inputs a folder may hold a folder for each, named like the input"))
