"""Bias, scale and shift of each output channel: ten bytes. Source: Vela 5.2.0, ``weight_compressor.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError

_BYTES, _BIAS_BYTES, _BIAS_BITS = 10, 5, 40


class Scales(NamedTuple):
    """One of each for every output."""

    bias: Any
    scale: Any
    shift: Any


def read_scales(parts: Sequence[bytes], outputs: int) -> Scales:
    """Return what the parts hold, one of each core: every core has each n-th output.

    Raises:
        ModelError: a part is too short.
    """
    rows = np.zeros((outputs, _BYTES), np.int64)
    for core, data in enumerate(parts):
        mine = len(range(core, outputs, len(parts)))
        if len(data) < mine * _BYTES:
            raise ModelError.of("npusim.scales", f"{len(data)} bytes of scales for {mine} outputs; each takes {_BYTES}",
                                why="the stream is damaged")
        rows[core::len(parts)] = np.frombuffer(data, np.uint8, mine * _BYTES).reshape(mine, _BYTES)
    bias = (rows[:, :_BIAS_BYTES] << 8 * np.arange(_BIAS_BYTES)).sum(1)
    bias = np.where(bias >> _BIAS_BITS - 1, bias - (1 << _BIAS_BITS), bias)
    scale = (rows[:, _BIAS_BYTES:9] << 8 * np.arange(4)).sum(1)
    return Scales(bias, scale, rows[:, 9] & 0x3F)
