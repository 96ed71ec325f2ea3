"""Weights as commands name them: decoded, put in order, and kept, since a model runs with the same ones again."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.weights.scales import Scales, read_scales
from vitrify.runtimes.npusim.weights.stream import decode_weights, slices
from vitrify.runtimes.npusim.weights.traversal import Traversal, blocks, elements, output_unit

__all__ = ["Kernel", "Scales", "Traversal", "WeightStore", "decode_weights", "output_unit", "read_scales", "unpack"]

_DIGEST = 16


def unpack(streams: Sequence[bytes], walk: Traversal) -> Any:
    """Return the weights [outputs, y, x, inputs], int8 or int16; of several cores each has every n-th output.

    Raises:
        ModelError: a stream is damaged, or does not hold what the command needs.
    """
    if len(streams) == 1:
        return _unpacked(streams[0], walk)
    parts = []
    for core, stream in enumerate(streams):
        mine = len(range(core, walk.outputs, len(streams)))
        depth = (walk.block_depth + len(streams) - 1 - core) // len(streams)
        parts += [_unpacked(stream, walk._replace(outputs=mine, block_depth=max(1, depth)))] if mine else []
    whole = np.zeros((walk.outputs, *walk.kernel, walk.inputs), np.result_type(*parts))
    for core, part in enumerate(parts):
        whole[core::len(streams)] = part
    return whole


class Kernel(NamedTuple):
    """Weights [outputs, y, x, inputs], and the largest sum of their magnitudes for one output."""

    weights: Any
    largest: int


class WeightStore:
    """Decoded weights, which are kept for the next run, those that were used last first, up to ``budget`` bytes."""

    def __init__(self, budget: int) -> None:
        self.budget, self.held = budget, 0
        self._kept: OrderedDict[Any, Kernel] = OrderedDict()

    def kernel(self, streams: Sequence[bytes], walk: Traversal) -> Kernel:
        """Return the weights in ``streams``, one of each core.

        Raises:
            ModelError: a stream is damaged, or does not hold what the command needs.
        """
        key = walk, *(blake2b(stream, digest_size=_DIGEST).digest() for stream in streams)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        weights = unpack(streams, walk)
        sums = (int(np.abs(one, dtype=np.int16).sum(dtype=np.int64)) for one in weights)
        made = Kernel(weights, max(sums, default=0))
        if weights.nbytes <= self.budget:
            self._kept[key] = made
            self.held += weights.nbytes
        while self.held > self.budget:
            self.held -= self._kept.popitem(last=False)[1].weights.nbytes
        return made


def _unpacked(stream: bytes, walk: Traversal) -> Any:
    needed = elements(walk)
    parts = [_narrowed(part) for part in slices(stream, needed)]
    count = sum(map(len, parts))
    if count != needed:
        raise ModelError.of("npusim.weight-stream", f"a weight stream holds {count} elements, and the command "
                            f"needs {needed}", why="the stream is damaged, or made for another accelerator")
    kind = np.int16 if any(part.dtype == np.int16 for part in parts) else np.int8
    whole = np.zeros(walk.outputs * walk.kernel[0] * walk.kernel[1] * walk.inputs, kind)
    left = deque(parts)
    del parts
    for place in blocks(walk):
        found, valid = _take(left, len(place)), place >= 0
        if found[~valid].any():
            raise ModelError.of("npusim.weight-order", "weights stand where the order has padding",
                                why="the order of the stream is another than that of the accelerator it names")
        whole[place[valid]] = found[valid]
    return whole.reshape(walk.outputs, *walk.kernel, walk.inputs)


def _narrowed(part: Any) -> Any:
    """In 8 bits, if they hold it: of weights with a zero point, as of uint8 ones, they do not."""
    small = part.astype(np.int8)
    return small if (small == part).all() else part


def _take(parts: deque[Any], count: int) -> Any:
    """Take values off the front."""
    taken = []
    while count:
        head = parts.popleft()
        taken.append(head[:count])
        if len(head) > count:
            parts.appendleft(head[count:])
        count -= len(taken[-1])
    return np.concatenate(taken)
