"""LSTMs.

Input positions are those of the TFLite kernels: 0 x, 1-4 input weights, 5-8 recurrent weights, 9-11 peephole weights,
12-15 biases, 16-17 projection, 18-19 states, 20-23 layer normalization; of the second direction 18-34 weights, 35-38
states of both.
Source: TFLite kernels/lstm_shared.h, lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, given
from vitrify.ops.reference.recurrent import LstmWeights, lstm
from vitrify.ops.sequences import both, products, shape_of, sides, state_of, time_first, units_of

LEAST_CELL_POWER, MOST_CELL_POWER = -15, -9
"""Scales of a 16-bit cell, as powers of two. The kernel refuses wider ones; of finer ones it computes no tanh, and goes
on with what its buffer held, which LiteRT 2.3 does without a word."""


def _lstm(op: Operator, inputs: Arrays, x: Array, first: int, states: tuple[int, int], clips: tuple[float, float],
          activation: Activation) -> Array:
    """Run the direction whose weights start at input ``first`` over x [time,batch,depth]."""
    taken = [inputs[i] if i < len(inputs) else None for i in range(first, first + 17)]
    weights = LstmWeights(taken[0:4], taken[4:8], taken[8:11], taken[11:15], taken[15], taken[16])
    forget, recurrent = given(op, [weights.inputs[1], weights.recurrent[1]], 2)
    output = state_of(inputs, states[0], x.shape[1], recurrent.shape[1], x.dtype)
    cell = state_of(inputs, states[1], x.shape[1], forget.shape[0], x.dtype)
    return lstm(x, weights, output, cell, activation, *clips)


def _is_normalized(inputs: Arrays) -> bool:
    """Return whether an LSTM has layer normalization, which the reference leaves out."""
    return any(value is not None for value in inputs[20:24])


def has_integer_kernel(node: Node) -> bool:
    """True for a float sequence LSTM that has a form with 8-bit activations and 16-bit cells, on NPUs too.

    That is one of constant weights that starts from zeros, with TANH, and without peepholes, coupled gates, projection,
    clipping and normalization.
    Source: TFLite kernels/unidirectional_sequence_lstm.cc; Vela 5.2 SUPPORTED_OPS.
    """
    op = node.op
    if not isinstance(op, UnidirectionalSequenceLSTM) or node.input(0).dtype is not DType.FLOAT32:
        return False
    if op.cell_clip or op.proj_clip or op.diagonal_recurrent_tensors or op.fused_activation_function is not \
            Activation.TANH or len(node.inputs) < 20:
        return False
    weights = [node.optional(i) for i in (*range(1, 9), *range(12, 16))]
    absent = [node.optional(i) for i in (*range(9, 12), 16, 17, *range(20, 24))]
    states = [node.optional(i) for i in (18, 19)]
    return (all(w is not None and w.data is not None and w.dtype is DType.FLOAT32 for w in weights)
            and all(t is None for t in absent)
            and all(s is not None and s.is_variable and len(s.uses) == 1 for s in states))


@operator
class UnidirectionalSequenceLSTM(Operator):
    """An LSTM over a sequence [batch,time,depth], or [time,batch,depth] when ``time_major``."""

    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    options = "UnidirectionalSequenceLSTMOptions"
    fused_activation_function: Activation = Activation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    time_major: bool = False
    asymmetric_quantize_inputs: bool = False
    diagonal_recurrent_tensors: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the sequence of the cell's outputs."""
        x = given(self, inputs[:1], 1)[0]
        batch, time, depth = shape_of(self, inputs, 0, 3)
        if self.diagonal_recurrent_tensors:
            return [TensorType(x.dtype, (batch, time, shape_of(self, inputs, 2, 2)[0]))]
        return [TensorType(x.dtype, (batch, time, units_of(self, inputs, 2, 6, depth)))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        weights = node.input(2).dtype
        if node.input(0).dtype is DType.INT16 and weights is DType.INT8:
            return 5
        if self.diagonal_recurrent_tensors:
            return 4
        hybrid = node.input(0).dtype is DType.FLOAT32 and weights is DType.INT8
        return 2 + self.asymmetric_quantize_inputs if hybrid else 1

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would silently get wrong."""
        yield from super().check(node)
        cell = node.optional(19)
        if cell is None or cell.dtype is not DType.INT16 or cell.quantization is None:
            return
        power = float(np.log2(cell.quantization.scale[0]))
        if power < LEAST_CELL_POWER - 0.5:
            yield legality.finding(
                node, "ops.lstm_cell", f"has a cell of scale 2**{power:.3g}, the kernel takes 2**{LEAST_CELL_POWER} at "
                "least", why="its tanh has no form for finer cells: the layer's answers are left to chance",
                help=f"give the cell a scale of 2**{LEAST_CELL_POWER}")

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return products(node, shape[0] * shape[1])

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Run the cell over the sequence."""
        (x,) = given(self, inputs[:1], 1)
        if self.diagonal_recurrent_tensors or _is_normalized(inputs):
            return super().evaluate(inputs)
        out = _lstm(self, inputs, time_first(x, self.time_major), 1, (18, 19), (self.cell_clip, self.proj_clip),
                    self.fused_activation_function)
        return [time_first(out, self.time_major)]


@operator
class LSTM(Operator):
    """One step of an LSTM over [batch,depth]; kernel type 1 is the basic kernel with 5 inputs and 4 outputs."""

    name = "LSTM"
    options = "LSTMOptions"
    fused_activation_function: Activation = Activation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    kernel_type: int = 0
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the cell's output; the basic kernel also gives state and scratch."""
        x = given(self, inputs[:1], 1)[0]
        batch, depth = shape_of(self, inputs, 0, 2)
        if self.kernel_type == 0:
            return [TensorType(x.dtype, (batch, units_of(self, inputs, 2, 6, depth)))]
        units = shape_of(self, inputs, 1, 2)[1]
        state = given(self, inputs, 5)[4]
        return [TensorType(x.dtype, (batch, units)), TensorType(state.dtype, (batch, units)),
                TensorType(x.dtype, (batch, depth + units)), TensorType(state.dtype, (batch, 4 * units))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if self.kernel_type != 0:
            return 2
        if node.input(0).dtype is DType.INT16 and node.input(2).dtype is DType.INT8:
            return 5
        hybrid = node.input(0).dtype is DType.FLOAT32 and node.input(2).dtype is DType.INT8
        return 3 + self.asymmetric_quantize_inputs if hybrid else 1

    def macs(self, node: Node) -> int:
        """One for each weight and batch."""
        return products(node, node.input(0).shape[0])

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Run one step of the full kernel."""
        (x,) = given(self, inputs[:1], 1)
        if self.kernel_type != 0 or _is_normalized(inputs):
            return super().evaluate(inputs)
        clips = (self.cell_clip, self.proj_clip)
        out = _lstm(self, inputs, x[None], 1, (18, 19), clips, self.fused_activation_function)
        return [out[0]]


@operator
class BidirectionalSequenceLSTM(Operator):
    """Two LSTMs over a sequence, the second one backwards."""

    name = "BIDIRECTIONAL_SEQUENCE_LSTM"
    options = "BidirectionalSequenceLSTMOptions"
    fused_activation_function: Activation = Activation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    merge_outputs: bool = False
    time_major: bool = True
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return both directions' outputs, one tensor when ``merge_outputs``."""
        x = given(self, inputs[:1], 1)[0]
        depth = shape_of(self, inputs, 0, 3)[2]
        return both(self, x.type, units_of(self, inputs, 2, 6, depth), units_of(self, inputs, 19, 23, depth),
                     self.merge_outputs)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return products(node, shape[0] * shape[1])

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Run both directions; an auxiliary input has no reference."""
        (x,) = given(self, inputs[:1], 1)
        if any(value is not None for value in inputs[39:]):
            return super().evaluate(inputs)
        ordered, clips = time_first(x, self.time_major), (self.cell_clip, self.proj_clip)
        forth = _lstm(self, inputs, ordered, 1, (35, 36), clips, self.fused_activation_function)
        back = _lstm(self, inputs, ordered[::-1], 18, (37, 38), clips, self.fused_activation_function)[::-1]
        return sides(forth, back, self.time_major, self.merge_outputs)
