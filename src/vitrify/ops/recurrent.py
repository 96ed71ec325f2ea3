"""Recurrent layers as sequence operators.

Input positions are those of the TFLite kernels: of an LSTM 0 x, 1-4 input weights, 5-8 recurrent weights, 9-11 peephole
weights, 12-15 biases, 16-17 projection, 18-19 states; of the second direction 18-34.
Source: TFLite kernels/lstm_shared.h, lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc, rnn.cc,
unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc, svdf.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Inputs, Shape, TensorType, expect, given, refuse


def _shape(op: Operator, inputs: Inputs, index: int, rank: int) -> Shape:
    tensor = inputs[index] if index < len(inputs) else None
    if tensor is None or len(tensor.shape) != rank:
        raise refuse(op, f"needs {rank} dimensions in input {index}, "
                     f"got {tensor.type if tensor else 'nothing'}", inputs)
    return tensor.shape


def _units(op: Operator, inputs: Inputs, input_weights: int, recurrent_weights: int, depth: int) -> int:
    """Return the width of one direction's output, after checking its weights against an input of ``depth``."""
    cells, taken = _shape(op, inputs, input_weights, 2)
    rows, units = _shape(op, inputs, recurrent_weights, 2)
    expect(op, taken == depth and rows == cells, f"has weights [{cells},{taken}] and [{rows},{units}] for inputs of "
           f"{depth}", inputs)
    return units


def _both(op: Operator, x: TensorType, first: int, second: int, merged: bool) -> list[TensorType]:
    """Return the outputs of both directions, side by side when ``merged``."""
    widths = [first + second] if merged else [first, second]
    return [TensorType(x.dtype, (*x.shape[:2], width)) for width in widths]


def _products(node: Node, times: int) -> int:
    """Return the multiply-accumulates of all matrices among the constants, each used ``times`` over."""
    return times * sum(t.size for t in node.inputs if t is not None and t.is_constant and len(t.shape) == 2)


@operator
@dataclass(frozen=True)
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
        batch, time, depth = _shape(self, inputs, 0, 3)
        if self.diagonal_recurrent_tensors:
            return [TensorType(x.dtype, (batch, time, _shape(self, inputs, 2, 2)[0]))]
        return [TensorType(x.dtype, (batch, time, _units(self, inputs, 2, 6, depth)))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        weights = node.input(2).dtype
        if node.input(0).dtype is DType.INT16 and weights is DType.INT8:
            return 5
        if self.diagonal_recurrent_tensors:
            return 4
        hybrid = node.input(0).dtype is DType.FLOAT32 and weights is DType.INT8
        return 2 + self.asymmetric_quantize_inputs if hybrid else 1

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return _products(node, shape[0] * shape[1])


@operator
@dataclass(frozen=True)
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
        batch, depth = _shape(self, inputs, 0, 2)
        if self.kernel_type == 0:
            return [TensorType(x.dtype, (batch, _units(self, inputs, 2, 6, depth)))]
        units = _shape(self, inputs, 1, 2)[1]
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
        return _products(node, node.input(0).shape[0])


@operator
@dataclass(frozen=True)
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
        depth = _shape(self, inputs, 0, 3)[2]
        return _both(self, x.type, _units(self, inputs, 2, 6, depth), _units(self, inputs, 19, 23, depth),
                     self.merge_outputs)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return _products(node, shape[0] * shape[1])


@operator
@dataclass(frozen=True)
class UnidirectionalSequenceRNN(Operator):
    """A plain recurrent layer over a sequence; inputs x, weights, recurrent weights, bias, state."""

    name = "UNIDIRECTIONAL_SEQUENCE_RNN"
    options = "SequenceRNNOptions"
    time_major: bool = False
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the sequence of outputs."""
        x = given(self, inputs[:1], 1)[0]
        batch, time, depth = _shape(self, inputs, 0, 3)
        return [TensorType(x.dtype, (batch, time, _units(self, inputs, 1, 2, depth)))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return _products(node, shape[0] * shape[1])


@operator
@dataclass(frozen=True)
class BidirectionalSequenceRNN(Operator):
    """Two plain recurrent layers over a sequence, the second one backwards."""

    name = "BIDIRECTIONAL_SEQUENCE_RNN"
    options = "BidirectionalSequenceRNNOptions"
    time_major: bool = False
    fused_activation_function: Activation = Activation.NONE
    merge_outputs: bool = False
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return both directions' outputs, one tensor when ``merge_outputs``."""
        x = given(self, inputs[:1], 1)[0]
        depth = _shape(self, inputs, 0, 3)[2]
        return _both(self, x.type, _units(self, inputs, 1, 2, depth), _units(self, inputs, 5, 6, depth),
                     self.merge_outputs)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return _products(node, shape[0] * shape[1])


@operator
@dataclass(frozen=True)
class RNN(Operator):
    """One step of a plain recurrent layer; inputs x, weights, recurrent weights, bias, state."""

    name = "RNN"
    options = "RNNOptions"
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the step's output."""
        x = given(self, inputs[:1], 1)[0]
        batch, depth = _shape(self, inputs, 0, 2)
        return [TensorType(x.dtype, (batch, _units(self, inputs, 1, 2, depth)))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight and batch."""
        return _products(node, node.input(0).shape[0])


@operator
@dataclass(frozen=True)
class SVDF(Operator):
    """One step of a filter over time of low rank; inputs x, feature weights, time weights, bias, state."""

    name = "SVDF"
    options = "SVDFOptions"
    rank: int = 0
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return one value for each unit, that is for each ``rank`` filters."""
        x = given(self, inputs[:1], 1)[0]
        batch, depth = _shape(self, inputs, 0, 2)
        filters, taken = _shape(self, inputs, 1, 2)
        expect(self, self.rank > 0 and filters % self.rank == 0 and taken == depth,
               f"has {filters} filters of rank {self.rank} over {taken} features, x has {depth}", inputs)
        return [TensorType(x.dtype, (batch, filters // self.rank))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(0).dtype is DType.INT8:
            return 3
        return (4 if self.asymmetric_quantize_inputs else 2) if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight and batch."""
        return _products(node, node.input(0).shape[0])
