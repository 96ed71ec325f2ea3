"""Products of two activations whose zero points have to be 0."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_LARGEST = 127


@fix("symmetric-matmuls", ops.BatchMatMul, mends=("neutron.matmul-zero-point",), exactness=Exactness.APPROXIMATE,
     says="rescales both factors of a product so that 0 is stored as 0",
     wins="a product that would be left to the CPU, for steps of up to twice the size")
def symmetric(place: Place) -> Tensor | None:
    """QUANTIZE before the factors; a constant one is rounded anew, with the largest value at the end of the range."""
    factors = [_centred(place, tensor, what) for tensor, what in ((place.x, "left"), (place.node.input(1), "right"))]
    if factors[0] is None or factors[1] is None:
        return None
    return place.add(place.node.op, factors, place.output)


def _centred(place: Place, x: Tensor, what: str) -> Tensor | None:
    old = x.quantization
    if old is None or old.is_per_axis or x.dtype is not DType.INT8:
        return None
    zero, step = int(old.zero_point[0]), float(old.scale[0])
    if zero == 0:
        return x
    if x.data is not None:
        values = np.asarray(x.data, np.int64) - zero
        most = max(1, int(np.abs(values).max()))
        ratio = min(1.0, _LARGEST / most)
        return place.constant(np.rint(values * ratio).astype(np.int8), Quantization.per_tensor(step / ratio), what)
    farthest = max(_LARGEST - zero, zero + _LARGEST + 1)
    like = Tensor("", DType.INT8, (), quantization=Quantization.per_tensor(step * farthest / _LARGEST))
    return place.add(ops.Quantize(), [x], like)
