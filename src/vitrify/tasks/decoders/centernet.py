"""CenterNet: objects as peaks of a map. Source: Objects as Points, arXiv 1904.07850."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.decoders.transformers import IMAGENET
from vitrify.tasks.decoders.yolo import from_logits
from vitrify.tasks.found import Objects
from vitrify.tasks.grids import levels_of, placed
from vitrify.tasks.registry import Answer, Signs, decoder
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]

MOST = 100


def _fits(signs: Signs) -> Mapping[str, Any] | None:
    found = levels_of(signs)
    if found is None or len(found) != 1 or len(signs.shapes) != 3:
        return None
    channels = next(iter(found.values()))
    return {"classes": max(channels)} if channels.count(2) == 2 else None


@decoder("centernet", "detection", "a map of classes, sizes and offsets over one grid", fits=_fits, weight=30,
         score=0.3, **IMAGENET)
def centernet(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Objects:
    """Peaks of 3x3 neighbourhoods, the best of all classes; sizes come before offsets among the outputs."""
    places = [placed(v.shape, size) for v in answer.values()]
    first = [v[0] if at is not None and at[3] else v[0].transpose(2, 0, 1)
             for v, at in zip(answer.values(), places, strict=True)]
    heat = from_logits(next(v for v in first if len(v) != 2).astype(np.float32))
    sizes, offsets = (v.astype(np.float32) for v in first if len(v) == 2)
    scores = np.where(heat == _highest(heat), heat, 0).reshape(-1)
    order = np.argsort(-scores, kind="stable")[:min(MOST, spec.most)]
    order = order[scores[order] > spec.score]
    label, place = np.divmod(order, heat[0].size)
    y, x = np.divmod(place, heat.shape[2])
    middle = np.stack([x, y], -1) + offsets.reshape(2, -1)[:, place].T
    half = sizes.reshape(2, -1)[:, place].T / 2
    stride = size[1] / heat.shape[2]
    boxes = np.concatenate([middle - half, middle + half], 1) * stride
    return Objects(boxes.astype(np.float32), label, scores[order].astype(np.float32))


def _highest(heat: Array) -> Array:
    """The highest of each 3x3 neighbourhood."""
    padded = np.pad(heat, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    found: Array = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2)).max((-1, -2))
    return found
