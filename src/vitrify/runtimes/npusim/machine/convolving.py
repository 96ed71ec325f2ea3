"""Convolution commands: exact integer sums of products, a bias and a scale for each output channel.

Products are summed by BLAS where every partial sum is exact in the type: below 2^24 in float32, below 2^53 in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.machine.features import FeatureMap
from vitrify.runtimes.npusim.machine.memory import Memory, Touch
from vitrify.runtimes.npusim.machine.numerics import Values, rescale
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.windows import Window, input_map, padded_input, window
from vitrify.runtimes.npusim.machine.work import Place, Work
from vitrify.runtimes.npusim.stream.payload import Accelerator
from vitrify.runtimes.npusim.weights import Kernel, Traversal, WeightStore, output_unit, read_scales

_NARROW = 16
"""Bits of inputs that 32 hold with any zero point taken off."""
_ZERO_POINT = 1 << 14
"""As large a one leaves 8 bits within 16."""
_FLOAT32, _FLOAT64 = 1 << 24, 1 << 53
_MATRIX = 1 << 18
"""Elements of the largest matrix that is laid out for one product, of values or of weights."""


class Coefficients(NamedTuple):
    """Weights, and bias, scale and shift of each output."""

    kernel: Kernel
    bias: Values
    scale: Values
    shift: Values


def convolving(depthwise: bool, registers: Registers, memory: Memory, accelerator: Accelerator,
               store: WeightStore) -> Work:
    """Return what makes the scaled values of one command, and the bytes it read."""
    over = window(registers)
    source = input_map(registers, over)
    if depthwise and source.layout.shape[2] != over.output[2]:
        raise ModelError.of("npusim.geometry", f"a depthwise command makes {over.output[2]} channels of "
                            f"{source.layout.shape[2]}", why="the stream is damaged")
    x = padded_input(source, memory, over, 0, _narrow(source))
    found, touched = _coefficients(depthwise, registers, memory, over, source, accelerator, store)
    kind = _exact(x, found.kernel)
    rounding = registers.field("OFM_PRECISION", "rounding")
    scaling = registers.scaling("OFM_SCALE") if registers.field("OFM_PRECISION", "global_scale") else None

    def made(place: Place) -> Values:
        part, below = over.part(x, place)
        total = (_depthwise if depthwise else _product)(below, found.kernel.weights, part, kind)
        total = total + found.bias
        if scaling is not None:
            return rescale(total, *scaling, rounding)
        return rescale(total, found.scale, found.shift, rounding)

    return Work(made, [*touched, source.touch(writes=False)], x.size)


def _narrow(source: FeatureMap) -> Any:
    """A type that holds the input less its zero point."""
    if source.bits == 8 and abs(source.zero_point) <= _ZERO_POINT:
        return np.int16
    return np.int32 if source.bits <= _NARROW else np.int64


def _product(x: Values, weights: Values, over: Window, kind: Any) -> Values:
    rows, columns, outputs = over.output
    x, width = x.astype(kind), x.shape[2] * len(over.taps)
    taps, total = list(over.sweep(x)), np.empty(over.output, np.int64)
    few, step = max(1, _MATRIX // width), _MATRIX // (columns * width)
    for first in range(0, rows, max(1, step)):
        here = slice(first, first + max(1, step))
        parts = [tap[here].reshape(-1, x.shape[2]) for tap in taps]
        patches = parts if not step else parts[:1] if len(parts) == 1 else [np.concatenate(parts, axis=1)]
        for output in range(0, outputs, few):
            some = weights[output:output + few].reshape(-1, len(patches), width // len(patches))
            total[here, :, output:output + few] = _by_taps(patches, some, kind).reshape(-1, columns, len(some))
    return total


def _by_taps(parts: list[Values], weights: Values, kind: Any) -> Values:
    """The sum of the taps' products, one after the other: a row under a large window would take too much at once."""
    total = parts[0] @ weights[:, 0].astype(kind).T
    for number in range(1, len(parts)):
        total += parts[number] @ weights[:, number].astype(kind).T
    return np.asarray(total)


def _exact(x: Values, kernel: Kernel) -> Any:
    """The narrowest float type in which no sum of these products is rounded."""
    largest = max(abs(int(x.max())), abs(int(x.min()))) * kernel.largest
    if largest < _FLOAT32:
        return np.float32
    return np.float64 if largest < _FLOAT64 else np.int64


def _depthwise(x: Values, weights: Values, over: Window, kind: Any) -> Values:
    narrow = np.int32 if kind is np.float32 else np.int64
    x, factors = x.astype(narrow), weights.astype(narrow)
    total = np.zeros(over.output, narrow)
    for (y, column), tap in zip(over.taps, over.sweep(x), strict=True):
        total += tap * factors[:, y, column, 0]
    return total.astype(np.int64)


def _coefficients(depthwise: bool, registers: Registers, memory: Memory, over: Window, source: FeatureMap,
                  accelerator: Accelerator, store: WeightStore) -> tuple[Coefficients, list[Touch]]:
    touched, streams, scales = [], [], []
    for core in ("", "1")[:min(accelerator.cores, over.output[2])]:     # of one output the second core has no part
        data, touch = _part(registers, memory, f"WEIGHT{core}", "WEIGHT_REGION")
        streams.append(data)
        touched.append(touch)
        data, touch = _part(registers, memory, f"SCALE{core}", "SCALE_REGION")
        scales.append(data)
        touched.append(touch)
    inputs = 1 if depthwise else source.layout.shape[2]
    walk = Traversal(over.output[2], over.extent, inputs, registers["OFM_BLK_DEPTH_M1"] + 1, depthwise,
                     over.part_kernel, source.bits, over.dilation, output_unit(accelerator.name))
    return Coefficients(store.kernel(streams, walk), *read_scales(scales, over.output[2])), touched


def _part(registers: Registers, memory: Memory, name: str, where: str) -> tuple[bytes, Touch]:
    start, length = registers[f"{name}_BASE"], registers[f"{name}_LENGTH"]
    region = registers[where]
    data = memory.region(region, start, start + length, name)
    return data[start:start + length].tobytes(), Touch(region, start, start + length, writes=False)
