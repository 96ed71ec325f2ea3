"""What a model is run on, one after the other: pictures, frames of a video, a recording's frames, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding
from vitrify.data.audio import WavSource
from vitrify.data.preprocess import PictureShape, Preprocess, picture_of, prepared
from vitrify.data.reading import PICTURES, SOUNDS, source_of, suffix
from vitrify.data.samples import BAD_FILES, require_place, sample_files
from vitrify.ir.interface import InputBinding, Interface
from vitrify.tasks.drawing import picture
from vitrify.tasks.frames import Frame

Array = np.ndarray[Any, np.dtype[Any]]

VIDEOS = frozenset({".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v"})


@dataclass(frozen=True)
class Item:
    """One input by the source's names; ``ground`` is what is drawn on, ``frame`` the way back to it."""

    name: str
    inputs: Mapping[str, Array]
    ground: Array | None = None
    frame: Frame | None = None


def items_of(place: Path, interface: Interface, how: Preprocess, skipped: list[Finding]) -> Iterator[Item]:
    """Yield what is in a file or a folder; files that cannot be read among others are told in ``skipped``.

    Raises:
        VitrifyError: there is nothing, or nothing that the model takes.
    """
    require_place(place)
    if place.is_dir():
        files = sample_files(place)[0]
        if not files:
            raise UsageError.of("data.empty", f"no picture, recording or array in {place}", where=str(place),
                                help="give .jpg, .png, .wav, .npy or .npz files, or a folder of them")
        for file in files:
            try:
                yield from _of_file(file, interface, how)
            except DataError as error:
                if not all(finding.code in BAD_FILES for finding in error.findings):
                    raise
                skipped += error.findings
        return
    yield from _of_file(place, interface, how)


def _of_file(path: Path, interface: Interface, how: Preprocess) -> Iterator[Item]:
    kind = suffix(path)
    if kind in PICTURES:
        yield _of_picture(path.name, picture_of(path), interface, how)
    elif kind in VIDEOS:
        for number, image in enumerate(frames_of(path)):
            yield _of_picture(f"{path.stem}_{number:06d}.png", image, interface, how)
    elif kind in SOUNDS:
        source = WavSource(path, [sound_input(interface)], how)
        for number in range(len(source)):
            yield Item(f"{path.name} {number}", source.sample(number))
    else:
        try:
            arrays = source_of(path, interface.inputs, how)
        except KeyError as error:
            raise UsageError.of("run.input", f"{path.name} is no picture, video, recording or array", where=str(path),
                                help="give a .jpg, .png, .wav, .npy or .npz file, or a folder of those") from error
        for number in range(len(arrays)):
            inputs = arrays.sample(number)
            yield Item(f"{path.name} {number}" if len(arrays) > 1 else path.name, inputs, *_shown(inputs, how))


def _of_picture(name: str, image: Any, interface: Interface, how: Preprocess) -> Item:
    binding, shape = picture_input(interface)
    ground = np.asarray(image.convert("RGB"))
    frame = Frame.of(how, (shape.height, shape.width), (image.height, image.width))
    return Item(name, {binding.name: prepared(image, how, shape)}, ground, frame)


def _shown(inputs: Mapping[str, Array], how: Preprocess) -> tuple[Array | None, Frame | None]:
    """An array that looks like a picture, made one again."""
    values = next(iter(inputs.values()))
    shape = PictureShape.of(tuple(values.shape))
    if shape is None or values.dtype.kind != "f" or min(shape.height, shape.width) < 8:
        return None, None
    image = values.reshape(values.shape[-3:])
    image = image.transpose(1, 2, 0) if shape.channels_first else image
    size = (shape.height, shape.width)
    units = how.in_units
    return picture(image, units.mean, units.std, bgr=how.color == "bgr"), Frame(size, size)


def picture_input(interface: Interface) -> tuple[InputBinding, PictureShape]:
    """The input that takes a picture.

    Raises:
        DataError: none does.
    """
    for binding in interface.inputs:
        shape = PictureShape.of(tuple(binding.shape))
        if shape is not None:
            return binding, shape
    listed = ", ".join(f"'{b.name}' [{','.join(map(str, b.shape))}]" for b in interface.inputs)
    raise DataError.of("data.not_pictures", f"pictures do not fit the model's inputs: {listed}",
                       help="give arrays as .npy or .npz files")


def sound_input(interface: Interface) -> InputBinding:
    """The input that takes a recording's frame: the longest with one extent above 1."""
    rows = [b for b in interface.inputs if sum(extent > 1 for extent in b.shape) == 1]
    return max(rows, key=lambda b: max(b.shape)) if rows else interface.inputs[0]


def frames_of(path: Path) -> Iterator[Any]:
    """The pictures of a video, one after the other.

    Raises:
        UsageError: the reader is not installed.
        DataError: it is no video.
    """
    try:
        import av
    except ImportError as error:
        raise UsageError.of("run.video", f"reading {path.name} needs the package 'av'", where=str(path),
                            help="pip install 'vitrify[video]', or give a folder of the frames as pictures") from error
    try:
        with av.open(str(path)) as container:
            decoded: Any = container.decode(video=0)
            for frame in decoded:
                yield frame.to_image()
    except (av.FFmpegError, IndexError) as error:
        raise DataError.of("data.unreadable", f"cannot read {path.name}: {error}", where=str(path)) from error
