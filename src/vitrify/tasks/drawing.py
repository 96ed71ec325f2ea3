"""Drawing: an input array as a picture, a map laid over it, boxes on it. PNG bytes come out."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.tasks.detection import Box

if TYPE_CHECKING:
    from PIL.Image import Image

Array = np.ndarray[Any, np.dtype[Any]]

LARGEST = 640
"""Longer sides are shrunk: pages stay small."""
SMALLEST = 224
OPAQUE = 0.6
"""How far the map covers the picture where it is highest: what is below stays readable."""
COLORS = ("#ff4d4f", "#36cfc9", "#ffc53d", "#9254de", "#73d13d", "#40a9ff", "#ff85c0", "#d4b106")


def picture(values: Array, mean: Sequence[float], std: Sequence[float], *, bgr: bool = False) -> Array:
    """Return uint8[H,W,3] of an input [H,W,C] that was prepared as ``(x / 255 - mean) / std``."""
    pixels = values.astype(np.float32) * np.asarray(std, np.float32) + np.asarray(mean, np.float32)
    if pixels.shape[-1] == 1:
        pixels = np.repeat(pixels, 3, axis=-1)
    pixels = pixels[..., ::-1] if bgr else pixels
    drawn: Array = np.clip(np.rint(pixels * 255), 0, 255).astype(np.uint8)
    return drawn


def heat(ground: Array, values: Array, low: float, high: float) -> Array:
    """Lay a map [h,w] over a picture [H,W,3]: dark where it is ``low``, warm and opaque where it is ``high``."""
    from PIL import Image

    share = np.clip((values.astype(np.float32) - low) / max(high - low, 1e-12), 0, 1)
    size = (ground.shape[1], ground.shape[0])
    share = np.asarray(Image.fromarray(np.rint(share * 255).astype(np.uint8)).resize(size), np.float32)[..., None] / 255
    warm = np.concatenate([np.clip(1.6 * share, 0, 1), np.clip(1.6 * share - 0.5, 0, 1), 0.1 * (1 - share)], axis=-1)
    grey = ground.mean(axis=-1, keepdims=True) / 255 * 0.55
    mixed: Array = np.rint(255 * (grey * (1 - OPAQUE * share) + warm * OPAQUE * share)).clip(0, 255).astype(np.uint8)
    return mixed


def boxes(ground: Array, found: Sequence[Box], names: Sequence[str] = ()) -> Array:
    """Draw boxes with class and score on a picture [H,W,3]."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(ground)
    pen = ImageDraw.Draw(image)
    width = max(2, round(max(ground.shape[:2]) / 240))
    for box in found:
        color = COLORS[box.label % len(COLORS)]
        left, right = sorted((box.left, box.right))
        top, bottom = sorted((box.top, box.bottom))
        pen.rectangle((left, top, right, bottom), outline=color, width=width)
        name = names[box.label] if box.label < len(names) else f"class {box.label}"
        text = f"{name} {box.score:.2f}"
        edges = pen.textbbox((left, top), text)
        high = edges[3] - edges[1] + 4
        pen.rectangle((left, top - high, edges[2] + 4, top), fill=color)
        pen.text((left + 2, top - high), text, fill="black")
    return np.asarray(image)


def png(pixels: Array) -> bytes:
    """Return a picture [H,W,3] as PNG, at a size that can be looked at."""
    from PIL import Image

    image: Image.Image = Image.fromarray(pixels)
    image = _scaled(image)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def _scaled(image: Image) -> Image:
    from PIL import Image as Images

    side = max(image.size)
    if side > LARGEST:
        return image.resize(_size(image, LARGEST / side), Images.Resampling.LANCZOS)
    if side < SMALLEST:
        return image.resize(_size(image, -(-SMALLEST // side)), Images.Resampling.NEAREST)
    return image


def _size(image: Image, factor: float) -> tuple[int, int]:
    return max(1, round(image.width * factor)), max(1, round(image.height * factor))
