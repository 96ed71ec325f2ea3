"""Plain recurrent layers and SVDF; LSTMs are in ``lstm``.

Source: TFLite kernels/rnn.cc, unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc, svdf.cc.
"""

from __future__ import annotations

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, expect, given
from vitrify.ops.lstm import LSTM, BidirectionalSequenceLSTM, UnidirectionalSequenceLSTM
from vitrify.ops.reference.recurrent import rnn, svdf
from vitrify.ops.sequences import both, products, shape_of, sides, state_of, time_first, units_of

__all__ = ["LSTM", "RNN", "SVDF", "BidirectionalSequenceLSTM", "BidirectionalSequenceRNN",
           "UnidirectionalSequenceLSTM", "UnidirectionalSequenceRNN"]



@operator
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
        batch, time, depth = shape_of(self, inputs, 0, 3)
        return [TensorType(x.dtype, (batch, time, units_of(self, inputs, 1, 2, depth)))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight, step and batch."""
        shape = node.input(0).shape
        return products(node, shape[0] * shape[1])

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Run the layer over the sequence."""
        x, weights, recurrent, bias = given(self, inputs[:4], 4)
        ordered = time_first(x, self.time_major)
        state = state_of(inputs, 4, ordered.shape[1], len(weights), x.dtype)
        out = rnn(ordered, weights, recurrent, bias, state, self.fused_activation_function)
        return [time_first(out, self.time_major)]


@operator
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
        depth = shape_of(self, inputs, 0, 3)[2]
        return both(self, x.type, units_of(self, inputs, 1, 2, depth), units_of(self, inputs, 5, 6, depth),
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
        if any(value is not None for value in inputs[9:]):
            return super().evaluate(inputs)
        ordered = time_first(x, self.time_major)
        directions = []
        for first, turned in ((1, ordered), (5, ordered[::-1])):
            weights, recurrent, bias = given(self, inputs[first:first + 3], 3)
            state = state_of(inputs, first + 3, ordered.shape[1], len(weights), x.dtype)
            directions.append(rnn(turned, weights, recurrent, bias, state, self.fused_activation_function))
        return sides(directions[0], directions[1][::-1], self.time_major, self.merge_outputs)


@operator
class RNN(Operator):
    """One step of a plain recurrent layer; inputs x, weights, recurrent weights, bias, state."""

    name = "RNN"
    options = "RNNOptions"
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the step's output."""
        x = given(self, inputs[:1], 1)[0]
        batch, depth = shape_of(self, inputs, 0, 2)
        return [TensorType(x.dtype, (batch, units_of(self, inputs, 1, 2, depth)))]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 + self.asymmetric_quantize_inputs if versions.is_hybrid(node) else 1

    def macs(self, node: Node) -> int:
        """One for each weight and batch."""
        return products(node, node.input(0).shape[0])

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Run one step."""
        x, weights, recurrent, bias = given(self, inputs[:4], 4)
        state = state_of(inputs, 4, len(x), len(weights), x.dtype)
        return [rnn(x[None], weights, recurrent, bias, state, self.fused_activation_function)[0]]


@operator
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
        batch, depth = shape_of(self, inputs, 0, 2)
        filters, taken = shape_of(self, inputs, 1, 2)
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
        return products(node, node.input(0).shape[0])

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Run one step."""
        x, features, times = given(self, inputs[:3], 3)
        state = state_of(inputs, 4, len(x), times.size, x.dtype)
        return [svdf(x, features, times, inputs[3], state, self.rank, self.fused_activation_function)]
