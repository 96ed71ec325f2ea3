"""Recurrent layers as sequence operators."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation


@operator
@dataclass(frozen=True)
class UnidirectionalSequenceLSTM(Operator):
    """UNIDIRECTIONAL_SEQUENCE_LSTM."""

    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    options = "UnidirectionalSequenceLSTMOptions"
    fused_activation_function: Activation = Activation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    time_major: bool = False
    asymmetric_quantize_inputs: bool = False
    diagonal_recurrent_tensors: bool = False


@operator
@dataclass(frozen=True)
class LSTM(Operator):
    """LSTM."""

    name = "LSTM"
    options = "LSTMOptions"
    fused_activation_function: Activation = Activation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    kernel_type: int = 0
    asymmetric_quantize_inputs: bool = False


@operator
@dataclass(frozen=True)
class BidirectionalSequenceLSTM(Operator):
    """BIDIRECTIONAL_SEQUENCE_LSTM."""

    name = "BIDIRECTIONAL_SEQUENCE_LSTM"
    options = "BidirectionalSequenceLSTMOptions"
    fused_activation_function: Activation = Activation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    merge_outputs: bool = False
    time_major: bool = True
    asymmetric_quantize_inputs: bool = False


@operator
@dataclass(frozen=True)
class UnidirectionalSequenceRNN(Operator):
    """UNIDIRECTIONAL_SEQUENCE_RNN."""

    name = "UNIDIRECTIONAL_SEQUENCE_RNN"
    options = "SequenceRNNOptions"
    time_major: bool = False
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False


@operator
@dataclass(frozen=True)
class BidirectionalSequenceRNN(Operator):
    """BIDIRECTIONAL_SEQUENCE_RNN."""

    name = "BIDIRECTIONAL_SEQUENCE_RNN"
    options = "BidirectionalSequenceRNNOptions"
    time_major: bool = False
    fused_activation_function: Activation = Activation.NONE
    merge_outputs: bool = False
    asymmetric_quantize_inputs: bool = False


@operator
@dataclass(frozen=True)
class RNN(Operator):
    """RNN."""

    name = "RNN"
    options = "RNNOptions"
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False


@operator
@dataclass(frozen=True)
class SVDF(Operator):
    """SVDF."""

    name = "SVDF"
    options = "SVDFOptions"
    rank: int = 0
    fused_activation_function: Activation = Activation.NONE
    asymmetric_quantize_inputs: bool = False
