"""Recurrent kernels over sequences [time, batch, depth].

Source: TFLite kernels/lstm_eval.cc, internal/kernel_utils.cc (RnnBatchStep), internal/reference/svdf.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops.attributes import Activation
from vitrify.ops.elementwise import activate


class LstmWeights(NamedTuple):
    """The weights of one direction, in the order of gates: input, forget, cell, output.

    The input gate's are None when it is coupled to the forget gate.
    """

    inputs: Sequence[Array | None]
    recurrent: Sequence[Array | None]
    peephole: Sequence[Array | None]      # of the input, forget and output gate
    bias: Sequence[Array | None]
    projection: Array | None
    projection_bias: Array | None


def lstm(x: Array, weights: LstmWeights, output: Array, cell: Array, activation: Activation, cell_clip: float,
         projection_clip: float) -> Array:
    """Run an LSTM from the states ``output`` [batch,units] and ``cell`` [batch,cells]; returns [time,batch,units]."""
    steps = lstm_steps(x, weights, output, cell, activation, cell_clip, projection_clip)
    return np.stack([output for output, _ in steps])


def lstm_steps(x: Array, weights: LstmWeights, output: Array, cell: Array, activation: Activation, cell_clip: float,
               projection_clip: float) -> Iterator[tuple[Array, Array]]:
    """The output and the cell after each step of ``lstm``."""
    for step in x:
        forget = _sigmoid(_gate(step, output, weights, 1) + _peephole(weights, 1, cell))
        candidate = activate(_gate(step, output, weights, 2), activation)
        if weights.inputs[0] is None:
            taken = 1 - forget
        else:
            taken = _sigmoid(_gate(step, output, weights, 0) + _peephole(weights, 0, cell))
        cell = _clip(forget * cell + taken * candidate, cell_clip)
        let_out = _sigmoid(_gate(step, output, weights, 3) + _peephole(weights, 2, cell))
        output = let_out * activate(cell, activation)
        if weights.projection is not None:
            output = output @ weights.projection.T
            output = output if weights.projection_bias is None else output + weights.projection_bias
            output = _clip(output, projection_clip)
        yield output, cell


def rnn(x: Array, inputs: Array, recurrent: Array, bias: Array, state: Array, activation: Activation) -> Array:
    """Run a plain recurrent layer from ``state`` [batch,units]; returns [time,batch,units]."""
    outputs = []
    for step in x:
        state = activate(step @ inputs.T + state @ recurrent.T + bias, activation)
        outputs.append(state)
    return np.stack(outputs)


def svdf(x: Array, features: Array, times: Array, bias: Array | None, state: Array, rank: int,
         activation: Activation) -> Array:
    """Run one step of an SVDF layer from ``state`` [batch, filters * memory]; returns [batch,units]."""
    memory = state.reshape(len(x), *times.shape)
    memory = np.concatenate([memory[:, :, 1:], (x @ features.T)[:, :, None]], axis=2)
    filtered = (memory * times).sum(axis=2).reshape(len(x), -1, rank).sum(axis=2)
    return activate(filtered if bias is None else filtered + bias, activation)


def _gate(step: Array, output: Array, weights: LstmWeights, gate: int) -> Array:
    inputs, recurrent, bias = weights.inputs[gate], weights.recurrent[gate], weights.bias[gate]
    assert inputs is not None
    assert recurrent is not None
    total = step @ inputs.T + output @ recurrent.T
    return np.asarray(total if bias is None else total + bias)


def _peephole(weights: LstmWeights, index: int, cell: Array) -> Array:
    found = weights.peephole[index]
    return np.zeros_like(cell) if found is None else found * cell


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _clip(x: Array, limit: float) -> Array:
    return np.clip(x, -limit, limit) if limit > 0 else x
