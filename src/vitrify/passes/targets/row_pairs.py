"""QUANTIZE of rows in pairs: the units of an NPU stand two by two, and a single row leaves half of them idle."""

from __future__ import annotations

from math import prod

from vitrify import ops
from vitrify.ir import DType, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_LEAST = 1 << 13


@fix("paired-rows", ops.Quantize, cheaper=True,
     says="rescales the two halves of each row as two rows",
     wins="the units stand two by two: half the time where a value has one row of pixels, as tokens have")
def paired(place: Place) -> Tensor | None:
    """[tokens, channels] as [tokens, 2, channels / 2].

    An odd number of tokens only: of a DeiT with 198 the neighbours lost by the plain layout what was won (203.5 to
    203.9 ms by Vela 5.2's estimate for an i.MX93), of a ViT with 197 they did not (149.4 to 148.5 ms).
    """
    x, output = place.x, place.output
    if not place.is_static or x.dtype.is_float or output.dtype.is_float or x.data is not None \
            or len(x.shape) < 2 or x.shape[-2] % 2 == 0 or prod(x.shape[:-2]) != 1 or x.shape[-1] % 2 \
            or x.size < _LEAST or DType.UINT8 in (x.dtype, output.dtype):
        return None
    rows = place.reshape(x, (1, x.shape[-2], 2, x.shape[-1] // 2))
    return place.reshape(place.add(ops.Quantize(), [rows], output), output.shape)
