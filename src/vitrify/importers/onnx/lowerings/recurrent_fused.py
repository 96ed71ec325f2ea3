"""The runtime's own sequence operators for recurrent layers.

Their states are variables of the file, which start at zero and stay from one run to the next: whoever runs the file
sets them back before each run that is to be independent, as runs of the source model are.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Value
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.lowerings.recurrent_layer import Layer, Side, added
from vitrify.importers.onnx.lowerings.unrolling import bind
from vitrify.importers.onnx.source import Array
from vitrify.ir import DType, Operator, Origin, Tensor
from vitrify.ops import Activation

_ACTIVATIONS = {"tanh": Activation.TANH, "relu": Activation.RELU}
_SHORT = 2
"""Steps below which the cell is as small, and keeps no state."""


def is_fusable(layer: Layer, cell_read: bool = False) -> bool:
    """True when the kernels compute the same: whole sequences, zero states, no clipping, constant weights."""
    node = layer.node
    return (
        layer.lengths is None
        and layer.steps >= _SHORT
        and not cell_read
        and not node.number("clip")
        and not node.integer("input_forget")
        and all(_is_plain(side) for side in layer.sides)
    )


def _is_plain(side: Side) -> bool:
    values = (side.kernel, side.recurrent, side.input_bias, side.recurrent_bias, *(side.peepholes or ()))
    *gate, last = (a.kind for a in side.activations)
    fits = gate in ([], ["sigmoid", last]) and last in _ACTIVATIONS
    return fits and all(s is None for s in side.states) and all(isinstance(v, np.ndarray) for v in values)


def fused_lstm(layer: Layer) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM for each direction. Its gates: input, forget, cell, output; ONNX's: i, o, f, c."""
    bind(layer, [_side(layer, side, *_lstm(layer, side)) for side in layer.sides])


def fused_rnn(layer: Layer) -> None:
    """UNIDIRECTIONAL_SEQUENCE_RNN for each direction."""
    bind(layer, [_side(layer, side, *_rnn(layer, side)) for side in layer.sides])


def _side(layer: Layer, side: Side, op: Operator, others: list[Tensor | None]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Y [steps, batch, hidden], and the last output; a backward side is a forward one on the reversed sequence."""
    ctx, axis = layer.ctx, np.array([0], np.int32)
    steps, batch, hidden = layer.steps, layer.batch, layer.hidden
    x = ctx.emit(ops.ReverseV2(), [layer.x, axis], aside=True) if side.backward else layer.x
    y = ctx.emit(op, [x, *others])
    end = sliced(ctx, layer.node, y, [slice(steps - 1, steps), slice(0, batch), slice(0, hidden)])
    last = ctx.reshape(end, (batch, hidden))
    if side.backward:
        y = ctx.emit(ops.ReverseV2(), [y, axis], aside=True)
    states = (last,) * len(side.states)  # the cell state of an LSTM is read by nobody here
    return y, states


def _lstm(layer: Layer, side: Side) -> tuple[Operator, list[Tensor | None]]:
    ctx, node = layer.ctx, layer.node

    def gates(value: Value, index: int, what: str) -> list[Tensor | None]:
        i, o, f, c = np.split(_known(value), 4)
        name = node.inputs[index] if index < len(node.inputs) and node.inputs[index] else f"{node.label}/{what}"
        suffix = "/reverse" if side.backward else ""
        return [ctx.constant(part, f"{name}/{gate}{suffix}") for part, gate in zip((i, f, c, o), "ifco", strict=True)]

    holes: list[Tensor | None] = [None] * 3
    if side.peepholes is not None:
        i, o, f = (_known(p) for p in side.peepholes)
        holes = [ctx.constant(p) for p in (i, f, o)]
    bias = added(ctx, node, side.input_bias, side.recurrent_bias)
    op = ops.UnidirectionalSequenceLSTM(
        fused_activation_function=_ACTIVATIONS[side.activations[-1].kind], time_major=True
    )
    states = [_state(layer, side, name) for name in ("output_state", "cell_state")]
    weights = [*gates(side.kernel, 1, "kernel"), *gates(side.recurrent, 2, "recurrent"), *holes]
    return op, [*weights, *gates(bias, 3, "bias"), None, None, *states, *[None] * 4]


def _rnn(layer: Layer, side: Side) -> tuple[Operator, list[Tensor | None]]:
    ctx, node = layer.ctx, layer.node
    bias = added(ctx, node, side.input_bias, side.recurrent_bias)
    op = ops.UnidirectionalSequenceRNN(
        fused_activation_function=_ACTIVATIONS[side.activations[-1].kind], time_major=True
    )
    weights = [ctx.constant(_known(v)) for v in (side.kernel, side.recurrent, bias)]
    return op, [*weights, _state(layer, side, "state")]


def _known(value: Value) -> Array:
    assert isinstance(value, np.ndarray)
    return value


def _state(layer: Layer, side: Side, name: str) -> Tensor:
    """A variable, which starts at zero."""
    full = f"{layer.node.label}/{name}" + ("/reverse" if side.backward else "")
    return Tensor(full, DType.FLOAT32, (layer.batch, layer.hidden), is_variable=True, origin=Origin())
