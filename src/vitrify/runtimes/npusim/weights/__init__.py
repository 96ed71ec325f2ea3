"""Weights as commands name them: decoded, put in order, and kept, since a model runs with the same ones again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.weights.scales import Scales, read_scales
from vitrify.runtimes.npusim.weights.stream import decode_weights
from vitrify.runtimes.npusim.weights.traversal import Traversal, elements, order, output_unit

__all__ = ["Scales", "Traversal", "decode_weights", "order", "output_unit", "read_scales", "unpack"]

_KEPT = 512


def unpack(streams: Sequence[bytes], walk: Traversal) -> Any:
    """Return the weights [outputs, y, x, inputs], int16; of several cores each has every n-th output.

    Raises:
        ModelError: a stream is damaged, or does not hold what the command needs.
    """
    if len(streams) == 1:
        return _unpacked(streams[0], walk)
    whole = np.zeros((walk.outputs, *walk.kernel, walk.inputs), np.int16)
    for core, stream in enumerate(streams):
        mine = len(range(core, walk.outputs, len(streams)))
        if mine:
            depth = (walk.block_depth + len(streams) - 1 - core) // len(streams)
            whole[core::len(streams)] = _unpacked(stream, walk._replace(outputs=mine, block_depth=max(1, depth)))
    return whole


@lru_cache(maxsize=_KEPT)
def _unpacked(stream: bytes, walk: Traversal) -> Any:
    needed = elements(walk)
    found = decode_weights(stream, needed)
    if len(found) != needed:
        raise ModelError.of("npusim.weight-stream", f"a weight stream holds {len(found)} elements, and the command "
                            f"needs {needed}", why="the stream is damaged, or made for another accelerator")
    places = order(walk)
    valid = places.place >= 0
    if found[~valid].any():
        raise ModelError.of("npusim.weight-order", "weights stand where the order has padding",
                            why="the order of the stream is another than that of the accelerator it names")
    whole = np.zeros(walk.outputs * walk.kernel[0] * walk.kernel[1] * walk.inputs, np.int16)
    whole[places.place[valid]] = found[valid]
    whole.flags.writeable = False
    return whole.reshape(walk.outputs, *walk.kernel, walk.inputs)
