"""Several samples at once, where the NPU takes one."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.means import rearranged
from vitrify.passes.targets.place import Place


@fix("batches", ops.Mean, ops.ResizeBilinear, ops.ResizeNearestNeighbor, ops.Conv2D, ops.DepthwiseConv2D,
     ops.MaxPool2D, mends=("ethos-u.batch", "ethos-u.stops-compiler", "neutron.batch", "vip8000.grouped-batch"),
     says="takes the batch of a mean as height of one image, whose rows are averaged; resizes, convolves and pools one "
     "sample at a time",
     wins="a mean that would be left to the CPU, a resize that would stop the compiler, samples that a converter does "
     "not take together")
def batches(place: Place) -> Tensor | None:
    """By operator."""
    if isinstance(place.node.op, ops.Mean):
        return rearranged(place)
    count = place.x.shape[0]
    if count < 2 or not place.is_static:
        return None
    samples = [place.add(place.node.op, [place.cut(place.x, 0, i, 1), *place.node.inputs[1:]], place.output)
               for i in range(place.count(count))]
    return place.concat(samples, 0)
