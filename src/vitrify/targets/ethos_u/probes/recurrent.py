"""Probes of the LSTM's forms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.ir import DType, Node, Tensor
from vitrify.ops import UnidirectionalSequenceLSTM
from vitrify.ops.attributes import Activation
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe, quantization
from vitrify.targets.rules.rule import Variant

_UNITS, _DEPTH, _STEPS = 16, 8, 4
_INPUTS = 24
_STATE_SCALE, _CELL_SCALE, _GATE_SCALE = 1 / 128, 2.0 ** -11, 2.0 ** -12


def _lstm(*, without: tuple[int, ...] = (), peephole: bool = False, projection: bool = False,
          normalized: bool = False) -> Draw:
    def draw(sketch: Sketch) -> Node:
        inputs: list[Tensor | None] = [None] * _INPUTS
        inputs[0] = sketch.value((1, _STEPS, _DEPTH), scale=1 / 128)
        for place in range(1, 9):
            inputs[place] = None if place in without else sketch.weights((_UNITS, _DEPTH if place < 5 else _UNITS))
        for place in range(12, 16):
            inputs[place] = None if place - 11 in without else sketch.bias(_UNITS)
        inputs[18] = _state(sketch, DType.INT8, _STATE_SCALE)
        inputs[19] = _state(sketch, DType.INT16, _CELL_SCALE)
        if peephole:
            for place in range(9, 12):
                inputs[place] = sketch.constant(np.ones(_UNITS), DType.INT16, scale=_GATE_SCALE)
        if projection:
            inputs[16] = sketch.weights((_UNITS, _UNITS))
        if normalized:
            for place in range(20, 24):
                inputs[place] = sketch.constant(np.ones(_UNITS), DType.INT16, scale=_GATE_SCALE)
        op = UnidirectionalSequenceLSTM(fused_activation_function=Activation.TANH)
        node = sketch.add(op, inputs, dtype=DType.INT8, shape=(1, _STEPS, _UNITS), scale=_STATE_SCALE)
        gates = [_state(sketch, DType.INT16, _GATE_SCALE) for _ in range(4)]
        node.extras["intermediates"] = [*gates, _state(sketch, DType.INT8, _STATE_SCALE)]
        for tensor in node.extras["intermediates"]:
            tensor.is_variable = False
        return node
    return draw


def _state(sketch: Sketch, dtype: DType, scale: float) -> Tensor:
    made = sketch.constant(np.zeros((1, _UNITS)), dtype, scale=scale)
    made.data, made.is_variable, made.quantization = None, True, quantization(scale)
    return made


@probe
def lstms(variant: Variant) -> Iterator[Probe]:
    """The plain form, and what the compiler does not make; each by itself, since it may stop on one."""
    yield Probe("LSTM", _lstm(), alone=True)
    yield Probe("LSTM with coupled gates", _lstm(without=(1, 5)), ("ethos-u.lstm-coupled",), alone=True)
    yield Probe("LSTM with peepholes", _lstm(peephole=True), ("ethos-u.lstm-peephole",), alone=True)
    yield Probe("LSTM with projection", _lstm(projection=True), ("ethos-u.lstm-projection",), alone=True)
    yield Probe("LSTM with normalization", _lstm(normalized=True), ("ethos-u.lstm-normalization",), alone=True)
