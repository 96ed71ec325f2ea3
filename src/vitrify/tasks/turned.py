"""Turned boxes: centre, size and angle in radians, counted from x to y."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.tasks.found import Objects

Array = np.ndarray[Any, np.dtype[Any]]

MOST_COMPARED = 3000
"""Candidates that are compared at most, the best."""


def quads(turned: Array) -> Array:
    """The corners [n,4,2] of boxes [n,5]."""
    x, y, w, h, angle = turned.T.astype(np.float64)
    cos, sin = np.cos(angle), np.sin(angle)
    along = np.stack([w / 2 * cos, w / 2 * sin], -1)
    across = np.stack([-h / 2 * sin, h / 2 * cos], -1)
    middle = np.stack([x, y], -1)
    return np.stack([middle + along + across, middle + along - across, middle - along - across,
                     middle - along + across], 1)


def with_quads(turned: Array, labels: Array, scores: Array) -> Objects:
    """Objects of turned boxes, with their corners and upright hulls."""
    found = quads(turned)
    hulls = np.concatenate([found.min(1), found.max(1)], 1) if len(found) else np.zeros((0, 4))
    return Objects(hulls.astype(np.float32), labels, scores.astype(np.float32), quads=found, turned=turned)


def likeness(one: Array, others: Array) -> Array:
    """How alike the Gaussians of turned boxes are, 1 for equal ones.

    Source: Gaussian Bounding Boxes and Probabilistic Intersection-over-Union, arXiv 2106.06072, equations 8 to 12.
    """
    eps = 1e-7
    a1, b1, c1 = _covariance(one[None])
    a2, b2, c2 = _covariance(others)
    dx, dy = one[0] - others[:, 0], one[1] - others[:, 1]
    both = (a1 + a2) * (b1 + b2) - (c1 + c2) ** 2
    first = ((a1 + a2) * dy ** 2 + (b1 + b2) * dx ** 2) / (both + eps) * 0.25
    second = (c1 + c2) * -dx * dy / (both + eps) * 0.5
    own = np.sqrt(np.clip(a1 * b1 - c1 ** 2, 0, None) * np.clip(a2 * b2 - c2 ** 2, 0, None))
    third = np.log(both / (4 * own + eps) + eps) * 0.5
    far = np.clip(first + second + third, eps, 100)
    found: Array = 1 - np.sqrt(1 - np.exp(-far) + eps)
    return found


def _covariance(turned: Array) -> tuple[Array, Array, Array]:
    w, h = turned[:, 2] ** 2 / 12, turned[:, 3] ** 2 / 12
    cos, sin = np.cos(turned[:, 4]), np.sin(turned[:, 4])
    return w * cos ** 2 + h * sin ** 2, w * sin ** 2 + h * cos ** 2, (w - h) * cos * sin


def kept_turned(turned: Array, labels: Array, scores: Array, overlap: float, most: int) -> Array:
    """Return which boxes stay, the best first: those that are not like any better one of their class.

    A box that does not stay takes others with it all the same. Source: Fast NMS, arXiv 1904.02689, which Ultralytics
    uses for turned boxes.
    """
    order = np.argsort(-scores, kind="stable")[:MOST_COMPARED]
    kept: list[int] = []
    for place, index in enumerate(order):
        better = order[:place][labels[order[:place]] == labels[index]]
        if not len(better) or float(likeness(turned[index], turned[better]).max()) <= overlap:
            kept.append(int(index))
        if len(kept) == most:
            break
    return np.asarray(kept, np.int64)
