"""Whether pictures come as the model expects them: their range by the first weights, the order of colours by a trial.

Both are suspicions with their evidence, not proofs, and are told as warnings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.data.preprocess import PictureShape
from vitrify.ir import Interface, Node, Tensor
from vitrify.ops import Conv2D, Pad, Reshape, SpaceToDepth
from vitrify.quant.calibration.observe import Watch
from vitrify.quant.calibration.statistics import Statistics

Array = np.ndarray[Any, np.dtype[Any]]

LEAST_WEIGHED, MOST_WEIGHED = 0.15, 200.0
"""Largest value of the input times the first layer's weights, by its biases. In 20 trained models that take 0..1 or
-1..1 it is 1.3 to 16, and 69 at most in 70 with made-up weights; with pixels of 0..255 it is 255 times that."""

FEWEST, MOST = 6, 24
"""Colour samples of the trial: it ends with as few where the given order does better, and with as many anyway."""

HINT, SURE = 2.0, 3.0
"""Standard errors of the mean advantage of the other order from which it is told of, and warned of. On 24 photos in the
wrong order it was 3.2 for EfficientNet-Lite0, 2.3 for a face detector and 1.8 for a YOLOv8n; in the right order each
trial ended after 6."""

TOP = 20
"""Scores of a detector that say how sure it is of a picture."""


def range_findings(statistics: Statistics, watched: Sequence[Watch], interface: Interface) -> list[Finding]:
    """Warn of pictures whose values are far from what the first layer's biases were learned with."""
    found = []
    for watch in watched:
        if not _is_picture(watch.tensor, interface):
            continue
        seen = statistics[watch.key].range
        largest = max(abs(seen.low), abs(seen.high))
        for node in _first_layers(watch.tensor)[:1]:
            weighed = _weighed(node) * largest
            if largest and weighed and not LEAST_WEIGHED <= weighed <= MOST_WEIGHED:
                found.append(_range_finding(watch, node, weighed, f"{seen.low:.4g}..{seen.high:.4g}"))
    return found


def _range_finding(watch: Watch, node: Node, weighed: float, values: str) -> Finding:
    large = weighed > MOST_WEIGHED
    return Finding(
        code="calibration.range", severity=Severity.WARNING, where=f"input '{watch.tensor.name}'",
        headline=f"values of {values} look {'too large' if large else 'too small'}: what the first layer '{node.name}' "
                 f"makes of them is {weighed:.3g} times its biases",
        why="in trained models that is 1 to 40 times; this is evidence, not proof",
        help="pixels of 0..255 may have to be divided by 255, or mean and std applied: --mean, --std, --prepare scale"
        if large else "the model may take pixels of 0..255: --prepare scale=1 for pictures, or arrays times 255")


def _is_picture(tensor: Tensor, interface: Interface) -> bool:
    return tensor.producer is None and len(interface.inputs) == 1 and \
        PictureShape.of(tuple(interface.inputs[0].shape)) is not None


def _first_layers(tensor: Tensor) -> list[Node]:
    """The convolutions that read a tensor, behind what only moves values."""
    found: list[Node] = []
    waiting = [tensor]
    while waiting:
        for user in waiting.pop().users:
            if isinstance(user.op, Conv2D):
                found.append(user)
            elif isinstance(user.op, Pad | Reshape | SpaceToDepth):
                waiting += user.outputs
    return found


def _weighed(node: Node) -> float:
    """The size of a filter by that of a bias; 0 where one of them is not known, or there are no biases."""
    weights, bias = node.input(1).data, node.optional(2)
    if weights is None or bias is None or bias.data is None or not bias.data.any():
        return 0.0
    filters = np.sqrt(np.square(weights.astype(np.float64)).reshape(len(weights), -1).sum(axis=1).mean())
    return float(filters / np.sqrt(np.square(bias.data.astype(np.float64)).mean()))


def colour_axis(interface: Interface) -> int | None:
    """The axis of the colours of a model's only input, None where it takes no coloured pictures."""
    if len(interface.inputs) != 1:
        return None
    shape = PictureShape.of(tuple(interface.inputs[0].shape))
    if shape is None or shape.channels != 3:
        return None
    rank = len(interface.inputs[0].shape)
    return rank - 3 if shape.channels_first else rank - 1


def certainty(watched: Sequence[Watch], arrays: Sequence[Array]) -> float | None:
    """How sure a model is of its answer, greater for surer; None where the outputs do not tell.

    Of a classifier, minus the entropy of its probabilities; of scores, the logarithm of the mean of the highest.
    """
    found = [value for watch, array in zip(watched, arrays, strict=True) if watch.tensor.is_output
             for value in _certainties(np.asarray(array, np.float64))]
    return sum(found) / len(found) if found else None


def _certainties(values: Array) -> list[float]:
    extents = [extent for extent in values.shape if extent > 1]
    if values.size < 2:
        return []
    if values.min() >= 0 and values.max() <= 1:
        if len(extents) == 1 and abs(values.sum() - 1) < 1e-3:
            return [-_entropy(values.reshape(-1))]
        return [_top(values)]
    if len(extents) == 1 and values.size >= 3:
        shifted = np.exp(values - values.max()).reshape(-1)
        return [-_entropy(shifted / shifted.sum())]
    return [_top(scores) for scores in _score_channels(values)]


def _score_channels(values: Array) -> list[Array]:
    """The channels of an output that hold 0..1 all through, beside others that do not."""
    for axis in range(1, values.ndim):
        others = tuple(a for a in range(values.ndim) if a != axis)
        inside = (values.min(axis=others) >= 0) & (values.max(axis=others) <= 1)
        if inside.any() and not inside.all() and values.shape[axis] <= values.size // values.shape[axis]:
            return [np.compress(inside, values, axis)]
    return []


def _entropy(shares: Array) -> float:
    return float(-(shares * np.log(shares + 1e-12)).sum())


def _top(scores: Array) -> float:
    return float(np.log(np.sort(scores, axis=None)[-TOP:].mean() + 1e-6))


def is_over(advantages: Sequence[float]) -> bool:
    """True when the trial of the other order of colours needs no more samples."""
    count = len(advantages)
    return count >= MOST or (count >= FEWEST and float(np.mean(advantages)) <= 0)


def order_finding(advantages: Sequence[float], given: str) -> list[Finding]:
    """Warn when the model is clearly surer of pictures with red and blue exchanged."""
    count = len(advantages)
    if count < FEWEST:
        return []
    mean, spread = float(np.mean(advantages)), float(np.std(advantages, ddof=1))
    errors = mean / max(spread / math.sqrt(count), 1e-9)
    if mean <= 0 or errors < HINT:
        return []
    more = sum(advantage > 0 for advantage in advantages)
    other = {"rgb": "bgr", "bgr": "rgb"}.get(given, "")
    chance = max(2, round(1 / max(0.5 * math.erfc(min(errors, 6.0) / math.sqrt(2)), 1e-9)))
    return [Finding(
        code="calibration.colors", severity=Severity.WARNING if errors >= SURE else Severity.INFO,
        headline=f"red and blue may be exchanged: in {more} of {count} samples the model is surer of the exchanged one",
        why=f"the mean advantage is {errors:.1f} times its standard error, which chance alone gives about once in "
            f"{chance:,} data sets; models are a little surer with the order of their training, so this is evidence, "
            "not proof",
        help=f"try --color {other}" if other else "exchange the first and the last channel of the arrays")]
