"""Sequence LSTMs in integers: 8-bit input, output and weights, 16-bit cells.

Source: the TensorFlow Lite 8-bit quantization specification; TFLite kernels/unidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.ir import DType, Graph, Node, Quantization, Tensor
from vitrify.ops import UnidirectionalSequenceLSTM
from vitrify.ops.lstm import LEAST_CELL_POWER, MOST_CELL_POWER, has_integer_kernel
from vitrify.quant.calibration.cells import cell_key
from vitrify.quant.calibration.statistics import Statistics
from vitrify.quant.scales import INT16_HIGH, quantize_bias, quantize_weights, weight_scales

PASS = "sequence-lstm"
Array = np.ndarray[Any, np.dtype[Any]]

INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15)
OUTPUT_STATE, CELL_STATE = 18, 19

GATE_STEP = 2.0 ** -12
"""The scale of what goes into the gates, as the kernel has it: 16 bits from -8 to 8."""

LARGEST_CELL, SMALLEST_CELL = 2.0 ** (15 + MOST_CELL_POWER), 2.0 ** (15 + LEAST_CELL_POWER)
"""The range of cells at the limits of their scale; tanh of 64 is 1."""


def sequences(graph: Graph) -> list[Node]:
    """The layers that get this form; to be asked while the graph is float."""
    return [node for node in graph.nodes_of(UnidirectionalSequenceLSTM) if has_integer_kernel(node)]


def write_sequences(nodes: list[Node], statistics: Statistics) -> None:
    """Settle weights, biases and states of layers whose inputs and outputs have their scales.

    Raises:
        DataError: calibration did not see the layer's cells.
    """
    for node in nodes:
        if cell_key(node) not in statistics:
            raise DataError.of("quant.statistics", f"the cells of '{node.name}' were not observed",
                               why="the statistics were taken from another model", help="calibrate this model again")
        _write(node, statistics[cell_key(node)].high)


def _write(node: Node, largest: float) -> None:
    graph, output = node.graph, node.output.quantization
    taken = node.input(0).quantization
    assert graph is not None
    assert output is not None
    assert taken is not None
    for index, bias in zip(INPUT_WEIGHTS, BIASES, strict=True):
        weights = node.input(index)
        assert weights.data is not None
        exact = node.input(bias).data
        assert exact is not None
        scales = weight_scales(weights.data, None, exact, float(taken.scale[0]))
        graph.set_input(node, index, _constant(weights, quantize_weights(weights.data, scales), scales))
        steps, quantization = quantize_bias(exact, scales, float(taken.scale[0]))
        graph.set_input(node, bias, _constant(node.input(bias), steps, quantization))
    for index in RECURRENT_WEIGHTS:
        weights = node.input(index)
        assert weights.data is not None
        scales = weight_scales(weights.data, None, None, float(output.scale[0]))
        graph.set_input(node, index, _constant(weights, quantize_weights(weights.data, scales), scales))
    _settle(node.input(OUTPUT_STATE), DType.INT8, output)
    _settle(node.input(CELL_STATE), DType.INT16, Quantization.per_tensor(cell_step(largest)))
    node.extras["intermediates"] = _between(node, output)


def cell_step(largest: float) -> float:
    """The scale of cells up to ``largest``: a power of two, as the kernel demands."""
    share = (INT16_HIGH - 1) / (INT16_HIGH + 1)         # of a power of two that still rounds up to its step
    bounded = min(max(largest, SMALLEST_CELL * share), LARGEST_CELL * share)
    return 2.0 ** math.ceil(math.log2(bounded / INT16_HIGH))


def _constant(source: Tensor, data: Array, quantization: Quantization) -> Tensor:
    return Tensor(source.name, DType.of(data.dtype), source.shape, data=data, quantization=quantization,
                  origin=source.origin.by(PASS))


def _settle(state: Tensor, dtype: DType, quantization: Quantization) -> None:
    state.dtype, state.quantization = dtype, quantization


def _between(node: Node, output: Quantization) -> list[Tensor]:
    """The tensors in which the kernel looks up the scales of gates and of what a projection would read."""
    shape = node.input(CELL_STATE).shape
    gates = [Tensor(f"{node.name}/gate_{index}", DType.INT16, shape, quantization=Quantization.per_tensor(GATE_STEP))
             for index in range(len(BIASES))]
    return [*gates, Tensor(f"{node.name}/hidden", DType.INT8, shape, quantization=output)]
