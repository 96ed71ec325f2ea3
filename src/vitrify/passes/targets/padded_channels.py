"""Channels filled up to what the multipliers of an NPU take at a time, where its compiler does not do so itself."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

LIMIT = "num_macs"
"""The limit of a core that says how many channels are taken at a time."""


@fix("padded-channels", ops.Conv2D, ops.DepthwiseConv2D, mends=("neutron.channels-multiple",),
     says="fills channels up with zeros to a multiple of the NPU's width, and leaves the added ones out behind",
     wins="a convolution that would be left to the CPU; earlier converters take whole multiples only")
def padded(place: Place) -> Tensor | None:
    """Zero weights see the added inputs; added outputs are cut off."""
    op, x, weights = place.node.op, place.x, place.node.input(1)
    multiple = place.limits.get(LIMIT, 1)
    if multiple < 2 or len(x.shape) != 4 or weights.data is None or not place.is_static:
        return None
    deep, count = -x.shape[3] % multiple, -place.output.shape[3] % multiple
    is_depthwise = isinstance(op, ops.DepthwiseConv2D)
    if weights.shape[3] != x.shape[3] or (is_depthwise and x.shape[3] != place.output.shape[3]):
        place.decline("each channel gives several" if is_depthwise else "its channels are in groups")
        return None
    if not deep and not count:
        return None
    x = place.pad(x, [(0, 0), (0, 0), (0, 0), (0, deep)])
    sides = [(0, 0 if is_depthwise else count), (0, 0), (0, 0), (0, deep)]
    filled = place.constant(np.pad(np.asarray(weights.data), sides), _more(weights, count), "weights", weights.dtype)
    bias = place.node.optional(2)
    if bias is not None:
        if bias.data is None:
            return None
        bias = place.constant(np.pad(np.asarray(bias.data), (0, count)), _more(bias, count), "bias", bias.dtype)
    y = place.add(op, [x, filled, bias], place.output)
    return place.cut(y, 3, 0, place.output.shape[3])


def _more(tensor: Tensor, count: int) -> Quantization | None:
    """The scales with one for each added channel."""
    old = tensor.quantization
    if old is None or not old.is_per_axis or not count:
        return old
    scales = np.concatenate([old.scale, np.full(count, old.scale[-1], old.scale.dtype)])
    return Quantization.per_axis(scales, old.axis or 0)
