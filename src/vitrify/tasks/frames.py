"""From places in a model's input back to places in the picture that was made that input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitrify.data.preprocess import Preprocess
from vitrify.tasks.found import Found, LabelMap, Objects, Plane

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Frame:
    """The input is the picture times ``scale`` (x, y), moved by ``offset`` (x, y); sizes are (height, width)."""

    size: tuple[int, int]
    picture: tuple[int, int]
    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, how: Preprocess, size: tuple[int, int], picture: tuple[int, int]) -> Frame:
        """The frame of a picture [height, width] that ``how`` brings to an input of ``size``."""
        high, wide = picture
        if how.fit == "stretch":
            return cls(size, picture, (size[1] / wide, size[0] / high))
        if how.fit == "letterbox":
            scale = min(size[1] / wide, size[0] / high)
            inner = max(1, round(wide * scale)), max(1, round(high * scale))
            return cls(size, picture, (inner[0] / wide, inner[1] / high),
                       ((size[1] - inner[0]) // 2, (size[0] - inner[1]) // 2))
        window = how.crop_fraction * min(wide / size[1], high / size[0])
        return cls(size, picture, (1 / window, 1 / window),
                   (size[1] / 2 - wide / 2 / window, size[0] / 2 - high / 2 / window))

    def back(self, places: Array) -> Array:
        """Places [..., 2] as x, y in the picture."""
        found: Array = (places - np.asarray(self.offset)) / np.asarray(self.scale)
        return found

    def result(self, found: Found) -> Found:
        """What was found, with its places in the picture; boxes are cut at its edges."""
        if isinstance(found, Objects):
            return self._objects(found)
        if isinstance(found, LabelMap):
            return LabelMap(self._map(found.labels, smooth=False).astype(found.labels.dtype))
        if isinstance(found, Plane):
            return Plane(self._map(found.values, smooth=True))
        return found

    def _objects(self, found: Objects) -> Objects:
        corners = self.back(found.boxes.reshape(-1, 2, 2).astype(np.float64))
        corners = np.clip(corners, 0, (self.picture[1], self.picture[0])).reshape(-1, 4)
        points = found.points
        if points is not None:
            points = np.concatenate([self.back(points[..., :2]), points[..., 2:]], -1)
        quads = None if found.quads is None else self.back(found.quads)
        masks = found.masks
        if masks is not None:
            whole = [self._map(mask.astype(np.float32), smooth=True) > 0.5 for mask in masks]
            masks = np.stack(whole) if whole else np.zeros((0, *self.picture), bool)
        return replace(found, boxes=corners.astype(np.float32), points=points, quads=quads, masks=masks)

    def _map(self, values: Array, *, smooth: bool) -> Array:
        """A map over the input, or over a coarser grid of it, as one over the picture."""
        from PIL import Image

        fine = self.size[0] / values.shape[0], self.size[1] / values.shape[1]
        corners = np.array([[0, 0], [self.picture[1], self.picture[0]]], np.float64)
        box = (corners * np.asarray(self.scale) + np.asarray(self.offset)) / (fine[1], fine[0])
        (left, top), (right, bottom) = np.clip(box, 0, (values.shape[1], values.shape[0]))
        how = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
        image = Image.fromarray(values.astype(np.float32)).resize(
            (self.picture[1], self.picture[0]), how, box=(float(left), float(top), float(right), float(bottom)))
        return np.asarray(image)
