"""The LSTM over a sequence with int8 data and weights, int16 gates and cell, step by step.

The file's intermediates name the scale of what a cell lets out before a projection; gates have 12 fraction bits.

Source: TFLite kernels/lstm_eval.cc (EvalInteger8x8_16), unidirectional_sequence_lstm.cc,
internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops.lstm import LEAST_CELL_POWER, MOST_CELL_POWER, UnidirectionalSequenceLSTM
from vitrify.ops.reference.integer.fixed_point import (
    Multiplier,
    divide_by_power,
    multiply,
    quantize_multiplier,
    wrapped,
)
from vitrify.ops.reference.integer.fixed_point_16 import MAX, MIN, logistic, tanh
from vitrify.ops.reference.integer.registry import Affine, Call, integer_kernel
from vitrify.ops.sequences import time_first

_GATE_SCALE = np.float32(2.0**-12)
_INPUT, _FORGET, _CELL, _OUTPUT = range(4)
_STATE, _CELL_STATE = 18, 19


class _Gate(NamedTuple):
    """What one gate multiplies; the biases hold the zero points."""

    inputs: Array
    recurrent: Array
    input_bias: Array
    recurrent_bias: Array
    input_by: Multiplier
    recurrent_by: Multiplier
    peephole: Array | None
    peephole_by: Multiplier | None

    def sum(self, x: Array, state: Array, cell: Array) -> Array:
        """Return the gate before its function: each part is rounded and held within 16 bits before the next comes."""
        values = _held(multiply(wrapped(x @ self.inputs.T + self.input_bias), self.input_by))
        values = _held(values + multiply(wrapped(state @ self.recurrent.T + self.recurrent_bias), self.recurrent_by))
        if self.peephole is None or self.peephole_by is None:
            return values
        return _held(values + multiply(cell * self.peephole, self.peephole_by))


@integer_kernel(UnidirectionalSequenceLSTM)
def sequence_lstm(call: Call) -> list[Array]:
    """Run the cell over the sequence from states of zero."""
    op = call.node.op
    assert isinstance(op, UnidirectionalSequenceLSTM)
    if call.array(0).dtype != np.int8 or any(call.optional(i) is not None for i in range(20, 24)):
        raise call.refuse("is computed in integers with int8 data and without layer normalization only")
    cell_power = round(float(np.log2(call.affine(_CELL_STATE).scale)))
    if not LEAST_CELL_POWER <= cell_power <= MOST_CELL_POWER:
        raise call.refuse(f"has a cell of scale 2**{cell_power}, the kernel computes with 2**{LEAST_CELL_POWER} to "
                          f"2**{MOST_CELL_POWER}")
    gates = [None if call.optional(1 + n) is None else _gate(call, n, cell_power) for n in range(4)]
    steps = time_first(call.array(0).astype(np.int64), op.time_major)
    cell = np.zeros((steps.shape[1], call.array(2).shape[0]), np.int64)
    state = np.full((steps.shape[1], call.array(6).shape[1]), call.affine(_STATE).zero, np.int64)
    cell_limit = _limit(op.cell_clip, call.affine(_CELL_STATE), MAX)
    outputs = []
    for x in steps:
        cell = _next_cell(gates, x, state, cell, cell_power, cell_limit)
        let_out = gates[_OUTPUT]
        assert let_out is not None
        state = _let_out(call, op, logistic(let_out.sum(x, state, cell), 3), tanh(cell, 15 + cell_power))
        outputs.append(state)
    return [time_first(np.stack(outputs), op.time_major).astype(call.dtype)]


def _gate(call: Call, number: int, cell_power: int) -> _Gate:
    weights, recurrent = call.array(1 + number).astype(np.int64), call.array(5 + number).astype(np.int64)
    x, state = call.affine(0), call.affine(_STATE)
    bias = call.array(12 + number).astype(np.int64)
    at = {_INPUT: 9, _FORGET: 10, _OUTPUT: 11}.get(number)
    peephole = None if at is None else call.optional(at)
    power = np.float32(2.0**cell_power)
    return _Gate(weights, recurrent, bias - x.zero * weights.sum(axis=1), -state.zero * recurrent.sum(axis=1),
                 quantize_multiplier(float(call.affine(1 + number).scale * x.scale / _GATE_SCALE)),
                 quantize_multiplier(float(call.affine(5 + number).scale * state.scale / _GATE_SCALE)),
                 None if peephole is None else peephole.astype(np.int64),
                 None if peephole is None or at is None
                 else quantize_multiplier(float(power * call.affine(at).scale / _GATE_SCALE)))


def _next_cell(gates: list[_Gate | None], x: Array, state: Array, cell: Array, power: int, limit: int) -> Array:
    taken, kept, candidate = (None if gate is None else gate.sum(x, state, cell) for gate in gates[:3])
    assert kept is not None
    assert candidate is not None
    forget = logistic(kept, 3)
    accepted = MAX - forget if taken is None else logistic(taken, 3)
    added = divide_by_power(accepted * tanh(candidate, 3), 30 + power)
    cell = _held(divide_by_power(forget * cell, 15) + added)
    return np.asarray(np.clip(cell, -limit, limit)) if limit > 0 else cell


def _let_out(call: Call, op: UnidirectionalSequenceLSTM, gate: Array, cell: Array) -> Array:
    """Return the next state: the gated cell, projected where the layer has a projection."""
    projection, state = call.optional(16), call.affine(_STATE)
    hidden = Affine.of(call.node.extras["intermediates"][4])
    by = quantize_multiplier(float(np.float32(2.0**-15 / float(hidden.scale) * 2.0**-15)))
    values = multiply(gate * cell, by)
    if projection is None:
        return _within_8_bits(values + hidden.zero)
    # Before a projection the kernel subtracts the zero point, and its bias puts that right, up to saturation.
    values = _within_8_bits(values - hidden.zero)
    weights = projection.astype(np.int64)
    bias = call.optional(17)
    total = values @ weights.T + hidden.zero * weights.sum(axis=1) + (0 if bias is None else bias.astype(np.int64))
    factor = quantize_multiplier(float(call.affine(16).scale * hidden.scale / state.scale))
    projected = _within_8_bits(multiply(wrapped(total), factor) + state.zero)
    limit = _limit(op.proj_clip, state, 127)
    return np.asarray(np.clip(projected, -limit, limit)) if limit > 0 else projected


def _limit(clip: float, side: Affine, most: int) -> int:
    """Return a limit in steps, 0 for none."""
    return min(int(np.float32(clip) / side.scale), most) if clip > 0 else 0


def _within_8_bits(x: Array) -> Array:
    return np.asarray(np.clip(x, -128, 127))


def _held(x: Array) -> Array:
    return np.asarray(np.clip(x, MIN, MAX))
