"""FULLY_CONNECTED on images as a convolution."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place
from vitrify.passes.targets.weights import weights_of


@fix("dense-convolutions", ops.FullyConnected, cheaper=True, exactness=Exactness.ROUNDING,
     says="convolves an image with 1x1 windows where a layer is fully connected on each of its pixels",
     wins="the compiler runs such layers row by row through on-chip memory: two of them with a GELU between, on 28x28 "
     "pixels of 192 channels, take 1.74 ms for 2.17; LiteRT rounds a convolution twice, as the NPU does both")
def dense(place: Place) -> Tensor | None:
    """Weights keep their data and scales."""
    op, x, old = place.node.op, place.x, weights_of(place, 1, 2)
    assert isinstance(op, ops.FullyConnected)
    if old is None or old.zero or old.data.dtype != np.int8 or op.weights_format or not op.keep_num_dims \
            or not place.is_static:
        return None
    if x.dtype is not DType.INT8 or len(x.shape) != 4 or x.shape[0] != 1 or min(x.shape[1:3]) == 1:
        return None
    outputs, inputs = old.data.shape[0], x.shape[3]
    filters = place.constant(np.asarray(old.data).reshape(outputs, 1, 1, inputs), old.quantization, "weights")
    bias = old.bias or _nothing(place, outputs, old.quantization)
    plain = ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID,
                       fused_activation_function=op.fused_activation_function)
    return place.add(plain, [x, filters, bias], place.output)


def _nothing(place: Place, outputs: int, scales: Quantization) -> Tensor:
    """A convolution of integers needs a bias."""
    assert place.x.quantization is not None
    product = (scales.scale * place.x.quantization.scale[0]).astype(np.float32)
    found = Quantization.per_axis(product, 0) if len(product) > 1 else Quantization.per_tensor(float(product[0]))
    return place.constant(np.zeros(outputs, np.int32), found, "bias")
