"""Recurrent layers, unrolled step by step."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.lowerings.matmul import dense
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Operator, Tensor

MAX_STEPS = 256
_ACTIVATIONS: dict[str, type[Operator]] = {"sigmoid": ops.Logistic, "tanh": ops.Tanh, "relu": ops.Relu}
_DEFAULT = ["Sigmoid", "Tanh", "Tanh"]


@lowering("LSTM")
def lstm(ctx: Context, node: SourceNode) -> None:
    """X [steps, batch, inputs] -> Y [steps, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden].

    Source: ONNX specification of LSTM; gates stand in the order input, output, forget, cell.
    """
    x = float_input(ctx, node, 0, (3,))
    _check(ctx, node, x)
    if node.integer("layout"):
        x = ctx.transpose(x, (1, 0, 2))
    kernels = [ctx.known(node, i, "the kernel") for i in (1, 2)]
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
        node.string("direction", "forward")
    ]
    results = [
        _Cell(ctx, node, d, kernels[0][d], kernels[1][d]).run(x, backward) for d, backward in enumerate(directions)
    ]
    outputs = [_stack(ctx, [r[i] for r in results], 1 if i == 0 else 0) for i in range(3)]
    if node.integer("layout"):
        outputs = [ctx.transpose(outputs[0], (2, 0, 1, 3)), *(ctx.transpose(o, (1, 0, 2)) for o in outputs[1:])]
    ctx.bind(node, *outputs)


def _check(ctx: Context, node: SourceNode, x: Tensor) -> None:
    steps, batch = (x.shape[1], x.shape[0]) if node.integer("layout") else x.shape[:2]
    if steps > MAX_STEPS:
        raise ctx.unsupported(
            node, f"{steps} time steps; at most {MAX_STEPS} are unrolled", "use a shorter --shape for the sequence"
        )
    directions = 2 if node.string("direction", "forward") == "bidirectional" else 1
    names = node.attributes.get("activations", _DEFAULT * directions)
    unknown = [n for n in names if n.lower() not in _ACTIVATIONS]
    if unknown or len(names) != 3 * directions:
        raise ctx.unsupported(node, f"activations {names}")
    if node.number("clip") or node.integer("input_forget"):
        raise ctx.unsupported(node, "clip or input_forget")
    if ctx.present(node, 4):
        lengths = ctx.known(node, 4, "the sequence lengths")
        if lengths.size != batch or (lengths != steps).any():
            raise ctx.unsupported(node, f"sequences of lengths {lengths.tolist()}; all must have {steps} steps")


def _stack(ctx: Context, parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else ctx.emit(ops.Concatenation(axis=axis), parts)


class _Cell:
    """One direction of an LSTM layer."""

    def __init__(self, ctx: Context, node: SourceNode, direction: int, kernel: Array, recurrent: Array) -> None:
        self.ctx, self.node, self.direction = ctx, node, direction
        self.kernel, self.recurrent = kernel, recurrent
        self.hidden = recurrent.shape[1]
        if kernel.shape[0] != 4 * self.hidden or recurrent.shape[0] != 4 * self.hidden:
            raise node.problem(f"kernels {list(kernel.shape)} and {list(recurrent.shape)} do not hold four gates")
        names = node.attributes.get("activations", _DEFAULT * (direction + 1))[3 * direction : 3 * direction + 3]
        self.gate, self.candidate, self.output = (_ACTIVATIONS[n.lower()] for n in names)
        bias = (
            ctx.known(node, 3, "the bias")[direction] if ctx.present(node, 3) else np.zeros(8 * self.hidden, np.float32)
        )
        if bias.shape != (8 * self.hidden,):
            raise node.problem(f"a bias of shape {list(bias.shape)}; it must hold {8 * self.hidden} values")
        self.bias = bias[: 4 * self.hidden] + bias[4 * self.hidden :]

    def run(self, x: Tensor, backward: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Y [steps, 1, batch, hidden] and the last states [1, batch, hidden]."""
        ctx = self.ctx
        steps, batch, inputs = x.shape
        if inputs != self.kernel.shape[1]:
            raise self.node.problem(f"the input has {inputs} features, the kernel takes {self.kernel.shape[1]}")
        projected = dense(ctx, ctx.reshape(x, (steps * batch, inputs)), self.kernel, self.bias, self.node.inputs[1])
        hidden, cell = self._state(5, batch), self._state(6, batch)
        places = range(steps)[::-1] if backward else range(steps)
        kept: dict[int, Tensor] = {}
        for step in places:
            rows = sliced(
                ctx, self.node, projected, [slice(step * batch, (step + 1) * batch), slice(0, 4 * self.hidden)]
            )
            hidden, cell = self._step(rows, hidden, cell)
            kept[step] = hidden
        y = _stack(ctx, [ctx.reshape(kept[s], (1, 1, batch, self.hidden)) for s in range(steps)], 0)
        return y, ctx.reshape(hidden, (1, batch, self.hidden)), ctx.reshape(cell, (1, batch, self.hidden))

    def _state(self, index: int, batch: int) -> Tensor:
        if not self.ctx.present(self.node, index):
            return self.ctx.constant(np.zeros((batch, self.hidden), np.float32))
        state = self.ctx.tensor(self.node, index)
        if self.node.integer("layout"):
            state = self.ctx.transpose(state, (1, 0, 2))
        if state.shape[0] > 1:
            ranges = [slice(self.direction, self.direction + 1), slice(0, batch), slice(0, self.hidden)]
            state = sliced(self.ctx, self.node, state, ranges)
        return self.ctx.reshape(state, (batch, self.hidden))

    def _step(self, rows: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        ctx = self.ctx
        if hidden.data is None or hidden.data.any():
            recurrent = dense(ctx, hidden, self.recurrent, None, self.node.inputs[2])
            rows = ctx.emit(ops.Add(), [rows, recurrent])
        i, o, f, c = ctx.emit_all(ops.Split(num_splits=4), [np.array(1, np.int32), rows])
        peep = (
            self.ctx.known(self.node, 7, "the peepholes")[self.direction].reshape(3, -1)
            if ctx.present(self.node, 7)
            else None
        )
        i, f = (self._peep(t, cell, peep, k) for t, k in ((i, 0), (f, 2)))
        fresh = ctx.emit(ops.Mul(), [ctx.emit(self.gate(), [i]), ctx.emit(self.candidate(), [c])])
        if cell.data is None or cell.data.any():
            fresh = ctx.emit(ops.Add(), [ctx.emit(ops.Mul(), [ctx.emit(self.gate(), [f]), cell]), fresh])
        gate = ctx.emit(self.gate(), [self._peep(o, fresh, peep, 1)])
        return ctx.emit(ops.Mul(), [gate, ctx.emit(self.output(), [fresh])]), fresh

    def _peep(self, x: Tensor, cell: Tensor, peep: Array | None, index: int) -> Tensor:
        if peep is None or not peep[index].any():
            return x
        return self.ctx.emit(ops.Add(), [x, self.ctx.emit(ops.Mul(), [cell, peep[index]])])
