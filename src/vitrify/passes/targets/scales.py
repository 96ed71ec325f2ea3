"""Inputs brought to the scale of the output, where an operator compares values as they are stored."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Exactness, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place


@fix("equal-scales", ops.Maximum, ops.Minimum, mends=("ethos-u.unequal-scales",), exactness=Exactness.APPROXIMATE,
     says="rescales inputs to the output's scale before they are compared",
     wins="the NPU takes it, and what is compared are real values: LiteRT's kernels compare the stored integers")
def equal(place: Place) -> Tensor | None:
    """A QUANTIZE before each input that has another scale."""
    wanted = place.output.quantization
    if wanted is None or any(t is None or t.data is not None for t in place.node.inputs):
        return None
    inputs = [t if t.quantization == wanted else place.add(ops.Quantize(), [t], place.output)
              for t in place.node.inputs if t is not None]
    return place.add(place.node.op, inputs, place.output)
