"""Convolution commands: exact integer sums of products, a bias and a scale for each output channel.

Products are summed by BLAS where every partial sum is exact in the type: below 2^24 in float32, below 2^53 in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.memory import Memory, Touch
from vitrify.runtimes.npusim.machine.numerics import Values, rescale
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.windows import Window, input_map, padded_input, window
from vitrify.runtimes.npusim.stream.payload import Accelerator
from vitrify.runtimes.npusim.weights import Traversal, output_unit, read_scales, unpack

_NARROW = 16
"""Bits of inputs that 32 hold with any zero point taken off."""
_FLOAT32, _FLOAT64 = 1 << 24, 1 << 53
_COLUMNS = 1 << 20
"""Elements of the largest matrix that is laid out for one product."""


class Coefficients(NamedTuple):
    """Weights [outputs, y, x, inputs], and bias, scale and shift of each output."""

    weights: Any
    bias: Values
    scale: Values
    shift: Values


def convolving(depthwise: bool, registers: Registers, memory: Memory,
               accelerator: Accelerator) -> tuple[Values, list[Touch]]:
    """Return the scaled values of one command, and the bytes it read."""
    over = window(registers)
    source = input_map(registers, over)
    if depthwise and source.layout.shape[2] != over.output[2]:
        raise ModelError.of("npusim.geometry", f"a depthwise command makes {over.output[2]} channels of "
                            f"{source.layout.shape[2]}", why="the stream is damaged")
    x = padded_input(source, memory, over, 0, np.int32 if source.bits <= _NARROW else np.int64)
    found, touched = _coefficients(depthwise, registers, memory, over, source.bits, source.layout.shape[2], accelerator)
    total = _depthwise(x, found.weights, over) if depthwise else _product(x, found.weights, over)
    total = total + found.bias
    rounding = registers.field("OFM_PRECISION", "rounding")
    touched.append(source.touch(writes=False))
    if registers.field("OFM_PRECISION", "global_scale"):
        return rescale(total, *registers.scaling("OFM_SCALE"), rounding), touched
    return rescale(total, found.scale, found.shift, rounding), touched


def _product(x: Values, weights: Values, over: Window) -> Values:
    rows, columns, outputs = over.output
    kind = _exact(x, weights)
    inputs = x.shape[2]
    x = x.astype(kind)
    matrix = _matrix(weights, kind)
    if over.extent == (1, 1):
        return _whole(over.cut(x, (0, 0)).reshape(-1, inputs) @ matrix.reshape(inputs, outputs), over.output)
    width = inputs * len(over.taps)
    flat, taps = matrix.reshape(width, outputs), list(over.sweep(x))
    total = np.empty((rows, columns, outputs), np.int64)
    step = _COLUMNS // (columns * width)
    for first in range(0, rows, max(1, step)):
        parts = [tap[first:first + max(1, step)].reshape(-1, inputs) for tap in taps]
        made = np.concatenate(parts, axis=1) @ flat if step else _by_taps(parts, flat.reshape(-1, inputs, outputs))
        total[first:first + max(1, step)] = made.reshape(-1, columns, outputs)
    return total


def _by_taps(parts: list[Values], matrices: Values) -> Values:
    """The sum of the taps' products, one after the other: a row under a large window would take too much at once."""
    total = np.zeros((len(parts[0]), matrices.shape[2]), matrices.dtype)
    for part, matrix in zip(parts, matrices, strict=True):
        total += part @ matrix
    return total


def _whole(total: Values, shape: tuple[int, int, int]) -> Values:
    return total.astype(np.int64).reshape(shape)


_KEPT: dict[int, tuple[Values, int, dict[Any, Values]]] = {}
_MOST_KEPT = 1024
"""Arrays of weights, which are kept as they are decoded, with what was made of each."""


def _kept(weights: Values) -> tuple[Values, int, dict[Any, Values]]:
    """The largest sum of magnitudes of an output's weights, and matrices of them by type."""
    found = _KEPT.get(id(weights))
    if found is None or found[0] is not weights:
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        rows = np.abs(weights).reshape(weights.shape[0], -1).sum(1, dtype=np.int64)
        found = weights, int(rows.max()), {}
        if not weights.flags.writeable:       # as those are that come again
            _KEPT[id(weights)] = found
    return found


def _matrix(weights: Values, kind: Any) -> Values:
    """The weights [y, x, inputs, outputs] in a type, in one piece."""
    made = _kept(weights)[2]
    if kind not in made:
        made[kind] = np.ascontiguousarray(weights.transpose(1, 2, 3, 0), kind)
    return made[kind]


def _exact(x: Values, weights: Values) -> Any:
    """The narrowest float type in which no sum of these products is rounded."""
    largest = max(abs(int(x.max())), abs(int(x.min()))) * _kept(weights)[1]
    if largest < _FLOAT32:
        return np.float32
    return np.float64 if largest < _FLOAT64 else np.int64


def _depthwise(x: Values, weights: Values, over: Window) -> Values:
    narrow = np.int32 if _exact(x, weights) is np.float32 else np.int64
    x, factors = x.astype(narrow), weights.astype(narrow)
    total = np.zeros(over.output, narrow)
    for (y, column), tap in zip(over.taps, over.sweep(x), strict=True):
        total += tap * factors[:, y, column, 0]
    return total.astype(np.int64)


def _coefficients(depthwise: bool, registers: Registers, memory: Memory, over: Window, bits: int, inputs: int,
                  accelerator: Accelerator) -> tuple[Coefficients, list[Touch]]:
    touched, streams, scales = [], [], []
    for core in ("", "1")[:min(accelerator.cores, over.output[2])]:     # of one output the second core has no part
        data, touch = _part(registers, memory, f"WEIGHT{core}", "WEIGHT_REGION")
        streams.append(data)
        touched.append(touch)
        data, touch = _part(registers, memory, f"SCALE{core}", "SCALE_REGION")
        scales.append(data)
        touched.append(touch)
    walk = Traversal(over.output[2], over.extent, 1 if depthwise else inputs, registers["OFM_BLK_DEPTH_M1"] + 1,
                     depthwise, over.part_kernel, bits, over.dilation, output_unit(accelerator.name))
    return Coefficients(unpack(streams, walk), *read_scales(scales, over.output[2])), touched


def _part(registers: Registers, memory: Memory, name: str, where: str) -> tuple[bytes, Touch]:
    start, length = registers[f"{name}_BASE"], registers[f"{name}_LENGTH"]
    region = registers[where]
    data = memory.region(region, start, start + length, name)
    return data[start:start + length].tobytes(), Touch(region, start, start + length, writes=False)
