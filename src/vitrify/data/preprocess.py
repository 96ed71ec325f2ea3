"""From a picture to the array that a model takes, as plain data that is stored in the model made with it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding
from vitrify.ir import Model
from vitrify.ir.remembering import store, stored

if TYPE_CHECKING:
    from PIL.Image import Image

Array = np.ndarray[Any, np.dtype[Any]]

MAX_PIXELS = 120_000_000
"""Larger pictures are refused before they are decoded: 120 million pixels need 360 MB as RGB."""


PIXEL = 1 / 255
"""What pixels of 0..255 are multiplied by to be in 0..1."""

METADATA = "vitrify.preprocess"
"""The entry of a model's metadata that says how what it was calibrated on became its input."""


class Preprocess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a picture, or a recording, becomes a model's input.

    ``fit`` brings a picture to the model's size: ``stretch`` both sides, ``letterbox`` keep the aspect and fill the
    border with ``pad``, ``crop`` take the middle square-like window that covers ``crop_fraction`` of it. Values are
    then ``(pixel * scale - mean) / std``: with the default scale, ``mean`` and ``std`` are in units of 0..1. They have
    one value or one per channel; ``pad`` is in units of 0..1.

    ``layout`` says how arrays stand in their files where that is not as the model takes them. ``rate`` is the sample
    rate that the model takes, 0 where it is not told; recordings of another are refused, or resampled with
    ``resample``. ``hop`` is the distance of the frames that a recording is cut into, 0 for frames side by side.
    """

    fit: Literal["stretch", "letterbox", "crop"] = "stretch"
    color: Literal["rgb", "bgr", "gray"] = "rgb"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    interpolation: Literal["nearest", "bilinear", "bicubic"] = "bilinear"
    crop_fraction: float = 0.875
    pad: float = 114 / 255
    scale: float = PIXEL
    layout: Literal["model", "nhwc", "nchw"] = "model"
    rate: int = 0
    hop: int = 0
    resample: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise UsageError.of("preprocess.scale", f"scale must be above 0, got {self.scale:g}")
        if min(self.rate, self.hop) < 0:
            raise UsageError.of("preprocess.rate", f"rate and hop must not be below 0, got {self.rate} and {self.hop}")
        if self.resample and not self.rate:
            raise UsageError.of("preprocess.resample", "resampling needs the sample rate that the model takes")
        if any(not value > 0 for value in self.std):
            raise UsageError.of("preprocess.std", f"std must be above 0, got {list(self.std)}")
        if not 0 < self.crop_fraction <= 1:
            raise UsageError.of("preprocess.crop", f"crop_fraction must be in (0, 1], got {self.crop_fraction:g}")
        for label, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, 3):
                raise UsageError.of(f"preprocess.{label}", f"{label} takes 1 or 3 values, got {len(values)}")

    @property
    def in_units(self) -> Preprocess:
        """The same with mean and std in units of 0..1."""
        if self.scale == PIXEL:
            return self
        factor = PIXEL / self.scale
        return msgspec.structs.replace(self, scale=PIXEL, mean=tuple(m * factor for m in self.mean),
                                       std=tuple(s * factor for s in self.std))


def remember(model: Model, preprocess: Preprocess) -> None:
    """Write into a model how files become its input."""
    store(model, METADATA, preprocess)


def remembered(model: Model) -> Preprocess | None:
    """Return what a model says of how files become its input, None where it says nothing.

    Raises:
        ModelError: it says something that cannot be read.
    """
    return stored(model, METADATA, Preprocess, "data.remembered",
                  "say how files become inputs with --mean, --std, --fit, --color or --prepare")


class PictureShape(msgspec.Struct, frozen=True):
    """Where height, width and channels are in an input that takes one picture."""

    height: int
    width: int
    channels: int
    channels_first: bool
    batched: bool

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> PictureShape | None:
        """Read ``[1,C,H,W]``, ``[1,H,W,C]`` or the same without batch, C being 1 or 3; None for any other shape."""
        batched = len(shape) == 4 and shape[0] == 1
        inner = shape[1:] if batched else shape
        if len(inner) != 3:
            return None
        if inner[2] in (1, 3) and not (inner[0] in (1, 3) and inner[2] not in (1, 3)):
            return cls(inner[0], inner[1], inner[2], False, batched)
        if inner[0] in (1, 3):
            return cls(inner[1], inner[2], inner[0], True, batched)
        return None


def read_picture(path: Path, preprocess: Preprocess, shape: PictureShape) -> Array:
    """Decode a picture file and bring it into a model's shape; EXIF orientation is honoured.

    Returns:
        float32 array in the layout of the source input.
    Raises:
        DataError: not a picture, damaged, or too large; says which.
    """
    return prepared(_open(path), preprocess, shape)


def picture_of(path: Path) -> Image:
    """Decode a picture file as it is, its EXIF orientation honoured.

    Raises:
        DataError: not a picture, damaged, or too large; says which.
    """
    return _open(path)


def prepared(picture: Image, preprocess: Preprocess, shape: PictureShape) -> Array:
    """Bring a decoded picture into a model's shape."""
    gray = shape.channels == 1 or preprocess.color == "gray"
    fitted = _fit(_flatten(picture, gray), preprocess, shape.width, shape.height)
    pixels = np.asarray(fitted, np.float32)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if preprocess.color == "bgr" and shape.channels == 3:
        pixels = pixels[:, :, ::-1]
    if pixels.shape[2] != shape.channels:
        pixels = np.repeat(pixels, shape.channels, axis=2)
    mean, std = np.asarray(preprocess.mean, np.float32), np.asarray(preprocess.std, np.float32)
    if shape.channels == 1 and max(mean.size, std.size) > 1:
        raise DataError.of("data.preprocess", "mean and std have 3 values, the model's input has 1 channel",
                           help="give one value for each")
    values = (pixels / np.float32(255) if preprocess.scale == PIXEL else pixels * np.float32(preprocess.scale)) - mean
    values /= std
    if shape.channels_first:
        values = values.transpose(2, 0, 1)
    return np.ascontiguousarray(values[None] if shape.batched else values, np.float32)


def pixels_prepared(pixels: Array, preprocess: Preprocess, shape: PictureShape) -> Array:
    """Bring an array of pixels, uint8 [H,W], [H,W,C] or [C,H,W], into a model's shape."""
    from PIL import Image

    first = pixels.ndim == 3 and (preprocess.layout == "nchw" or pixels.shape[2] not in (1, 3))
    array = pixels.transpose(1, 2, 0) if first else pixels
    array = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array
    return prepared(Image.fromarray(np.ascontiguousarray(array)), preprocess, shape)


def holds_pixels(shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """True for an array of 8-bit pictures: [H,W,C] or [C,H,W] with 1 or 3 channels, or several of them."""
    return dtype == np.uint8 and len(shape) in (3, 4) and (shape[-1] in (1, 3) or shape[-3] in (1, 3))


def _open(path: Path) -> Image:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)     # our own limit is checked below
            with Image.open(path) as opened:
                width, height = opened.size
                if width * height > MAX_PIXELS:
                    raise _too_large(path, f"{width} x {height} pixels are above {MAX_PIXELS:,}")
                opened.load()
                return ImageOps.exif_transpose(opened)
    except Image.DecompressionBombError as error:
        raise _too_large(path, f"more pixels than {MAX_PIXELS:,}") from error
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
        reason = "not a picture in a known format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise DataError.of("data.unreadable", f"cannot read {path.name}: {reason}", where=str(path),
                           help="repair or remove the file") from error


def _too_large(path: Path, headline: str) -> DataError:
    return DataError(Finding(code="data.too_large", headline=f"{path.name} is refused: {headline}", where=str(path),
                             help="scale the picture down or remove it"))


def _flatten(picture: Image, gray: bool) -> Image:
    """Bring any mode to 8-bit gray or RGB; 16-bit values are scaled, transparency falls on black."""
    if picture.mode.startswith("I") or picture.mode == "F":
        from PIL import Image

        values = np.asarray(picture, np.float32)
        top = 255.0 if values.max(initial=0.0) <= 255 else 65535.0
        picture = Image.fromarray((values * (255.0 / top)).clip(0, 255).astype(np.uint8))
    return picture.convert("L" if gray else "RGB")


def _fit(picture: Image, preprocess: Preprocess, width: int, height: int) -> Image:
    from PIL import Image

    resample = Image.Resampling[preprocess.interpolation.upper()]
    if preprocess.fit == "stretch":
        return picture.resize((width, height), resample)
    if preprocess.fit == "letterbox":
        scale = min(width / picture.width, height / picture.height)
        inner = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        shade = round(255 * preprocess.pad)
        board = Image.new(picture.mode, (width, height), shade if picture.mode == "L" else (shade,) * 3)
        board.paste(picture.resize(inner, resample), ((width - inner[0]) // 2, (height - inner[1]) // 2))
        return board
    scale = preprocess.crop_fraction * min(picture.width / width, picture.height / height)
    half_width, half_height = width * scale / 2, height * scale / 2
    middle_x, middle_y = picture.width / 2, picture.height / 2
    box = (middle_x - half_width, middle_y - half_height, middle_x + half_width, middle_y + half_height)
    return picture.resize((width, height), resample, box=box)
