"""Random cases of the LSTM over a sequence."""

from __future__ import annotations

import numpy as np
from integer_draw import Draw, drawn

import vitrify.ops as ops
from vitrify.ir import DType, Quantization, Tensor
from vitrify.ops import Activation


def _matrix(draw: Draw, rows: int, columns: int) -> Tensor:
    steps = draw.steps((rows, columns), np.dtype(np.int8), low=-127)
    return draw.constant(steps, Quantization.per_tensor(draw.scale(0.002, 0.02)))


def _lstm(draw: Draw, projected: bool = False, coupled: bool = False, peepholes: bool = False) -> None:
    batch, time, depth, cells = draw.size(3), draw.size(6), draw.size(9), draw.size(8)
    units = draw.size(6) if projected else cells
    op = ops.UnidirectionalSequenceLSTM(
        fused_activation_function=Activation.TANH, time_major=draw.chance(0.5),
        cell_clip=draw.scale(0.1, 4) if draw.chance(0.4) else 0.0,
        proj_clip=draw.scale(0.1, 2) if projected and draw.chance(0.4) else 0.0)
    q = draw.affine(draw.scale(0.01, 0.05))
    state = draw.affine(draw.scale(1 / 200, 1 / 60))
    gates = [n for n in range(4) if not (coupled and n == 0)]
    inputs: list[Tensor | None] = [None] * 20
    inputs[0] = draw.x((time, batch, depth) if op.time_major else (batch, time, depth), q)
    for n in gates:
        inputs[1 + n], inputs[5 + n] = _matrix(draw, cells, depth), _matrix(draw, cells, units)
        inputs[12 + n] = draw.constant(draw.rng.integers(-3000, 3000, cells), Quantization.per_tensor(
            float(q.scale[0] * inputs[1 + n].quantization.scale[0])), np.int32)
    for n, at in ((0, 9), (1, 10), (3, 11)) if peepholes else ():
        if n in gates:
            inputs[at] = draw.constant(draw.steps((cells,), np.dtype(np.int16)), Quantization.per_tensor(
                draw.scale(1e-5, 1e-4)))
    if projected:
        inputs[16] = _matrix(draw, units, cells)
        hidden = Draw(draw.rng, np.dtype(np.int8)).affine(1 / 128)
    else:
        hidden = state
    inputs[18] = Tensor("state", DType.INT8, (batch, units), quantization=state, is_variable=True)
    power = Quantization.per_tensor(2.0 ** -draw.size(15, 9))
    inputs[19] = Tensor("cell", DType.INT16, (batch, cells), quantization=power, is_variable=True)
    draw.node(op, inputs, state)
    between = [Tensor(f"between{n}", DType.INT16, (), quantization=Quantization.per_tensor(2.0**-12)) for n in range(4)]
    last = Tensor("hidden", DType.INT8, (batch, cells), quantization=hidden)
    draw.model.main.nodes[0].extras["intermediates"] = [*between, last]


@drawn("UNIDIRECTIONAL_SEQUENCE_LSTM", "int8")
def _plain(draw: Draw) -> None:
    _lstm(draw)


@drawn("UNIDIRECTIONAL_SEQUENCE_LSTM (projection)", "int8")
def _projected(draw: Draw) -> None:
    _lstm(draw, projected=True)


@drawn("UNIDIRECTIONAL_SEQUENCE_LSTM (coupled gates)", "int8")
def _coupled(draw: Draw) -> None:
    _lstm(draw, coupled=True)


@drawn("UNIDIRECTIONAL_SEQUENCE_LSTM (peepholes)", "int8")
def _peepholes(draw: Draw) -> None:
    _lstm(draw, peepholes=True)
