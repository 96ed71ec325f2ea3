"""DIV by a constant as a product."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Quantization, Tensor
from vitrify.passes.graphs import is_dense
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import UNSUPPORTED
from vitrify.passes.targets.place import Place

_STEPS = 64
"""How many steps the inverse is: any number does, as the scale takes it out again."""


@fix("constant-quotients", ops.Div, mends=UNSUPPORTED, exactness=Exactness.ROUNDING,
     says="multiplies by the inverse of a constant divisor whose elements are all the same",
     wins="the NPU multiplies, and does not divide")
def quotient(place: Place) -> Tensor | None:
    """The inverse is held by its scale alone, so it is exact up to float32."""
    op, divisor = place.node.op, place.node.optional(1)
    assert isinstance(op, ops.Div)
    if divisor is None or divisor.data is None or divisor.quantization is None or not is_dense(divisor) \
            or not divisor.size or place.x.data is not None or divisor.quantization.is_per_axis:
        return None
    values = divisor.quantization.dequantize(np.asarray(divisor.data)).reshape(-1)
    kind = place.x.dtype.numpy
    if kind is None or kind.kind != "i" or not values[0] or (values != values[0]).any() \
            or place.x.shape != place.output.shape:
        return None
    step = np.asarray([np.sign(values[0]) * _STEPS], kind)
    inverse = Quantization.per_tensor(float(np.float32(1 / (abs(float(values[0])) * _STEPS))))
    factor = place.constant(step.reshape((1,) * len(place.x.shape)), inverse, "inverse")
    return place.add(ops.Mul(fused_activation_function=op.fused_activation_function), [place.x, factor], place.output)
