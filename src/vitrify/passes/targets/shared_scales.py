"""One scale on both sides, for chips whose operators move or compare values as they are stored."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Exactness, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_CODE = ("neutron.unequal-scales",)


@fix("joined-scales", ops.Concatenation, mends=_CODE, exactness=Exactness.ROUNDING,
     says="rescales the inputs that have another scale than the output before they are joined",
     wins="a join that the NPU takes only where all scales are equal")
def joined(place: Place) -> Tensor | None:
    """A QUANTIZE before each input that differs; constants are rescaled now."""
    wanted = place.output.quantization
    inputs = [t for t in place.node.inputs if t is not None]
    if wanted is None or any(t.quantization is None or t.dtype is not place.output.dtype for t in inputs) or any(
            t.data is not None and t.quantization != wanted for t in inputs):
        return None
    same = [t if t.quantization == wanted else place.add(ops.Quantize(), [t], place.output) for t in inputs]
    return None if same == inputs else place.add(place.node.op, same, place.output)


@fix("rescaled-results", ops.AveragePool2D, ops.Mean, ops.ReduceMax, ops.ReduceMin,
     mends=_CODE, exactness=Exactness.ROUNDING,
     says="computes in the scale of the input, and rescales the result",
     wins="a mean or a pool that the NPU takes only where both scales are equal")
@fix("rescaled-moves", ops.Reshape, ops.Transpose, ops.Pad, ops.Slice, ops.StridedSlice,
     mends=_CODE, exactness=Exactness.APPROXIMATE, repairs=True,
     says="moves values in the scale of the input, and rescales what was moved",
     wins="the NPU takes the move, and it means what the file's scales say: kernels copy the stored integers")
def rescaled(place: Place) -> Tensor | None:
    """The operator with the scale of its input, then QUANTIZE."""
    x, wanted = place.x, place.output.quantization
    if wanted is None or x.quantization is None or x.quantization == wanted or x.quantization.is_per_axis or \
            x.dtype is not place.output.dtype:
        return None
    inner = place.add(place.node.op, list(place.node.inputs), x)
    return place.add(ops.Quantize(), [inner], place.output)
