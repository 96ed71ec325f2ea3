"""Recurrent layers: the runtime's sequence operators where they compute the same, else the cell, step by step."""

from __future__ import annotations

from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.recurrent_activations import activation_of
from vitrify.importers.onnx.lowerings.recurrent_fused import fused_lstm, fused_rnn, is_fusable
from vitrify.importers.onnx.lowerings.recurrent_layer import Kind, Layer, Side, added, halved, layer_of
from vitrify.importers.onnx.lowerings.unrolling import unroll
from vitrify.importers.onnx.parts.joints import parts
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor
from vitrify.ops.cells import Activation, Cell, GruCell, LstmCell, RnnCell

_LSTM = Kind(4, ("Sigmoid", "Tanh", "Tanh"), 2, peepholes=True)
_GRU = Kind(3, ("Sigmoid", "Tanh"), 1)
_RNN = Kind(1, ("Tanh",), 1)


@lowering("LSTM")
def lstm(ctx: Context, node: SourceNode) -> None:
    """A long short-term memory layer."""
    layer = layer_of(ctx, node, _LSTM)
    if is_fusable(layer, cell_read=len(node.outputs) > 2 and bool(node.outputs[2])):
        fused_lstm(layer)
    else:
        unroll(layer, _lstm_cell)


@lowering("GRU")
def gru(ctx: Context, node: SourceNode) -> None:
    """A gated recurrent layer; no runtime has it as one operator."""
    unroll(layer_of(ctx, node, _GRU), _gru_cell)


@lowering("RNN")
def rnn(ctx: Context, node: SourceNode) -> None:
    """A plain recurrent layer."""
    layer = layer_of(ctx, node, _RNN)
    if is_fusable(layer):
        fused_rnn(layer)
    else:
        unroll(layer, _rnn_cell)


def _activations(layer: Layer, side: Side) -> tuple[Activation, ...]:
    """Clipping is for the gates: ONNX Runtime takes the cell state of an LSTM (its third activation) as it is."""
    clips = [layer.node.number("clip")] * 2 + [0.0]
    return tuple(
        activation_of(layer.ctx, layer.node, one, clip) for one, clip in zip(side.activations, clips, strict=False)
    )


def _weights(layer: Layer, value: Value, name: str = "") -> Tensor:
    """A kernel as one tensor, which all steps read."""
    return value if isinstance(value, Tensor) else layer.ctx.constant(value, name)


def _lstm_cell(layer: Layer, side: Side) -> tuple[Cell, Value]:
    cell = LstmCell(
        layer.ctx.emit_all,
        layer.hidden,
        _weights(layer, side.recurrent, layer.node.inputs[2]),
        _activations(layer, side),
        side.peepholes,
        bool(layer.node.integer("input_forget")),
    )
    return cell, added(layer.ctx, layer.node, side.input_bias, side.recurrent_bias)


def _gru_cell(layer: Layer, side: Side) -> tuple[Cell, Value]:
    ctx, node, size = layer.ctx, layer.node, layer.hidden
    activations, name = _activations(layer, side), node.inputs[2]
    if node.integer("linear_before_reset"):
        kept, inner_bias = halved(ctx, node, side.recurrent_bias, 2 * size)
        recurrent = _weights(layer, side.recurrent, name)
        cell = GruCell(ctx.emit_all, size, recurrent, activations, bias=_weights(layer, inner_bias))
        return cell, added(ctx, node, side.input_bias, kept)
    pair, inner = parts(ctx, node, side.recurrent, [2 * size, size], 0)
    cell = GruCell(
        ctx.emit_all,
        size,
        _weights(layer, pair, f"{name}/gates"),
        activations,
        inner=_weights(layer, inner, f"{name}/hidden"),
    )
    return cell, added(ctx, node, side.input_bias, side.recurrent_bias)


def _rnn_cell(layer: Layer, side: Side) -> tuple[Cell, Value]:
    recurrent = _weights(layer, side.recurrent, layer.node.inputs[2])
    cell = RnnCell(layer.ctx.emit_all, layer.hidden, recurrent, _activations(layer, side))
    return cell, added(layer.ctx, layer.node, side.input_bias, side.recurrent_bias)
