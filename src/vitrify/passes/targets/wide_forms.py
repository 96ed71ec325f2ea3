"""Operators that have no kernel on 16-bit values, written in those that have."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_HALF, _LARGEST = 1 << 14, (1 << 15) - 1


@fix("hard-swish", ops.HardSwish, mends=("ethos-u.stops-compiler",), exactness=Exactness.APPROXIMATE, repairs=True,
     says="multiplies a 16-bit value by its gate, which is an ADD with RELU6 and a MUL by a sixth",
     wins="a model that LiteRT has no kernel for, and that stops the compiler")
def hard_swish(place: Place) -> Tensor | None:
    """x * relu6(x + 3) / 6, the gate in steps of 1 / 32767."""
    x = place.x
    if x.dtype is not DType.INT16 or x.quantization is None or not x.shape:
        return None
    six = place.add(ops.Add(fused_activation_function=ops.Activation.RELU6), [x, _number(place, 3.0, len(x.shape))],
                    _wide(6 / _LARGEST))
    gate = place.add(ops.Mul(), [six, _number(place, 1 / 6, len(x.shape))], _wide(1 / _LARGEST))
    return place.add(ops.Mul(), [x, gate], place.output)


@fix("squared-differences", ops.SquaredDifference, cheaper=True, exactness=Exactness.APPROXIMATE, repairs=True,
     says="multiplies a difference of 16-bit values by itself",
     wins="a model that LiteRT has no kernel for: it loads, and fails when it runs")
def squared_difference(place: Place) -> Tensor | None:
    """SUB and MUL; the difference has room for the farthest values."""
    scales = [t.quantization for t in (place.x, place.node.input(1))]
    if place.x.dtype is not DType.INT16 or any(q is None or q.is_per_axis for q in scales):
        return None
    room = sum(float(q.scale[0]) for q in scales if q is not None)
    apart = place.add(ops.Sub(), [place.x, place.node.input(1)], _wide(room))
    return place.add(ops.Mul(), [apart, apart], place.output)


def _number(place: Place, value: float, rank: int) -> Tensor:
    return place.constant(np.full((1,) * rank, _HALF, np.int16), Quantization.per_tensor(value / _HALF), f"{value:.3g}")


def _wide(scale: float) -> Tensor:
    return Tensor("", DType.INT16, (), quantization=Quantization.per_tensor(scale))
