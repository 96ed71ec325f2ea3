"""The cells of recurrent layers."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.matmul import dense
from vitrify.importers.onnx.lowerings.unrolling import Cell, States, is_zero, unroll
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor


@lowering("LSTM")
def lstm(ctx: Context, node: SourceNode) -> None:
    """A long short-term memory layer, step by step."""
    unroll(ctx, node, _Lstm)


@lowering("GRU")
def gru(ctx: Context, node: SourceNode) -> None:
    """A gated recurrent layer, step by step."""
    unroll(ctx, node, _Gru)


@lowering("RNN")
def rnn(ctx: Context, node: SourceNode) -> None:
    """A plain recurrent layer, step by step."""
    unroll(ctx, node, _Rnn)


class _Lstm(Cell):
    """Gates stand in the order input, output, forget, cell. Source: ONNX specification of LSTM."""

    gates, states, defaults = 4, 2, ("Sigmoid", "Tanh", "Tanh")

    def bias(self) -> Array:
        """Both biases: every gate takes their sum."""
        return np.asarray(self.input_bias + self.recurrent_bias)

    def step(self, rows: Tensor, states: States) -> States:
        """C = f * C + i * c; H = o * tanh(C)."""
        ctx, (hidden, cell) = self.ctx, states
        gate, candidate, output = self.activations
        if not is_zero(hidden):
            rows = ctx.emit(ops.Add(), [rows, dense(ctx, hidden, self.recurrent, None, self.node.inputs[2])])
        i, o, f, c = self.split(rows, 4)
        i, f = self._peep(i, cell, 0), self._peep(f, cell, 2)
        fresh = ctx.emit(ops.Mul(), [ctx.emit(gate(), [i]), ctx.emit(candidate(), [c])])
        if not is_zero(cell):
            fresh = ctx.emit(ops.Add(), [ctx.emit(ops.Mul(), [ctx.emit(gate(), [f]), cell]), fresh])
        opened = ctx.emit(gate(), [self._peep(o, fresh, 1)])
        return ctx.emit(ops.Mul(), [opened, ctx.emit(output(), [fresh])]), fresh

    def _peep(self, x: Tensor, cell: Tensor, index: int) -> Tensor:
        """``x`` plus the peephole of gate ``index`` on the cell state."""
        if not self.ctx.present(self.node, 7) or is_zero(cell):
            return x
        holes = self.ctx.known(self.node, 7, "the peepholes")
        if holes.ndim != 2 or holes.shape[0] <= self.direction or holes.shape[1] != 3 * self.hidden:
            raise self.node.problem(f"peepholes of shape {list(holes.shape)} for {self.hidden} values")
        weights = holes[self.direction].reshape(3, -1)[index]
        return self.ctx.emit(ops.Add(), [x, self.ctx.emit(ops.Mul(), [cell, weights])])


class _Gru(Cell):
    """Gates stand in the order update, reset, hidden. Source: ONNX specification of GRU."""

    gates, states, defaults = 3, 1, ("Sigmoid", "Tanh")

    def bias(self) -> Array:
        """Both biases, but for the hidden gate, whose recurrent bias may lie inside of the reset."""
        kept = self.recurrent_bias.copy()
        if self.node.integer("linear_before_reset"):
            kept[2 * self.hidden :] = 0
        return np.asarray(self.input_bias + kept)

    def step(self, rows: Tensor, states: States) -> States:
        """H = h + z * (H - h)."""
        ctx, hidden = self.ctx, states[0]
        gate, candidate = self.activations
        update, reset, fresh = self.split(rows, 3)
        size, name = self.hidden, self.node.inputs[2]
        pair = dense(ctx, hidden, self.recurrent[: 2 * size], None, f"{name}/gates")
        past = self.split(pair, 2)
        update = ctx.emit(gate(), [ctx.emit(ops.Add(), [update, past[0]])])
        reset = ctx.emit(gate(), [ctx.emit(ops.Add(), [reset, past[1]])])
        if self.node.integer("linear_before_reset"):
            inner = dense(ctx, hidden, self.recurrent[2 * size :], self.recurrent_bias[2 * size :], f"{name}/hidden")
            inner = ctx.emit(ops.Mul(), [reset, inner])
        else:
            kept = ctx.emit(ops.Mul(), [reset, hidden])
            inner = dense(ctx, kept, self.recurrent[2 * size :], None, f"{name}/hidden")
        fresh = ctx.emit(candidate(), [ctx.emit(ops.Add(), [fresh, inner])])
        moved = ctx.emit(ops.Mul(), [update, ctx.emit(ops.Sub(), [hidden, fresh])])
        return (ctx.emit(ops.Add(), [fresh, moved]),)


class _Rnn(Cell):
    """One gate. Source: ONNX specification of RNN."""

    gates, states, defaults = 1, 1, ("Tanh",)

    def bias(self) -> Array:
        """Both biases."""
        return np.asarray(self.input_bias + self.recurrent_bias)

    def step(self, rows: Tensor, states: States) -> States:
        """H = tanh(x + R H)."""
        if not is_zero(states[0]):
            past = dense(self.ctx, states[0], self.recurrent, None, self.node.inputs[2])
            rows = self.ctx.emit(ops.Add(), [rows, past])
        return (self.ctx.emit(self.activations[0](), [rows]),)
