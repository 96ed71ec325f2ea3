"""What was found, drawn on its picture, or in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vitrify.tasks import drawing
from vitrify.tasks.detection import Box
from vitrify.tasks.found import Classes, Curve, Found, LabelMap, Objects, Pixels, Plane, Text, Vector
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]

OPAQUE = 0.55
SURE = 0.5
"""Key points that the model is less sure of are not drawn."""
TOP = 5
SHOWN = 12
LIMBS = ((15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6), (5, 7), (6, 8), (7, 9), (8, 10),
         (1, 2), (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6))
"""Key points of COCO's people that are joined. Source: COCO person_keypoints annotations, skeleton (from 0)."""


def drawn(found: Found, ground: Array, spec: TaskSpec) -> Array:
    """Return the picture uint8[H,W,3] with what was found on it."""
    for kind, draw in DRAW.items():
        if isinstance(found, kind):
            return draw(found, ground, spec)
    return ground


def color(label: int) -> tuple[int, int, int]:
    """The colour of a class."""
    text = drawing.COLORS[label % len(drawing.COLORS)]
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _objects(found: Objects, ground: Array, spec: TaskSpec) -> Array:
    from PIL import Image, ImageDraw

    image = ground.astype(np.float32)
    if found.masks is not None:
        for mask, label in zip(found.masks, found.labels, strict=True):
            image[mask] = (1 - OPAQUE) * image[mask] + OPAQUE * np.asarray(color(int(label)), np.float32)
    ground = np.rint(image).clip(0, 255).astype(np.uint8)
    if found.quads is None and spec.kind != "text":
        boxes = [Box(float(box[0]), float(box[1]), float(box[2]), float(box[3]), int(label), float(score))
                 for box, label, score in zip(found.boxes, found.labels, found.scores, strict=True)]
        named = [spec.name(label) for label in range(int(found.labels.max(initial=-1)) + 1)]
        ground = drawing.boxes(ground, boxes[::-1], named)
    drawn_on = Image.fromarray(ground)
    pen = ImageDraw.Draw(drawn_on)
    width = max(2, round(max(ground.shape[:2]) / 240))
    for box in found.boxes if spec.kind == "text" else ():        # words over words could not be read
        pen.rectangle(tuple(map(float, box)), outline=drawing.COLORS[0], width=width)
    for quad, label in zip(found.quads if found.quads is not None else (), found.labels, strict=False):
        corners = [(float(x), float(y)) for x, y in quad]
        pen.line([*corners, corners[0]], fill=drawing.COLORS[int(label) % len(drawing.COLORS)], width=width)
    for points in found.points if found.points is not None else ():
        _skeleton(pen, points, width)
    return np.asarray(drawn_on)


def _skeleton(pen: Any, points: Array, width: int) -> None:
    if len(points) == 17:
        for one, other in LIMBS:
            if min(points[one, 2], points[other, 2]) > SURE:
                pen.line([tuple(map(float, points[one, :2])), tuple(map(float, points[other, :2]))],
                         fill=drawing.COLORS[1], width=width)
    for x, y, sure in points:
        if sure > SURE:
            pen.ellipse((x - width, y - width, x + width, y + width), fill=drawing.COLORS[2])


def _labels(found: LabelMap, ground: Array, spec: TaskSpec) -> Array:
    palette = np.array([color(label) for label in range(int(found.labels.max(initial=0)) + 1)], np.float32)
    mixed = (1 - OPAQUE) * ground + OPAQUE * palette[found.labels]
    plain = found.labels == 0                   # the background of the usual sets
    mixed[plain] = ground[plain]
    drawn: Array = np.rint(mixed).clip(0, 255).astype(np.uint8)
    return drawn


def _plane(found: Plane, ground: Array, spec: TaskSpec) -> Array:
    low, high = float(found.values.min()), float(found.values.max())
    return drawing.heat(ground, found.values, *((0.0, 1.0) if low >= 0 and high <= 1 else (low, high)))


def _pixels(found: Pixels, ground: Array, spec: TaskSpec) -> Array:
    return np.repeat(found.values, 3, 2) if found.values.shape[2] == 1 else found.values


def _words(found: Found, ground: Array, spec: TaskSpec) -> Array:
    return captioned(ground, words(found, spec)[:TOP])


def _curve(found: Curve, ground: Array, spec: TaskSpec) -> Array:
    return plotted([found.values], [""])


DRAW: dict[type, Callable[[Any, Array, TaskSpec], Array]] = {
    Objects: _objects, LabelMap: _labels, Plane: _plane, Pixels: _pixels, Classes: _words, Text: _words,
    Vector: _words, Curve: _curve}
"""How each thing is drawn."""


def captioned(ground: Array, lines: Sequence[str], *, least: int = 320) -> Array:
    """The picture with lines of text below; small ones are enlarged."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(ground)
    if image.width < least:
        factor = -(-least // image.width)
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    if not lines:
        return np.asarray(image)
    size = max(12, image.width // 36)
    board = Image.new("RGB", (image.width, image.height + len(lines) * (size + 6) + 6), "white")
    board.paste(image, (0, 0))
    pen = ImageDraw.Draw(board)
    for number, line in enumerate(lines):
        pen.text((6, image.height + 4 + number * (size + 6)), line, fill="black", font=font(size))
    return np.asarray(board)


def font(size: int) -> Any:
    """The font that the picture library brings."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def side_by_side(pictures: Sequence[Array], titles: Sequence[str], *, height: int = 640) -> Array:
    """Several pictures in one, each with its title above."""
    from PIL import Image, ImageDraw

    images = [Image.fromarray(p) for p in pictures]
    high = min(height, max(image.height for image in images))
    images = [image.resize((max(1, round(image.width * high / image.height)), high)) for image in images]
    board = Image.new("RGB", (sum(i.width for i in images) + 8 * (len(images) - 1), high + 26), "white")
    pen, left = ImageDraw.Draw(board), 0
    for image, title in zip(images, titles, strict=True):
        pen.text((left + 4, 4), title, fill="black", font=font(16))
        board.paste(image, (left, 26))
        left += image.width + 8
    return np.asarray(board)


def plotted(curves: Sequence[Array], titles: Sequence[str], *, width: int = 960, height: int = 240) -> Array:
    """Curves of 0..1 over time, one above the other."""
    from PIL import Image, ImageDraw

    board = Image.new("RGB", (width, height * len(curves)), "white")
    pen = ImageDraw.Draw(board)
    for number, (curve, title) in enumerate(zip(curves, titles, strict=True)):
        top, low, high = number * height, min(0.0, float(curve.min())), max(1.0, float(curve.max()))
        for level in (0.0, 0.5, 1.0):
            y = top + height - 10 - (level - low) / (high - low) * (height - 40)
            pen.line((0, y, width, y), fill="#ddd")
        places = [(x * (width - 1) / max(1, len(curve) - 1),
                   top + height - 10 - (float(v) - low) / (high - low) * (height - 40)) for x, v in enumerate(curve)]
        pen.line(places, fill=drawing.COLORS[number % len(drawing.COLORS)], width=2)
        pen.text((6, top + 4), title, fill="black", font=font(16))
    return np.asarray(board)


def words(found: Found, spec: TaskSpec) -> list[str]:
    """What was found, in lines for a person."""
    if isinstance(found, Classes):
        return [f"{spec.name(label)} {score:.3f}" for label, score in found.best(TOP)]
    if isinstance(found, Text):
        return [f'"{found.text}" {found.score:.3f}']
    if isinstance(found, Objects):
        listed = [f"{spec.name(int(label))} {score:.3f} at {', '.join(f'{v:.0f}' for v in box)}"
                  for box, label, score in zip(found.boxes, found.labels, found.scores, strict=True)]
        return listed[:SHOWN] + ([f"and {len(listed) - SHOWN} more"] if len(listed) > SHOWN else []) or ["nothing"]
    if isinstance(found, LabelMap):
        labels, counts = np.unique(found.labels, return_counts=True)
        order = np.argsort(-counts)[:TOP]
        return [f"{spec.name(int(labels[i]))} {100 * counts[i] / found.labels.size:.1f} %" for i in order]
    if isinstance(found, Pixels):
        return [f"a picture of {found.values.shape[1]} x {found.values.shape[0]}"]
    return [_figures(found.values)]


def _figures(values: Array) -> str:
    return (f"{'x'.join(map(str, values.shape))} values from {values.min():.4g} to {values.max():.4g}, "
            f"mean {values.mean():.4g}")


def plain(found: Found, spec: TaskSpec) -> dict[str, Any]:
    """What was found as plain values for JSON; of maps only what sums them up."""
    if isinstance(found, Classes):
        return {"classes": [{"label": i, "name": spec.name(i), "score": s} for i, s in found.best(TOP)]}
    if isinstance(found, Text):
        return {"text": found.text, "score": found.score}
    if isinstance(found, Objects):
        return {"objects": [_object(found, i, spec) for i in range(len(found))]}
    if isinstance(found, LabelMap):
        labels, counts = np.unique(found.labels, return_counts=True)
        return {"areas": [{"label": int(i), "name": spec.name(int(i)), "share": float(n / found.labels.size)}
                          for i, n in zip(labels, counts, strict=True)]}
    if isinstance(found, Curve | Vector):
        return {"values": [float(v) for v in found.values]}
    return {"shape": list(found.values.shape), "low": float(found.values.min()), "high": float(found.values.max()),
            "mean": float(found.values.mean())}


def _object(found: Objects, index: int, spec: TaskSpec) -> dict[str, Any]:
    label = int(found.labels[index])
    one: dict[str, Any] = {"label": label, "name": spec.name(label), "score": float(found.scores[index]),
                           "box": [float(v) for v in found.boxes[index]]}
    if found.points is not None:
        one["points"] = [[float(v) for v in point] for point in found.points[index]]
    if found.quads is not None:
        one["corners"] = [[float(v) for v in point] for point in found.quads[index]]
    if found.masks is not None:
        one["area"] = int(found.masks[index].sum())
    return one
