"""What happens to scaled values before they are stored: zero point, clamping, tables, sigmoid and tanh."""

from __future__ import annotations

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.ops.reference.integer.tables import sigmoid_16, tanh_16
from vitrify.runtimes.npusim.machine.features import FeatureMap
from vitrify.runtimes.npusim.machine.memory import INTERNAL, Memory
from vitrify.runtimes.npusim.machine.numerics import Values
from vitrify.runtimes.npusim.machine.registers import Registers

_NATIVE = {3: ("tanh", tanh_16), 4: ("sigmoid", sigmoid_16)}
_FIRST_TABLE = 16
_SLOT = 256
_SHORT = (-(1 << 15), (1 << 15) - 1)
"""What indexes a table of 16 bits."""
_CLIPS = {2: (8, False), 3: (8, True), 5: (16, True)}


def finish(values: Values, ofm: FeatureMap, registers: Registers, memory: Memory, tables: int) -> Values:
    """Return what is stored of scaled ``values``; the tables start at byte ``tables`` of the internal memory."""
    function = registers.field("ACTIVATION", "function")
    if ofm.bits < 32 or registers.raw("ACTIVATION"):      # raw 32-bit results carry no zero point
        values = values + ofm.zero_point
    if function in _NATIVE:         # before clamping: their argument has more than 16 bits
        values = _native(values, function, ofm)
    if ofm.bits < 32 or function >= _FIRST_TABLE:
        values = np.clip(values, registers["ACTIVATION_MIN"], registers["ACTIVATION_MAX"])
    if function >= _FIRST_TABLE:
        values = _look_up(values, function - _FIRST_TABLE, ofm, registers, memory, tables)
    info = np.iinfo(ofm.dtype)
    return np.clip(values, info.min, info.max)


def _look_up(values: Values, slot: int, ofm: FeatureMap, registers: Registers, memory: Memory, tables: int) -> Values:
    bits, signed = _CLIPS.get(registers.field("ACTIVATION", "clip"), (ofm.bits, ofm.signed))
    start = tables + _SLOT * slot
    if bits == 8:
        size = _SLOT * ofm.dtype.itemsize
        table = memory.region(INTERNAL, start, start + size, "a table")[start:start + size].view(ofm.dtype)
        low = -128 if signed else 0
        return np.asarray(table.astype(np.int64)[np.clip(values, low, low + _SLOT - 1) - low])
    size = 2 * _SLOT * 4
    table = memory.region(INTERNAL, start, start + size, "a table")[start:start + size].view(np.int16).astype(np.int64)
    index = (np.clip(values, *_SHORT) >> 7) + _SLOT
    base, slope = table[0::2][index], table[1::2][index]
    return np.asarray(base + (slope * (values & 0x7F) + 64 >> 7))


def _native(values: Values, function: int, ofm: FeatureMap) -> Values:
    """As TFLite's 16-bit kernels compute them; it was not tried on a chip."""
    name, compute = _NATIVE[function]
    if ofm.bits != 16:
        raise ModelError.of("npusim.not-modelled", f"a native {name} with a result of {ofm.bits} bits",
                            why="only its 16-bit form is known")
    return compute(values)
