"""Grouped convolutions whose groups are narrower than what the NPU reads at once.

Cycles by Vela 5.2 for an i.MX93, 3x3 on [28, 28, 128]: groups of 2 or 4 channels take 0.468 million, of 8 take 0.077,
of 16 take 0.097, of 32 take 0.137, of 64 take 0.294, and all as one group 0.578.
"""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.graphs import is_dense
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_WIDTH = 8


@fix("narrow-groups", ops.Conv2D, cheaper=True,
     says="joins groups of less than 8 channels to wider ones, whose weights are zero between them",
     wins="a sixth of the cycles: narrow groups are cut out of the image and put together again channel by channel")
def join(place: Place) -> Tensor | None:
    """As few groups together as give a multiple of 8 channels."""
    x, weights = place.x, place.node.input(1)
    scales = weights.quantization
    if not place.is_static or len(x.shape) != 4 or weights.data is None or not is_dense(weights) or scales is None \
            or scales.zero_point.any() or weights.shape[3] >= _WIDTH:
        return None
    width, groups = weights.shape[3], x.shape[3] // weights.shape[3]
    times = next((n for n in range(2, groups) if groups % n == 0 and n * width % _WIDTH == 0), 0)
    if not times:
        return None
    filters = len(weights.data) // groups
    data = np.zeros((*weights.shape[:3], times * width), weights.data.dtype)
    for group in range(groups):
        own = slice(group * filters, (group + 1) * filters)
        first = group % times * width
        data[own, :, :, first:first + width] = weights.data[own]
    joined = place.constant(data, scales, "weights", weights.dtype)
    return place.add(place.node.op, [x, joined, *place.node.inputs[2:]], place.output)
