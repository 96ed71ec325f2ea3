"""Grouped convolutions as one for each group, where the NPU sums over all channels of a pixel."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place


@fix("separate-groups", ops.Conv2D, mends=("neutron.grouped-convolution", "vip8000.grouped-batch"),
     says="cuts the channels into their groups, convolves each, and joins the results",
     wins="a convolution that would be left to the CPU")
def separate(place: Place) -> Tensor | None:
    """SLICE, CONV_2D and CONCATENATION."""
    x, weights, bias = place.x, place.node.input(1), place.node.optional(2)
    if not place.is_static or len(x.shape) != 4 or weights.data is None or weights.shape[3] >= x.shape[3] or \
            (bias is not None and bias.data is None):
        return None
    width, groups = weights.shape[3], place.count(x.shape[3] // weights.shape[3])
    filters = weights.shape[0] // groups
    parts = []
    for group in range(groups):
        own = slice(group * filters, (group + 1) * filters)
        constants = [_part(place, tensor, own, f"{what}_{group}") if tensor is not None else None
                     for tensor, what in ((weights, "weights"), (bias, "bias"))]
        parts.append(place.add(place.node.op, [place.cut(x, 3, group * width, width), *constants], place.output))
    return place.concat(parts, 3)


def _part(place: Place, tensor: Tensor, own: slice, what: str) -> Tensor:
    scales = tensor.quantization
    if scales is not None and scales.is_per_axis:
        scales = Quantization.per_axis(scales.scale[own], scales.axis or 0, scales.zero_point[own])
    return place.constant(np.asarray(tensor.data)[own], scales, what, tensor.dtype)
