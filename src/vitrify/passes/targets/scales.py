"""Inputs brought to the scale of the output, where an operator takes values as they are stored."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Exactness, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place


@fix("equal-scales", ops.Maximum, ops.Minimum, ops.MaxPool2D,
     mends=("ethos-u.unequal-scales", "neutron.unequal-scales"), cheaper=True, families=(),
     exactness=Exactness.APPROXIMATE, repairs=True,
     says="rescales inputs to the output's scale before they are compared",
     wins="what is compared are real values: LiteRT refuses such a pool, and compares the stored integers of others")
def equal(place: Place) -> Tensor | None:
    """A QUANTIZE before each input that has another scale."""
    wanted = place.output.quantization
    inputs = [t for t in place.node.inputs if t is not None]
    if wanted is None or any(t.data is not None or t.quantization is None for t in inputs) \
            or all(t.quantization == wanted for t in inputs):
        return None
    same = [t if t.quantization == wanted else place.add(ops.Quantize(), [t], place.output) for t in inputs]
    return place.add(place.node.op, same, place.output)
