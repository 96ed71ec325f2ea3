"""Sequence operators taken apart into their steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Operator, Origin, Tensor
from vitrify.ir.graph import Array
from vitrify.ops import Activation
from vitrify.ops.cells import MOST_STEPS, Cell, LstmCell, RnnCell, in_steps
from vitrify.ops.cells import Activation as ActivationStep
from vitrify.ops.lstm import has_integer_kernel
from vitrify.passes.base import Pass

_ACTIVATIONS: dict[Activation, type[Operator]] = {Activation.TANH: ops.Tanh, Activation.RELU: ops.Relu}


class Unroll(Pass):
    """Write UNIDIRECTIONAL_SEQUENCE_LSTM and UNIDIRECTIONAL_SEQUENCE_RNN out step by step.

    Before:  %y = UNIDIRECTIONAL_SEQUENCE_LSTM(%x, weights..., states)     x: float32[time,batch,depth]
    After:   one FULLY_CONNECTED for the inputs of all steps, then for each step one for its state, and the cell
    The states start at zero in every run. Each sum may differ by its rounding. An LSTM that has an integer kernel
    stays: its cells have 16 bits there, where those of the steps have 8.
    """

    name = "unroll"
    exactness = Exactness.ROUNDING
    kinds = (ops.UnidirectionalSequenceLSTM, ops.UnidirectionalSequenceRNN)
    keeps_kernels = True

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Take one layer apart; one with an integer kernel, or whose form is not known here, stays."""
        if self.keeps_kernels and has_integer_kernel(node):
            return False
        time = 0 if getattr(node.op, "time_major", False) else 1
        if node.input(0).shape[time] > MOST_STEPS:
            return False
        writer = _Writer(graph, node, self.made(node))
        found = _lstm(writer, node) if isinstance(node.op, ops.UnidirectionalSequenceLSTM) else _rnn(writer, node)
        if found is None:
            return False
        kernel, bias, cell = found
        result = writer.layer(kernel, bias, cell)
        graph.replace_uses(node.output, result)
        graph.remove(node)
        return True


class UnrollAll(Unroll):
    """Write every sequence operator out step by step, also an LSTM that has an integer kernel.

    Before:  %y = UNIDIRECTIONAL_SEQUENCE_LSTM(%x, weights..., states)
    After:   the same in steps, as ``Unroll`` makes them
    An NPU takes about half the time for 8-bit cells.
    """

    keeps_kernels = False


class _Writer:
    """Adds nodes before the layer."""

    def __init__(self, graph: Graph, node: Node, origin: Origin) -> None:
        self.graph, self.node, self.origin = graph, node, origin
        self._count = 0

    def emit(self, op: Operator, inputs: Sequence[Tensor | Array | None]) -> tuple[Tensor, ...]:
        """Add an operator; arrays become constants."""
        self._count += 1
        name = f"{self.node.name}/{op.kind.lower()}_{self._count}"
        given = [self.constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        added = self.graph.add(op, given, name=name, origin=self.origin, before=self.node)
        for output in added.outputs:
            output.origin = Origin()
        return added.outputs

    def constant(self, data: Array) -> Tensor:
        """A constant of the layer's."""
        self._count += 1
        kept = np.ascontiguousarray(data).reshape(data.shape)
        dtype = DType.FLOAT32 if data.dtype == np.float32 else DType.INT32
        return Tensor(f"{self.node.name}/const_{self._count}", dtype, data.shape, data=kept, origin=self.origin)

    def layer(self, kernel: Array, bias: Array, cell: Cell) -> Tensor:
        """The layer's output from its steps."""
        x, op = self.node.input(0), self.node.op
        time_major = bool(getattr(op, "time_major", False))
        if not time_major:
            x = self._swapped(x)
        steps, batch, depth = x.shape
        rows = self._reshape(x, (steps * batch, depth))
        products = self.emit(ops.FullyConnected(), [rows, kernel, bias])[0]
        states: tuple[Tensor | None, ...] = (None, None) if isinstance(cell, LstmCell) else (None,)
        made = []
        for part in in_steps(self.emit, products, steps, cell.hidden, cell.groups):
            states = cell.step(part, states)
            made.append(states[0])
        joined = made[0] if steps == 1 else self.emit(ops.Concatenation(axis=0), made)[0]
        result = self._reshape(joined, (steps, batch, cell.hidden))
        return result if time_major else self._swapped(result)

    def _reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        return self.emit(ops.Reshape(new_shape=shape), [x, np.array(shape, np.int32)])[0]

    def _swapped(self, x: Tensor) -> Tensor:
        return self.emit(ops.Transpose(), [x, np.array([1, 0, 2], np.int32)])[0]


def _lstm(writer: _Writer, node: Node) -> tuple[Array, Array, Cell] | None:
    """Kernel, bias and cell of an LSTM; None for forms with projection, normalization, clipping or coupled gates."""
    op = node.op
    assert isinstance(op, ops.UnidirectionalSequenceLSTM)
    plain = not (op.cell_clip or op.proj_clip or op.diagonal_recurrent_tensors)
    absent = all(node.optional(i) is None for i in (16, 17, 20, 21, 22, 23))
    data = [t.data if (t := node.optional(i)) is not None else None for i in range(16)]
    holes = data[9:12]
    if not plain or not absent or not _starts_at_zero(node, 18, 19):
        return None
    if op.fused_activation_function not in _ACTIVATIONS or len({h is None for h in holes}) > 1:
        return None
    if any(not _is_real(d) for d in (*data[1:9], *data[12:16])):
        return None
    kernel, recurrent, bias = (_stacked(data[first : first + 4]) for first in (1, 5, 12))
    peepholes = tuple(h for h in (holes[0], holes[2], holes[1]) if h is not None) or None
    last = _activation(writer, _ACTIVATIONS[op.fused_activation_function])
    gates = (_activation(writer, ops.Logistic), last, last)
    hidden = recurrent.shape[1]
    return kernel, bias, LstmCell(writer.emit, hidden, writer.constant(recurrent), gates, peepholes)


def _rnn(writer: _Writer, node: Node) -> tuple[Array, Array, Cell] | None:
    op = node.op
    assert isinstance(op, ops.UnidirectionalSequenceRNN)
    kernel, recurrent, bias = (node.input(i).data for i in (1, 2, 3))
    if kernel is None or recurrent is None or bias is None or not all(map(_is_real, (kernel, recurrent, bias))):
        return None
    if op.fused_activation_function not in _ACTIVATIONS or not _starts_at_zero(node, 4):
        return None
    activation = _activation(writer, _ACTIVATIONS[op.fused_activation_function])
    return kernel, bias, RnnCell(writer.emit, recurrent.shape[0], writer.constant(recurrent), (activation,))


def _starts_at_zero(node: Node, *states: int) -> bool:
    """True when each state is a variable of this node alone: nothing else writes or gives it."""
    found = [node.optional(i) for i in states]
    return all(s is not None and s.is_variable and len(s.uses) == 1 for s in found)


def _is_real(data: Array | None) -> bool:
    return data is not None and data.dtype == np.float32


def _stacked(gates: Sequence[Array | None]) -> Array:
    """Weights in the order input, forget, cell, output as one block in the order input, output, forget, cell."""
    i, f, c, o = (np.asarray(g) for g in gates)
    return np.concatenate([i, o, f, c])


def _activation(writer: _Writer, kind: type[Operator]) -> ActivationStep:
    return lambda x: writer.emit(kind(), [x])[0]
